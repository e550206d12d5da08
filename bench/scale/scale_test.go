package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

func TestRequestsAreComplete(t *testing.T) {
	s := session{tenant: "acme", user: "u", token: "secret"}
	text := strings.ReplaceAll(s.request(http.MethodPost, "/users", `{"name":"`+load.Number+`"}`), load.Number, "0123456789012345")
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(request.Body)
	if want := `{"name":"0123456789012345"}`; err != nil || string(body) != want {
		t.Errorf("the body is %q (error %v), want %q", body, err, want)
	}
	if request.Header.Get("X-Tenant-Schema") != "acme" || request.Header.Get("Cookie") != "session=secret" {
		t.Errorf("the header is %v", request.Header)
	}
}

func TestMissedGoalsAreMarked(t *testing.T) {
	b := table{columns: [2]string{"small", "large"}}
	fast, slow := []time.Duration{2, 1, 3}, []time.Duration{4, 3, 6}
	b.times("within", fast, slow, 3)
	b.times("beyond", fast, slow, 1.5)
	b.rates("few", []float64{10}, []float64{8}, 0.85)
	b.rates("enough", []float64{10}, []float64{9}, 0.85)
	b.took("late", 2*time.Second, time.Second)
	b.took("soon", time.Second, time.Second)
	b.memory("much", 10, 130, 0, 120)
	b.memory("flat", 10, 11, 1.5, 0)
	var out bytes.Buffer
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	for name, missed := range map[string]bool{
		"within": false, "beyond": true, "few": true, "enough": false, "late": true, "soon": false, "much": true, "flat": false,
	} {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, name+" ") && strings.Contains(line, "MISSED") != missed {
				t.Errorf("want it missed %v: %s", missed, line)
			}
		}
	}
	if b.rows[0].ratio != 2 {
		t.Errorf("the ratio is %v, want 2", b.rows[0].ratio)
	}
}

func TestDeliveriesBeforeTheResponseAreCounted(t *testing.T) {
	e, begun := newEndpoints(""), time.Now()
	e.arrive("role/1", begun.Add(2*time.Second))
	e.arrive("role/1", begun.Add(3*time.Second))
	e.arrive("role/2", begun.Add(time.Second))
	if got := e.times(); len(got) != 0 {
		t.Errorf("before the response, the times are %v", got)
	}
	e.begin("role/1", begun)
	e.arrive("role/1", begun.Add(time.Second))
	if got, want := e.times(), []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("the times are %v, want %v", got, want)
	}
}

func TestAPlanEndsAtTheNextLogLine(t *testing.T) {
	if got := textOf("\tQuery Text: select 1\n\tResult (actual rows=1 loops=1)\n2026-01-01 LOG:  other\n\tlost\n"); got != "\tQuery Text: select 1\n\tResult (actual rows=1 loops=1)\n" {
		t.Errorf("the plan is %q", got)
	}
}
