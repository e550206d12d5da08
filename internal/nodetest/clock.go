package nodetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
)

// CacheTime is the longest time for which a node may use cached data after another process
// has changed the data.
const CacheTime = time.Second

// Times after the start of each test.
const (
	Tomorrow = Start + rolecall.Time(Day/time.Microsecond)   // a day after it
	NextWeek = Start + rolecall.Time(7*Day/time.Microsecond) // seven days after it
)

// Start is the time of the clock at the start of each test.
const Start rolecall.Time = 1_800_000_000_000_000

// Clock is a clock that only the test moves.
type Clock struct {
	now   atomic.Int64
	mu    sync.Mutex
	wakes []func() // are called when time has passed, so that no test waits until a worker looks again
}

// Now returns the current time of the clock.
func (c *Clock) Now() rolecall.Time { return rolecall.Time(c.now.Load()) }

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.now.Add(d.Microseconds())
	c.passed()
}

// Until sets the clock to the time t.
func (c *Clock) Until(t rolecall.Time) {
	c.now.Store(int64(t))
	c.passed()
}

func (c *Clock) passed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wake := range c.wakes {
		wake()
	}
}

// Wake calls the function whenever time has passed.
func (c *Clock) Wake(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes = append(c.wakes, fn)
}

// Day is 24 hours.
const Day = 24 * time.Hour
