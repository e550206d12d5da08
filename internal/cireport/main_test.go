package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events returns the events of one run of a package. Each step is the name of a test and its result.
func events(path string, output string, steps ...string) string {
	path = module + path
	var b strings.Builder
	line := func(test, action, output string) {
		b.WriteString(`{"Action":"` + action + `","Package":"` + path + `","Test":"` + test + `","Output":"` + output + `"}` + "\n")
	}
	line("", "start", "")
	result := "pass"
	for _, step := range steps {
		name, action, _ := strings.Cut(step, " ")
		line(name, "run", "")
		if action == "fail" {
			line(name, "output", `    x_test.go:1: `+output+`\n`)
			result = "fail"
		}
		line(name, action, "")
	}
	if output == "main" {
		result = "fail"
		line("", "output", `the log holds a token\n`)
	}
	line("", result, "")
	return b.String()
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		targets string
		files   map[string]string
		passed  bool
		has     []string
	}{
		"passed": {
			targets: "test 12 9 0\nconsole 7 9 0\n", passed: true,
			files: map[string]string{"test.json": events("internal/web", "", "TestA pass", "TestB skip"), "console.log": "ok\n3 passed, 0 failed, 1 skipped\n"},
			has:   []string{"4 passed, 0 failed, 2 skipped\n", "test     12 s  9 s of processors  passed  1 tests\n"},
		},
		"flaky": {
			targets: "test 12 9 0\n", passed: true,
			files: map[string]string{"test.json": events("internal/web", "no focus", "TestA fail", "TestB pass") + events("internal/web", "", "TestA pass")},
			has:   []string{"FLAKY internal/web.TestA\n    x_test.go:1: no focus\n", "2 passed, 0 failed"},
		},
		"a subtest fails first": {
			targets: "test 12 9 0\n", passed: true,
			files: map[string]string{"test.json": events("internal/web", "no focus", "TestA/sqlite fail", "TestA fail") + events("internal/web", "", "TestA/sqlite pass", "TestA pass")},
			has:   []string{"FLAKY internal/web.TestA\n    x_test.go:1: no focus\n"},
		},
		"failed twice": {
			targets: "test 12 9 1\n",
			files:   map[string]string{"test.json": events("internal/web", "first", "TestA fail") + events("internal/web", "second", "TestA fail")},
			has:     []string{"FAILED internal/web.TestA\n    x_test.go:1: first\n", "0 passed, 1 failed"},
		},
		"a test of faults is not repeated": {
			targets: "faults 12 9 0\n",
			files:   map[string]string{"faults.json": events("internal/faults", "lost", "TestKill fail") + events("internal/faults", "", "TestKill pass")},
			has:     []string{"FAILED internal/faults.TestKill\n"},
		},
		"a data race is not repeated": {
			targets: "race 12 9 0\n",
			files:   map[string]string{"race.json": events("internal/web", "WARNING: DATA RACE", "TestA fail") + events("internal/web", "", "TestA pass")},
			has:     []string{"FAILED internal/web.TestA\n"},
		},
		"a package fails after its tests": {
			targets: "race 12 9 0\n",
			files:   map[string]string{"race.json": events("internal/e2e", "main", "TestA pass") + events("internal/e2e", "")},
			has:     []string{"FAILED internal/e2e\nthe log holds a token\n"},
		},
		"a test does not end": {
			targets: "race 12 9 1\n",
			files:   map[string]string{"race.json": `{"Action":"output","Package":"p","Test":"TestA","Output":"hangs\n"}`},
			has:     []string{"FAILED p.TestA\nhangs\n"},
		},
		"the build fails": {
			targets: "test 12 9 1\n",
			files:   map[string]string{"test.json": `{"Action":"build-output","ImportPath":"p","Output":"no such name\n"}` + "\n" + `{"Action":"build-fail","ImportPath":"p"}`},
			has:     []string{"FAILED build of p\nno such name\n"},
		},
		"a target without tests fails": {
			targets: "check 12 9 2\n",
			files:   map[string]string{"check.log": "not formatted: x.go\n"},
			has:     []string{"FAILED make check\nnot formatted: x.go\n"},
		},
		"go test -v without events": {
			targets: "deploy 12 9 0\n", passed: true,
			files: map[string]string{"deploy.log": "=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.1s)\n    --- PASS: TestA/b (0.1s)\n--- SKIP: TestC (0.0s)\nok  \ttools/deploy\t1.2s\n"},
			has:   []string{"2 passed, 0 failed, 1 skipped\n", "passed  2 tests\n"},
		},
		"go test -v without events fails": {
			targets: "deploy 12 9 1\n",
			files:   map[string]string{"deploy.log": "--- FAIL: TestA (0.1s)\n    x_test.go:1: no image\nFAIL\n"},
			has:     []string{"FAILED make deploy\n--- FAIL: TestA (0.1s)\n    x_test.go:1: no image\n", "0 passed, 1 failed"},
		},
		"a file of another language": {
			targets: "console 12 9 1\n",
			files:   map[string]string{"console.log": "FLAKY a.test.js lists\nno focus\n\nFAILED b.test.js jobs\nno job\n\n5 passed, 1 failed, 0 skipped\n"},
			has:     []string{"FLAKY a.test.js lists\nno focus\n", "FAILED b.test.js jobs\nno job\n", "5 passed, 1 failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			c.files["targets"] = c.targets
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			text, passed, err := report(folder)
			if err != nil {
				t.Fatal(err)
			}
			if passed != c.passed {
				t.Errorf("passed: %t", passed)
			}
			for _, want := range c.has {
				if !strings.Contains(text, want) {
					t.Errorf("the report lacks %q:\n%s", want, text)
				}
			}
		})
	}
}
