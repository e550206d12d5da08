// Package progress shows the progress of long work: as a progress bar on a terminal, and as
// occasional lines elsewhere.
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

// The intervals between two updates of the progress.
const (
	onTerminal = 100 * time.Millisecond
	elsewhere  = 10 * time.Second
)

// Bar shows the progress of work. It is safe for concurrent use.
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

// Start returns a Bar for work that has total steps. The Bar writes to out: a progress bar if out
// is a terminal, otherwise lines. The text what names the steps, such as "users".
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

// Add records that n more steps are done.
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

// End writes the final progress and the elapsed time.
func (b *Bar) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw("\n")
}

const width = 30 // width of the bar in characters

// draw writes the current progress. It ignores write errors, because the progress is only
// informative.
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
