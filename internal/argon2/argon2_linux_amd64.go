package argon2

import (
	"encoding/binary"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/sys/cpu"
)

const (
	argon2id = 2
	slices   = 4   // slices of a pass; each lane finishes a slice before any lane begins the next slice
	words    = 128 // number of 64-bit words in a block
)

type block [words]uint64

// IDKey derives a key of length bytes from the password and the salt with Argon2id (RFC
// 9106). The argument threads is the number of lanes. With AVX2, IDKey computes the lanes
// one after the other.
func IDKey(password, salt []byte, passes, memoryKiB uint32, threads uint8, length uint32) []byte {
	if !cpu.X86.HasAVX2 {
		return argon2.IDKey(password, salt, passes, memoryKiB, threads, length)
	}
	h := hash{passes: passes, lanes: uint32(threads), segment: max(memoryKiB/(slices*uint32(threads)), 2)}
	h.lane = h.segment * slices
	var err error
	if h.blocks, err = room.take(int(h.lane * h.lanes)); err != nil {
		return argon2.IDKey(password, salt, passes, memoryKiB, threads, length)
	}
	defer room.give(h.blocks)
	h.begin(password, salt, memoryKiB, length)
	for pass := range passes {
		for slice := range uint32(slices) {
			for lane := range h.lanes {
				h.fill(pass, slice, lane)
			}
		}
	}
	return h.key(length)
}

// hash is one computation of Argon2id. The names and the formulas are those of RFC 9106,
// section 3.2.
type hash struct {
	blocks                       []block
	passes, lanes, lane, segment uint32 // lane is the length of a lane, and segment the length of a slice of a lane, in blocks
}

// begin sets the first two blocks of each lane.
func (h *hash) begin(password, salt []byte, memoryKiB, length uint32) {
	le := binary.LittleEndian
	in := make([]byte, 0, 64+len(password)+len(salt))
	for _, n := range []uint32{h.lanes, length, memoryKiB, h.passes, argon2.Version, argon2id, uint32(len(password))} {
		in = le.AppendUint32(in, n)
	}
	in = append(in, password...)
	in = le.AppendUint32(in, uint32(len(salt)))
	in = append(in, salt...)
	in = le.AppendUint64(in, 0) // the lengths of the secret and of the associated data, which Rolecall does not use
	h0 := blake2b.Sum512(in)
	var first [8 * words]byte
	for lane := range h.lanes {
		for i := range uint32(2) {
			in := le.AppendUint32(le.AppendUint32(h0[:len(h0):len(h0)], i), lane)
			variableHash(first[:], in)
			b := &h.blocks[lane*h.lane+i]
			for w := range b {
				b[w] = le.Uint64(first[8*w:])
			}
		}
	}
}

// fill computes the blocks of one slice of one lane.
func (h *hash) fill(pass, slice, lane uint32) {
	independent := pass == 0 && slice < slices/2 // Argon2id chooses the referenced blocks independently of the password in the first half of the first pass
	var addresses, in, zero block
	in = block{uint64(pass), uint64(lane), uint64(slice), uint64(len(h.blocks)), uint64(h.passes), argon2id}
	next := func() {
		in[6]++
		addresses = block{}
		mix(&addresses, &in, &zero)
		again := addresses
		addresses = block{}
		mix(&addresses, &again, &zero)
	}
	i := uint32(0)
	if pass == 0 && slice == 0 {
		i = 2
		next()
	}
	for ; i < h.segment; i++ {
		at := lane*h.lane + slice*h.segment + i
		previous := at - 1
		if slice == 0 && i == 0 {
			previous += h.lane
		}
		random := h.blocks[previous][0]
		if independent {
			if i%words == 0 {
				next()
			}
			random = addresses[i%words]
		}
		if pass == 0 {
			h.blocks[at] = block{}
		}
		mix(&h.blocks[at], &h.blocks[previous], &h.blocks[h.reference(random, pass, slice, lane, i)])
	}
}

// reference returns the index of the block with which the previous block is mixed to
// compute block i of the slice (RFC 9106, section 3.4).
func (h *hash) reference(random uint64, pass, slice, lane, i uint32) uint32 {
	from := uint32(random>>32) % h.lanes
	if pass == 0 && slice == 0 {
		from = lane
	}
	size, start := (slices-1)*h.segment, (slice+1)%slices*h.segment
	if pass == 0 {
		size, start = slice*h.segment, 0
	}
	if from == lane {
		size += i
	}
	if from == lane || i == 0 {
		size--
	}
	x := random & (1<<32 - 1)
	x = x * x >> 32
	z := uint64(size) - 1 - x*uint64(size)>>32
	return from*h.lane + uint32((uint64(start)+z)%uint64(h.lane))
}

// key returns the result: a hash of length bytes of the XOR of the last blocks of all
// lanes.
func (h *hash) key(length uint32) []byte {
	var last block
	for lane := range h.lanes {
		for w, v := range h.blocks[(lane+1)*h.lane-1] {
			last[w] ^= v
		}
	}
	var in [8 * words]byte
	for w, v := range last {
		binary.LittleEndian.PutUint64(in[8*w:], v)
	}
	key := make([]byte, length)
	variableHash(key, in[:])
	return key
}

// variableHash is the function H' of RFC 9106, section 3.3. It fills out with a hash of
// in.
func variableHash(out, in []byte) {
	in = append(binary.LittleEndian.AppendUint32(nil, uint32(len(out))), in...)
	for len(out) > blake2b.Size {
		v := blake2b.Sum512(in)
		copy(out, v[:blake2b.Size/2])
		in, out = v[:], out[blake2b.Size/2:]
	}
	last, err := blake2b.New(len(out), nil)
	if err != nil {
		panic(err) // New fails only if the size is not from 1 to blake2b.Size
	}
	_, _ = last.Write(in) // a hash never returns an error
	last.Sum(out[:0])
}

// mix sets out to out ⊕ G(a, b), with the function G of RFC 9106, section 3.5.
//
//go:noescape
func mix(out, a, b *block)
