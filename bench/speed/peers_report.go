package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rolecall/rolecall/bench/peers"
)

// peersReport contains the measurements of Rolecall and its peers.
type peersReport struct {
	Machine  machine
	Services []service
}

// service contains the measurements of one service.
type service struct {
	peers.About
	Start      float64 // milliseconds from the start of the process to the first response
	Idle, Peak float64 // MiB of memory, of all its processes, without PostgreSQL
	Samples    map[string]sample
	Problems   []string // reasons why the service or some operations were not measured
}

// services returns a table with a row for each service.
func (r *peersReport) services() [][]string {
	table := [][]string{{"service", "version", "store", "passwords", "start", "memory when idle", "memory at its peak", "other work, in cores"}}
	for _, s := range r.Services {
		row := []string{s.Name, s.Version, s.Store, s.Hash}
		if s.Samples == nil {
			row = append(row, "not measured", "", "", "")
		} else {
			row = append(row, fmt.Sprintf("%.0f ms", s.Start), fmt.Sprintf("%.0f MiB", s.Idle), fmt.Sprintf("%.0f MiB", s.Peak), fmt.Sprintf("%.2f", s.others()))
		}
		table = append(table, row)
	}
	return table
}

// operations returns a table with a row for each operation of each service.
func (r *peersReport) operations() [][]string {
	table := [][]string{{"operation", "service", "rate", "p50", "p99", "CPU"}}
	for _, name := range peers.Operations {
		for _, s := range r.Services {
			if m, ok := s.Samples[name]; ok {
				table = append(table, []string{titles[name], s.Name, rate(m.Rate), latency(m.P50), latency(m.P99), cost(m.CPU)})
			}
		}
	}
	return table
}

// others returns how many cores other processes used while the service was measured.
func (s *service) others() (cores float64) {
	for _, m := range s.Samples {
		cores += m.Others / float64(len(s.Samples))
	}
	return cores
}

// noise describes the other processes during the most affected measurement.
func (r *peersReport) noise() string {
	most := 0.0
	for _, s := range r.Services {
		most = max(most, s.others())
	}
	text := fmt.Sprintf("Other work on the machine took up to %.2f cores during the measurement.", most)
	if most > disturbing {
		text += tooMuch
	}
	return text
}

func (r *peersReport) writeText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n%s\n", r.Machine.String(), r.noise())
	for _, table := range [][][]string{r.services(), r.operations()} {
		fmt.Fprintln(w)
		for _, row := range table {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	for _, problem := range r.problems() {
		fmt.Fprintf(w, "\n%s\n", problem)
	}
	return w.Flush()
}

// problems returns a line for each problem of each service.
func (r *peersReport) problems() (lines []string) {
	for _, s := range r.Services {
		for _, problem := range s.Problems {
			reason, _, _ := strings.Cut(problem, "\n")
			lines = append(lines, "Not measured: "+s.Name+": "+reason)
		}
	}
	return lines
}

// writeMarkdown writes the tables of docs/performance.md.
func (r *peersReport) writeMarkdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on: %s. %s\n", r.Machine.String(), r.noise())
	for i, table := range [][][]string{r.services(), r.operations()} {
		words := []int{4, 2}[i] // columns with words; the columns with figures follow
		b.WriteString("\n")
		for n, row := range table {
			markdownLine(&b, row)
			if n == 0 {
				b.WriteString("|" + strings.Repeat("---|", words) + strings.Repeat("---:|", len(row)-words) + "\n")
			}
		}
	}
	for _, problem := range r.problems() {
		fmt.Fprintf(&b, "\n%s\n", problem)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
