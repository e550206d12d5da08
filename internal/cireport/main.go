// Command cireport prints the result of .ci/run and decides whether it passed:
//
//	cireport FOLDER
//
// FOLDER has the file targets, with one line for each target: its name, its seconds, the seconds of its
// processes on the processors, and its exit code.
// NAME.log has the output of a target. If it ran Go tests, NAME.json has their events.
//
// A test that failed and then passed alone is reported as FLAKY. A test of faults, races, isolation or
// the matrix, a data race and a panic may not be repeated: one failure counts.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// shown is the number of lines of a failed test's output that are printed.
const shown = 30

// result is the result of a target or of the whole run.
type result struct {
	passed, failed, skipped int
	failures, flakes        []failure
}

// failure is the first failure of a test.
type failure struct{ name, output string }

// add adds the numbers and the failures of another result.
func (r *result) add(other result) {
	r.passed += other.passed
	r.failed += other.failed
	r.skipped += other.skipped
	r.failures = append(r.failures, other.failures...)
	r.flakes = append(r.flakes, other.flakes...)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cireport FOLDER")
		os.Exit(2)
	}
	text, passed, err := report(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "cireport:", err)
		os.Exit(1)
	}
	fmt.Print(text)
	if !passed {
		os.Exit(1)
	}
}

// report returns the text of the report, and whether the run passed.
func report(folder string) (text string, passed bool, err error) {
	targets, err := os.ReadFile(filepath.Join(folder, "targets"))
	if err != nil {
		return "", false, err
	}
	var whole result
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for line := range strings.Lines(string(targets)) {
		words := strings.Fields(line)
		if len(words) != 4 {
			return "", false, fmt.Errorf("the line %q does not have four words", line)
		}
		name, seconds, busy, code := words[0], words[1], words[2], words[3]
		r, err := read(folder, name)
		if err != nil {
			return "", false, err
		}
		if code != "0" && len(r.failures) == 0 {
			log, err := os.ReadFile(filepath.Join(folder, name+".log"))
			if err != nil {
				return "", false, err
			}
			r.failures = append(r.failures, failure{"make " + name, string(log)})
		}
		state := "passed"
		if len(r.failures) > 0 {
			state = "FAILED"
		}
		fmt.Fprintf(rows, "%s\t%s s\t%s s of processors\t%s\t%d tests\n", name, seconds, busy, state, r.passed+r.failed)
		whole.add(r)
	}
	if err := rows.Flush(); err != nil {
		return "", false, err
	}
	return whole.text() + table.String() + whole.summary(), len(whole.failures) == 0, nil
}

// text returns the failed and flaky tests with the ends of their outputs.
func (r *result) text() string {
	var b strings.Builder
	for _, f := range r.flakes {
		fmt.Fprintf(&b, "FLAKY %s\n%s\n", f.name, end(f.output))
	}
	for _, f := range r.failures {
		fmt.Fprintf(&b, "FAILED %s\n%s\n", f.name, end(f.output))
	}
	return b.String()
}

// summary returns the names of the failed and flaky tests and the line that counts the tests.
func (r *result) summary() string {
	var b strings.Builder
	for _, f := range r.flakes {
		fmt.Fprintf(&b, "FLAKY %s\n", f.name)
	}
	for _, f := range r.failures {
		fmt.Fprintf(&b, "FAILED %s\n", f.name)
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return b.String()
}

// end returns the last lines of the text.
func end(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-shown):], "\n")
}

// read returns the result of a target from its files.
func read(folder, name string) (result, error) {
	events, err := os.Open(filepath.Join(folder, name+".json"))
	if err == nil {
		defer events.Close() //nolint:errcheck // it is only read
		return readEvents(events)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return result{}, err
	}
	log, err := os.Open(filepath.Join(folder, name+".log"))
	if err != nil {
		return result{}, err
	}
	defer log.Close() //nolint:errcheck // it is only read
	return readLog(log)
}

var counts = regexp.MustCompile(`^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$`)

// verbose matches the line of a test in the output of go test -v.
var verbose = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): `)

// readLog returns the result of the runners of other languages. They print the name of each failed or
// flaky test behind FAILED or FLAKY, then the output of the failure, an empty line at its end, and the numbers.
// It also counts the tests of go test -v. If one has failed, report shows the end of the log.
func readLog(log *os.File) (r result, err error) {
	var current *failure
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		line := lines.Text()
		if found := verbose.FindStringSubmatch(line); found != nil {
			*map[string]*int{"PASS": &r.passed, "FAIL": &r.failed, "SKIP": &r.skipped}[found[1]]++
		}
		switch kind, name, _ := strings.Cut(line, " "); {
		case kind == "FLAKY":
			r.flakes = append(r.flakes, failure{name: name})
			current = &r.flakes[len(r.flakes)-1]
		case kind == "FAILED":
			r.failures = append(r.failures, failure{name: name})
			current = &r.failures[len(r.failures)-1]
		case counts.MatchString(line):
			numbers := counts.FindStringSubmatch(line)
			for i, n := range []*int{&r.passed, &r.failed, &r.skipped} {
				if numbers[i+1] == "" {
					continue
				}
				number, err := strconv.Atoi(numbers[i+1])
				if err != nil {
					return result{}, err
				}
				*n += number
			}
			current = nil
		case line == "":
			current = nil
		case current != nil:
			current.output += line + "\n"
		}
	}
	return r, lines.Err()
}
