package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The version and the commit of a release. The release build sets them with -ldflags -X, because its
// source can be an archive, which does not tell Go the commit.
var releaseVersion, releaseCommit string

type versionCommand struct{}

// Run prints the version of the program and of Go, and the commit.
func (c *versionCommand) Run(p *program) error {
	v := readVersion()
	return p.print(v, v.String())
}

// version identifies the program.
type version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

func (v version) String() string {
	return strings.TrimSpace(fmt.Sprintf("rolecall %s %s %s", v.Version, v.Go, v.Commit))
}

func readVersion() version {
	result := version{Version: "(devel)", Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		result.Version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				result.Commit = setting.Value
			}
		}
	}
	result.Version, result.Commit = cmp.Or(releaseVersion, result.Version), cmp.Or(releaseCommit, result.Commit)
	return result
}

// registerBuild adds the metric with the version of the program.
func registerBuild(registry prometheus.Registerer) {
	v := readVersion()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "rolecall_build_info", Help: "1, with the version of Rolecall and of Go, and the commit.",
		ConstLabels: prometheus.Labels{"version": v.Version, "commit": v.Commit, "go_version": v.Go},
	})
	build.Set(1)
	registry.MustRegister(build)
}
