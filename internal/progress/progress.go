// Package progress shows how far long work is: as a bar on a terminal, as a line
// now and then elsewhere.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// How often it is said how far the work is.
const (
	onTerminal = 100 * time.Millisecond
	elsewhere  = 10 * time.Second
)

// Bar is work under way. It is safe for concurrent use.
type Bar struct {
	out      io.Writer
	what     string
	total    int
	terminal bool
	now      func() time.Time

	mu           sync.Mutex
	done         int
	begun, drawn time.Time
}

// Start writes the bar of work with total steps to out. The text what names the steps, such
// as "users".
func Start(out io.Writer, what string, total int) *Bar {
	file, ok := out.(*os.File)
	return start(out, what, total, ok && term.IsTerminal(int(file.Fd())), time.Now)
}

func start(out io.Writer, what string, total int, terminal bool, now func() time.Time) *Bar {
	b := &Bar{out: out, what: what, total: total, terminal: terminal, now: now, begun: now()}
	b.drawn = b.begun
	if terminal {
		b.draw("\r")
	}
	return b
}

// Add says that n more steps are done.
func (b *Bar) Add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	pause, end := elsewhere, "\n"
	if b.terminal {
		pause, end = onTerminal, "\r"
	}
	if now := b.now(); now.Sub(b.drawn) >= pause {
		b.drawn = now
		b.draw(end)
	}
}

// End says how far the work got and how long it took.
func (b *Bar) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw("\n")
}

const width = 30 // of the bar, in characters

// draw writes where the work stands. Nothing is lost if that cannot be shown.
func (b *Bar) draw(end string) {
	share := 1.0
	if b.total > 0 {
		share = min(float64(b.done)/float64(b.total), 1)
	}
	took := b.now().Sub(b.begun)
	line := fmt.Sprintf("%3.0f %%  %d of %d %s  %v", 100*share, b.done, b.total, b.what, took.Round(time.Second))
	if share > 0 && share < 1 {
		line += fmt.Sprintf(", %v to go", time.Duration(float64(took)*(1-share)/share).Round(time.Second))
	}
	if b.terminal {
		full := int(share * width)
		line = "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "] " + line + "\x1b[K"
	}
	_, _ = io.WriteString(b.out, line+end)
}
