//go:build !short

// GoReleaser takes minutes to compile.

package deploy

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// TestRelease loads the configuration of the release strictly, and checks that all packages of the program
// exist on each platform.
func TestRelease(t *testing.T) {
	release, err := config.Load(root + "/.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	build := release.Builds[0]
	version := read(t, "cmd/rolecall/version.go")
	for _, name := range []string{"releaseVersion", "releaseCommit"} {
		if !strings.Contains(strings.Join(build.Ldflags, " "), "-X main."+name+"=") || !strings.Contains(version, name) {
			t.Errorf("the release does not set %s", name)
		}
	}
	if len(build.Goos) != 3 || len(build.Goarch) != 2 || len(release.SBOMs) == 0 || release.Checksum.NameTemplate == "" {
		t.Errorf("the release has the platforms %v, %v, %d SBOMs and the checksums %q", build.Goos, build.Goarch, len(release.SBOMs), release.Checksum.NameTemplate)
	}
	for _, system := range build.Goos {
		for _, processor := range build.Goarch {
			list := exec.Command("go", "list", "-deps", build.Main)
			list.Dir, list.Env = root, append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
			if out, err := list.CombinedOutput(); err != nil {
				t.Errorf("%s/%s: %v\n%s", system, processor, err, out)
			}
		}
	}
	if tool, err := exec.LookPath("goreleaser"); err == nil {
		output(t, tool, "check", root+"/.goreleaser.yaml")
	} else {
		t.Log("NOT TESTED: goreleaser check, because goreleaser is not installed. The configuration was only decoded strictly.")
	}
	t.Log("NOT TESTED: a release for all platforms, which takes longer than all of these tests: goreleaser release --snapshot --clean")
}
