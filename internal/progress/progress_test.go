package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// clock is a clock that does not advance by itself.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestATerminalShowsOneUpdatedLine(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(0, 0)}
	b := start(&out, "users", 200, true, c.now)
	for range 2 {
		c.at = c.at.Add(time.Second)
		b.Add(50)
		b.Add(50) // no time has passed since the last update, so nothing is drawn
	}
	b.End()
	lines := strings.Split(out.String(), "\r")
	if len(lines) != 4 || strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "\n") {
		t.Fatalf("drawn %q", out.String())
	}
	for i, want := range []string{
		"[..............................]   0 %  0 of 200 users  0s",
		"[#######.......................]  25 %  50 of 200 users  1s, 3s to go",
		"[######################........]  75 %  150 of 200 users  2s, 1s to go",
		"[##############################] 100 %  200 of 200 users  2s",
	} {
		if got := strings.TrimSuffix(lines[i], "\n"); got != want+"\x1b[K" {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}

func TestALogHasFewLines(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(0, 0)}
	b := Start(&out, "users", 100)
	b.now, b.begun, b.drawn = c.now, c.at, c.at
	for range 50 {
		c.at = c.at.Add(time.Second)
		b.Add(2)
	}
	b.End()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 || strings.ContainsAny(out.String(), "\r\x1b") {
		t.Fatalf("written %q", out.String())
	}
	if lines[0] != "20 %  20 of 100 users  10s, 40s to go" || lines[5] != "100 %  100 of 100 users  50s" {
		t.Errorf("written %q", lines)
	}
}

func TestABarWithoutWork(t *testing.T) {
	var out bytes.Buffer
	Start(&out, "users", 0).End()
	if got := out.String(); got != "100 %  0 of 0 users  0s\n" {
		t.Errorf("written %q", got)
	}
}
