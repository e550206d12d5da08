package deploy

import (
	"fmt"
	"strings"
	"testing"

	strictyaml "sigs.k8s.io/yaml"
)

// TestVersions checks that the chart, the documents, the clients and the API have the same version.
func TestVersions(t *testing.T) {
	var description struct{ Version, AppVersion string }
	if err := strictyaml.Unmarshal([]byte(read(t, "deploy/helm/rolecall/Chart.yaml")), &description); err != nil {
		t.Fatal(err)
	}
	var api struct{ Info struct{ Version string } }
	if err := strictyaml.Unmarshal([]byte(read(t, "openapi/openapi.yaml")), &api); err != nil {
		t.Fatal(err)
	}
	if v := api.Info.Version; description.Version != v || description.AppVersion != v || !strings.Contains(read(t, "docs/deploy.md"), "tag: "+v+"}") {
		t.Errorf("the API has the version %s, and the chart %+v", v, description)
	}
	for file, line := range map[string]string{"clients/typescript/package.json": `"version": "%s"`, "clients/python/pyproject.toml": `version = "%s"`, "docs/guides/typescript.md": "rolecall-client-%s.tgz"} {
		if line = fmt.Sprintf(line, api.Info.Version); !strings.Contains(read(t, file), line) {
			t.Errorf("%s does not contain %s", file, line)
		}
	}
}
