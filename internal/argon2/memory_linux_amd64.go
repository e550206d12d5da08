package argon2

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// room is the memory in which hashes are computed. While at least one hash is being
// computed, freed memory stays mapped, so that the next hash can use it. The memory is
// outside of Go's heap, where each hash would start a garbage collection.
var room memory

type memory struct {
	mu    sync.Mutex
	taken int
	free  [][]byte
}

// take returns memory for n blocks. The blocks can contain the data of earlier hashes.
// Call give to return them.
func (m *memory) take(n int) ([]block, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := n * int(unsafe.Sizeof(block{}))
	var mapped []byte
	if last := len(m.free) - 1; last >= 0 {
		mapped, m.free = m.free[last], m.free[:last]
		if len(mapped) != size {
			_ = unix.Munmap(mapped) // mapped is a whole mapping, so Munmap does not fail
			mapped = nil
		}
	}
	if mapped == nil {
		var err error
		if mapped, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
			return nil, err
		}
		_ = unix.Madvise(mapped, unix.MADV_HUGEPAGE) // the error is ignored, because a hash without huge pages is only a little slower
	}
	m.taken++
	return unsafe.Slice((*block)(unsafe.Pointer(&mapped[0])), n), nil
}

// give accepts the blocks that take has returned, so that the next hash can use them. If
// no other hash is being computed, give unmaps all memory.
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
