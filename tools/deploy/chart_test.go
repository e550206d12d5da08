package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strictyaml "sigs.k8s.io/yaml"
)

const chart = root + "/deploy/helm/rolecall"

// helm runs helm, which is a tool of this module.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, "go", append([]string{"tool", "helm"}, args...)...)
}

// kinds has a value of the Go type of each kind of object that the chart can have.
var kinds = map[string]func() any{
	"apps/v1 Deployment":            func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":           func() any { return new(appsv1.StatefulSet) },
	"batch/v1 Job":                  func() any { return new(batchv1.Job) },
	"v1 ConfigMap":                  func() any { return new(corev1.ConfigMap) },
	"v1 Service":                    func() any { return new(corev1.Service) },
	"networking.k8s.io/v1 Ingress":  func() any { return new(networkingv1.Ingress) },
	"policy/v1 PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
}

func TestChart(t *testing.T) {
	for values, want := range map[string][]string{
		"postgres": {"ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Service"},
		"sqlite":   {"ConfigMap", "Service", "StatefulSet"},
		"full":     {"ConfigMap", "Deployment", "Ingress", "Job", "PodDisruptionBudget", "Service"},
	} {
		t.Run(values, func(t *testing.T) {
			file := filepath.Join(chart, "ci", values+"-values.yaml")
			helm(t, "lint", "--strict", chart, "--values", file)
			objects := decodeStrictly(t, helm(t, "template", "people", chart, "--kube-version", "1.30.0", "--values", file))
			var got []string
			for kind := range objects {
				got = append(got, kind)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the chart has %v, want %v", got, want)
			}
			checkPods(t, objects)
			checkConfig(t, objects["ConfigMap"].(*corev1.ConfigMap))
		})
	}
}

// decodeStrictly decodes the documents with the types of Kubernetes. Unknown and repeated members fail the
// test.
func decodeStrictly(t *testing.T, documents string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	reader := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(documents)))
	buffer := make([]byte, 1<<20)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		document := bytes.Clone(buffer[:n])
		var kind struct{ APIVersion, Kind string }
		if err := strictyaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind == "" {
			continue // only a comment
		}
		create := kinds[kind.APIVersion+" "+kind.Kind]
		if create == nil {
			t.Fatalf("the test does not know %s %s", kind.APIVersion, kind.Kind)
		}
		object := create()
		if err := strictyaml.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %v\n%s", kind.Kind, err, document)
		}
		objects[kind.Kind] = object
	}
}

// checkPods checks the security of the pods, and that a node has enough time to stop.
func checkPods(t *testing.T, objects map[string]any) {
	t.Helper()
	for kind, object := range objects {
		var pod corev1.PodSpec
		switch o := object.(type) {
		case *appsv1.Deployment:
			pod = o.Spec.Template.Spec
		case *appsv1.StatefulSet:
			pod = o.Spec.Template.Spec
		case *batchv1.Job:
			pod = o.Spec.Template.Spec
		default:
			continue
		}
		container := pod.Containers[0]
		if c := container.SecurityContext; !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || c.Capabilities.Drop[0] != "ALL" ||
			!*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != imageID || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod has more rights than it needs: %+v %+v", kind, pod.SecurityContext, c)
		}
		env := map[string]string{}
		for _, v := range container.Env {
			env[v.Name] = v.Value
		}
		if kind == "Job" {
			continue
		}
		for name, probe := range map[string]*corev1.Probe{"livez": container.StartupProbe, "readyz": container.ReadinessProbe} {
			if !strings.HasSuffix(probe.HTTPGet.Path, "/"+name) {
				t.Errorf("%s: a probe has the path %s, want /%s", kind, probe.HTTPGet.Path, name)
			}
		}
		drain, ready := duration(t, env["ROLECALL_DRAIN"]), container.ReadinessProbe
		if notices := int64(ready.PeriodSeconds * ready.FailureThreshold); drain < notices {
			t.Errorf("%s: a node drains for %d s, but Kubernetes notices after %d s", kind, drain, notices)
		}
		const stop = 22 // two seconds for open connections, and 20 for requests in progress
		if *pod.TerminationGracePeriodSeconds < drain+stop {
			t.Errorf("%s: the grace period of %d s is too short for a drain of %d s", kind, *pod.TerminationGracePeriodSeconds, drain)
		}
	}
}

func duration(t *testing.T, text string) int64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return int64(d / time.Second)
}

// checkConfig checks the settings of the chart with the program.
func checkConfig(t *testing.T, config *corev1.ConfigMap) {
	t.Helper()
	folder := t.TempDir()
	file := write(t, folder, "rolecall.yaml", config.Data["rolecall.yaml"])
	check := exec.Command(program, "config", "check", "--config", file, "--database", filepath.Join(folder, "new.db"))
	if strings.Contains(config.Data["rolecall.yaml"], "mail-from") {
		check.Env = append(os.Environ(), "ROLECALL_SMTP_FILE="+write(t, folder, "smtp-url", "smtps://rolecall:password@mail.example.com\n"))
	}
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("config check: %v\n%s", err, out)
	}
}

// TestChartRefusesMistakes checks the schema of the values.
func TestChartRefusesMistakes(t *testing.T) {
	for set, says := range map[string]string{
		"replica=3":                      "replica",
		"store=mysql":                    "store",
		"config.database=postgres://a@b": "database",
		"drainSeconds=soon":              "drainSeconds",
	} {
		command := exec.Command("go", "tool", "helm", "template", "people", chart, "--kube-version", "1.30.0", "--set", set)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
			t.Errorf("--set %s: %v\n%s", set, err, out)
		}
	}
}
