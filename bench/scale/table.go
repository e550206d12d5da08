package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// table contains the measurements on one kind of store.
type table struct {
	title   string
	columns [2]string // headings of the columns for small and large
	rows    []row
}

// row is one measurement, on a small and on a large store.
type row struct {
	name         string
	small, large string
	ratio        float64 // zero: no ratio
	goal         string
	missed       bool
}

// times records the duration of an operation: the medians of the rounds, and the median
// of their ratios. The goal is the maximum ratio, zero for no goal.
func (t *table) times(name string, small, large []time.Duration, goal float64) {
	ratios := make([]float64, len(small))
	for i := range small {
		ratios[i] = float64(large[i]) / float64(small[i])
	}
	r := row{name: name, small: inMilliseconds(median(small)), large: inMilliseconds(median(large)), ratio: median(ratios)}
	if goal > 0 {
		r.goal, r.missed = fmt.Sprintf("<= %.2f", goal), r.ratio > goal
	}
	t.rows = append(t.rows, r)
}

// rates records operations per second. The goal is the minimum ratio, zero for no goal.
func (t *table) rates(name string, small, large []float64, goal float64) {
	ratios := make([]float64, len(small))
	for i := range small {
		ratios[i] = large[i] / small[i]
	}
	r := row{name: name, small: fmt.Sprintf("%.0f/s", median(small)), large: fmt.Sprintf("%.0f/s", median(large)), ratio: median(ratios)}
	if goal > 0 {
		r.goal, r.missed = fmt.Sprintf(">= %.2f", goal), r.ratio < goal
	}
	t.rows = append(t.rows, r)
}

// took records a single duration. The goal is its maximum, zero for no goal.
func (t *table) took(name string, took, goal time.Duration) {
	r := row{name: name, large: inMilliseconds(took)}
	if goal > 0 {
		r.goal, r.missed = "<= "+goal.String(), took > goal
	}
	t.rows = append(t.rows, r)
}

// memory records used memory in MiB. If fixed is not zero, the goal is at most fixed MiB in the
// large store. Otherwise, goal is the maximum ratio of large to small.
func (t *table) memory(name string, small, large int, goal float64, fixed int) {
	r := row{name: name, small: fmt.Sprintf("%d MiB", small), large: fmt.Sprintf("%d MiB", large), ratio: float64(large) / float64(small)}
	if fixed > 0 {
		r.goal, r.missed = fmt.Sprintf("<= %d MiB", fixed), large > fixed
	} else {
		r.goal, r.missed = fmt.Sprintf("<= %.2f", goal), r.ratio > goal
	}
	t.rows = append(t.rows, r)
}

// print prints the table, unless it is empty.
func (t *table) print(out io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\n%s\n", t.title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "what\t%s\t%s\tratio\tgoal\t\t\n", t.columns[0], t.columns[1])
	for _, r := range t.rows {
		ratio, mark := "", ""
		if r.ratio != 0 {
			ratio = fmt.Sprintf("%.2f", r.ratio)
		}
		if r.missed {
			mark = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", r.name, r.small, r.large, ratio, r.goal, mark)
	}
	return w.Flush()
}

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d)/1e6) }

// median returns the value in the middle. There must be at least one value.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// mebibytes converts bytes to MiB, rounded up.
func mebibytes(bytes int) int { return int(math.Ceil(float64(bytes) / (1 << 20))) }
