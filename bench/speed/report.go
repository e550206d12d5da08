package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// report contains all measurements.
type report struct {
	Machine machine
	Stores  []storeReport
}

// storeReport contains the measurements on one store.
type storeReport struct {
	Store     string
	Reference string // compared with Rolecall: "floor" or "before"
	Rows      []row
	Facts     []fact
}

// row is one operation with one number of connections.
type row struct {
	Operation       string
	Connections     int
	Rolecall, Floor sample    // Floor is the older program if the reference is "before"
	Ratio           float64   // of the rates: the median of the pairs
	Ratios          []float64 // of each pair
	RatioByCPU      float64   // of the CPU time per response; more reliable if other processes use the cores
	Goal            float64   // of the ratio; zero: no goal
	Others          float64   // cores that other processes used
}

// sample contains the measurements of one window.
type sample struct {
	Rate      float64 // correct responses per second
	P50, P99  float64 // milliseconds
	CPU       float64 // microseconds of the server and its database per response
	Generator float64 // microseconds of the generator per response
	Others    float64 // cores that other processes used
}

// fact is a measurement other than that of an operation. Goal is the maximum.
type fact struct {
	Name  string
	Value float64
	Unit  string
	Goal  float64
}

// disturbing is a number of cores. If other processes use more cores than this, the
// measured durations are unreliable.
const disturbing = 0.25

func (r *row) verdict() string {
	switch {
	case r.Goal == 0:
		return ""
	case r.Others > disturbing:
		return "unsure"
	case r.Ratio < r.Goal:
		return "below"
	default:
		return "reached"
	}
}

// verdict compares the fact with its goal. others is the number of cores that other processes
// used.
func (f *fact) verdict(others float64) string {
	switch {
	case f.Unit != "MiB" && others > disturbing:
		return "unsure"
	case f.Value > f.Goal:
		return "above"
	default:
		return "reached"
	}
}

func (s *storeReport) columns() []string {
	return []string{"operation", "connections", "rate", "p50", "p99", "CPU", s.Reference + ": rate", "p99", "CPU", "ratio", "by CPU", "goal", ""}
}

func (r *row) cells() []string {
	goal := ""
	if r.Goal > 0 {
		goal = fmt.Sprintf("%.2f", r.Goal)
	}
	return []string{
		r.Operation, fmt.Sprint(r.Connections),
		rate(r.Rolecall.Rate), latency(r.Rolecall.P50), latency(r.Rolecall.P99), cost(r.Rolecall.CPU),
		rate(r.Floor.Rate), latency(r.Floor.P99), cost(r.Floor.CPU),
		fmt.Sprintf("%.2f", r.Ratio), fmt.Sprintf("%.2f", r.RatioByCPU), goal, r.verdict(),
	}
}

func (f *fact) cells(others float64) []string {
	return []string{f.Name, fmt.Sprintf("%.1f %s", f.Value, f.Unit), fmt.Sprintf("%.0f %s", f.Goal, f.Unit), f.verdict(others)}
}

func (m *machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s; a page reaches the disk in %.2f ms", m.Processor, m.Cores, m.System, m.Go, m.Sync)
}

func (s *storeReport) title() string {
	return map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL"}[s.Store]
}

// others returns how many cores other processes used during the measurements.
func (s *storeReport) others() (cores float64) {
	for _, row := range s.Rows {
		cores += row.Others / float64(len(s.Rows))
	}
	return cores
}

const tooMuch = " That is too much for rates and times: believe the CPU."

func (s *storeReport) noise() string {
	text := fmt.Sprintf("Other work on the machine took %.2f cores during the measurement.", s.others())
	if s.others() > disturbing {
		text += tooMuch
	}
	return text
}

// writeText writes tables for a terminal.
func (r *report) writeText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, r.Machine.String())
	for _, s := range r.Stores {
		fmt.Fprintf(w, "\n%s. %s\n", s.title(), s.noise())
		fmt.Fprintln(w, strings.Join(s.columns(), "\t"))
		for _, row := range s.Rows {
			fmt.Fprintln(w, strings.Join(row.cells(), "\t"))
		}
		fmt.Fprintln(w)
		for _, fact := range s.Facts {
			fmt.Fprintln(w, strings.Join(fact.cells(s.others()), "\t"))
		}
	}
	return w.Flush()
}

// writeMarkdown writes the tables of docs/performance.md.
func (r *report) writeMarkdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on: %s.\n", r.Machine.String())
	for _, s := range r.Stores {
		fmt.Fprintf(&b, "\n### %s\n\n", s.title())
		markdownLine(&b, s.columns())
		b.WriteString("|---|" + strings.Repeat("---:|", len(s.columns())-2) + "---|\n")
		for _, row := range s.Rows {
			markdownLine(&b, row.cells())
		}
		if len(s.Facts) > 0 {
			b.WriteString("\n| | | goal, at most | |\n|---|---:|---:|---|\n")
		}
		for _, fact := range s.Facts {
			markdownLine(&b, fact.cells(s.others()))
		}
		fmt.Fprintf(&b, "\n%s\n", s.noise())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func markdownLine(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// rate writes a rate as 53,900/s.
func rate(perSecond float64) string {
	if perSecond < 1000 {
		return fmt.Sprintf("%.0f/s", perSecond)
	}
	whole := int(perSecond+50) / 100 * 100
	return fmt.Sprintf("%d,%03d/s", whole/1000, whole%1000)
}

func latency(milliseconds float64) string { return fmt.Sprintf("%.2f ms", milliseconds) }

func cost(microseconds float64) string {
	switch {
	case microseconds == 0:
		return "unknown"
	case microseconds < 1000:
		return fmt.Sprintf("%.0f µs", microseconds)
	default:
		return fmt.Sprintf("%.1f ms", microseconds/1000)
	}
}
