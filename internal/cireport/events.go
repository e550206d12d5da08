package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/rolecall/rolecall/"

// once matches the tests that may not be repeated: faults, races, isolation, revocation and the matrix.
var once = regexp.MustCompile(`^internal/faults\b|^internal/e2e\.Test(Matrix|Operations|Confirm|Races|CancelStorm|Idempotency|Trespass|Tenants|Reach|Fields|RequestSmuggling|ARevocation|ATokenThatIsRevoked|AnOperatorKeyIsRevoked)`)

// fatal are texts of failures that may not be repeated.
var fatal = []string{"DATA RACE", "panic: ", "fatal error: "}

// event is an event of go test -json.
type event struct{ Action, Package, ImportPath, Test, Output string }

// test is a top-level test with its subtests.
type test struct {
	first, last string // the results of its first and last run
	output      string // of the first run that failed
	running     strings.Builder
}

// pack is a package with its tests.
type pack struct {
	tests    map[string]*test
	failed   bool            // one of its tests has failed in this run
	output   strings.Builder // outside of tests, in this run
	failures []failure       // of runs without a failed test
}

// readEvents returns the result of Go tests. The events of a repetition follow those of the first run.
func readEvents(events io.Reader) (r result, err error) {
	packages, results := map[string]*pack{}, map[string]string{}
	build := ""
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return result{}, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		switch e.Action {
		case "build-output":
			build += e.Output
		case "build-fail":
			r.failures = append(r.failures, failure{"build of " + e.ImportPath, build})
		}
		if e.Package == "" {
			continue
		}
		p := packages[e.Package]
		if p == nil {
			p = &pack{tests: map[string]*test{}}
			packages[e.Package] = p
		}
		p.note(&e)
		if e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			results[e.Package+" "+e.Test] = e.Action
		}
	}
	for _, action := range results {
		switch action {
		case "pass":
			r.passed++
		case "fail":
			r.failed++
		case "skip":
			r.skipped++
		}
	}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		packages[path].judge(strings.TrimPrefix(path, module), &r)
	}
	return r, lines.Err()
}

// note adds an event.
func (p *pack) note(e *event) {
	if e.Test == "" {
		switch e.Action {
		case "start":
			p.failed = false
			p.output.Reset()
		case "output":
			p.output.WriteString(e.Output)
		case "fail":
			if !p.failed {
				p.failures = append(p.failures, failure{"", p.output.String()})
			}
		}
		return
	}
	name, _, isPart := strings.Cut(e.Test, "/")
	t := p.tests[name]
	if t == nil {
		t = &test{}
		p.tests[name] = t
	}
	switch {
	case e.Action == "output":
		t.running.WriteString(e.Output)
	case isPart || e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
	default:
		if t.first == "" {
			t.first = e.Action
		}
		if e.Action == "fail" {
			p.failed = true
			if t.output == "" {
				t.output = t.running.String()
			}
		}
		t.last = e.Action
		t.running.Reset()
	}
}

// judge adds the failures of the package to the result.
func (p *pack) judge(path string, r *result) {
	for _, f := range p.failures {
		r.failures = append(r.failures, failure{path, f.output})
	}
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		t := p.tests[name]
		if t.output == "" && t.last != "" {
			continue // it passed
		}
		f := failure{path + "." + name, failing(t.output + t.running.String())}
		isFatal := slices.ContainsFunc(fatal, func(text string) bool { return strings.Contains(f.output, text) })
		if t.last == "pass" && !isFatal && !once.MatchString(f.name) {
			r.flakes = append(r.flakes, f)
		} else {
			r.failures = append(r.failures, f)
		}
	}
}

// noise matches lines that go test prints for tests that pass too.
var noise = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME)|\s*--- (PASS|SKIP))\b`)

// failing returns the output without the lines about subtests that passed.
func failing(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if !noise.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}
