package argon2

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// room is the memory for hashes. It stays mapped while any hash is computed, so that
// consecutive hashes under load can use it again. It is not in Go's heap, where each hash
// would start a garbage collection.
var room memory

type memory struct {
	mu    sync.Mutex
	taken int
	free  [][]byte
}

// take returns memory for n blocks. The content of the memory is undefined.
func (m *memory) take(n int) ([]block, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := n * int(unsafe.Sizeof(block{}))
	var mapped []byte
	if last := len(m.free) - 1; last >= 0 {
		mapped, m.free = m.free[last], m.free[:last]
		if len(mapped) != size {
			_ = unix.Munmap(mapped) // it is a mapping, so it can be unmapped
			mapped = nil
		}
	}
	if mapped == nil {
		var err error
		if mapped, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
			return nil, err
		}
		_ = unix.Madvise(mapped, unix.MADV_HUGEPAGE) // an error is ignored: without huge pages, a hash is only a little slower
	}
	m.taken++
	return unsafe.Slice((*block)(unsafe.Pointer(&mapped[0])), n), nil
}

// give returns the blocks of a take for reuse. It unmaps all memory if no other hash is
// in progress.
func (m *memory) give(blocks []block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, unsafe.Slice((*byte)(unsafe.Pointer(&blocks[0])), len(blocks)*int(unsafe.Sizeof(block{}))))
	if m.taken--; m.taken > 0 {
		return
	}
	for _, mapped := range m.free {
		_ = unix.Munmap(mapped)
	}
	m.free = nil
}
