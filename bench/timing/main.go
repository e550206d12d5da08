// Command timing measures whether response times reveal information that the responses hide: why a
// request was refused, or whether an address is known or taken. It serves a separate store with the
// unmodified program. Requests that must be indistinguishable form a group. Command timing sends
// the requests of a group in a new order every round, and prints a table of medians with their
// difference from the first request of the group. It fails if a difference exceeds the goal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 400, "samples of each class")
	database := flag.String("database", "", "SQLite file or postgres:// URL to serve from; empty: a new file")
	goal := flag.Duration("goal", time.Millisecond, "how far medians may lie apart")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *database, *goal); err != nil {
		fmt.Fprintln(os.Stderr, "timing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, database string, goal time.Duration) (err error) {
	s, err := start(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	fmt.Printf("%d rounds, one request at a time\n", rounds)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "asked\tmedian\tp90\tdifference\trank test z\t")
	var apart []string
	for _, group := range [][]*class{s.signIns(), s.sessions(), s.resets(), s.emailChanges()} {
		if err := measure(ctx, group, rounds); err != nil {
			return err
		}
		for _, c := range group {
			difference := quantile(c.took, 0.5) - quantile(group[0].took, 0.5)
			fmt.Fprintf(w, "%s\t%v\t%v\t%+.3f ms\t%+.1f\t\n", c.name, round(quantile(c.took, 0.5)), round(quantile(c.took, 0.9)), float64(difference)/1e6, rankTest(group[0].took, c.took))
			if difference.Abs() > goal {
				apart = append(apart, c.name)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if apart != nil {
		return fmt.Errorf("further than %v from its group: %s", goal, strings.Join(apart, ", "))
	}
	fmt.Printf("all medians lie within %v of their group's first\n", goal)
	return nil
}

// class is one of the requests of a group, with its response times.
type class struct {
	name   string
	status int
	ask    func(round int) (*http.Request, error)
	took   []time.Duration
}

// measure sends the request of every class in each round, in random order. The first rounds are not
// counted.
func measure(ctx context.Context, group []*class, rounds int) error {
	const warmUp = 5
	for round := range warmUp + rounds {
		for _, i := range rand.Perm(len(group)) {
			took, err := group[i].once(ctx, round)
			if err != nil {
				return err
			}
			if round >= warmUp {
				group[i].took = append(group[i].took, took)
			}
		}
	}
	return nil
}

func (c *class) once(ctx context.Context, round int) (time.Duration, error) {
	request, err := c.ask(round)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	answer, err := http.DefaultClient.Do(request.WithContext(ctx))
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	if err := drain(answer); err != nil {
		return 0, err
	}
	if answer.StatusCode != c.status {
		return 0, fmt.Errorf("%s: answered %d, not %d", c.name, answer.StatusCode, c.status)
	}
	return took, nil
}

// quantile returns the value that the share of the samples does not exceed.
func quantile(samples []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[int(share*float64(len(sorted)-1))]
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

// rankTest returns the standard score of the Mann-Whitney test. A score beyond ±2.6
// occurs by chance in only one of a hundred runs.
func rankTest(a, b []time.Duration) float64 {
	var wins float64
	sorted := slices.Sorted(slices.Values(a))
	for _, sample := range b {
		below, _ := slices.BinarySearch(sorted, sample)
		above, _ := slices.BinarySearch(sorted, sample+1)
		wins += float64(below) + float64(above-below)/2
	}
	n, m := float64(len(a)), float64(len(b))
	return (wins - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
}
