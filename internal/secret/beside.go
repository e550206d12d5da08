package secret

import (
	"runtime"
	"sync"
)

// beside keeps other work going beside the hashes of this process. A hash keeps
// one of Go's processors for as long as ten milliseconds at a time, and with one
// on each core everything else waits that long. So while there are hashes Go has
// one processor more than otherwise, and the kernel, which shares the cores
// among threads by the millisecond, lets what is short go first.
var beside room

// room counts the hashes under way.
type room struct {
	mu     sync.Mutex
	hashes int
	usual  int // processors without hashes
}

func (r *room) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hashes++; r.hashes == 1 {
		r.usual = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(r.usual + 1)
	}
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hashes--; r.hashes == 0 {
		runtime.GOMAXPROCS(r.usual)
	}
}
