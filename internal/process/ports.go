package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports that FreeAddress returns are below the range of outgoing connections. Otherwise, an outgoing connection
// could take the port before a program listens on it. They are in blocks. The process that listens on the first port
// of a block gives the others to its programs, so two processes never give the same port. tools/freeport.mjs has the
// same blocks.
const (
	lowestPort = 10_000
	blockSize  = 100
	blockCount = 200
	attempts   = 100
)

// owned are the blocks of this process.
var owned struct {
	sync.Mutex
	first []net.Listener // the first port of each block, until the process ends
	next  int            // the next port to give
	left  int            // how many ports the last block has left
}

// FreeAddress returns a loopback address with an unused port, which no other process gets from FreeAddress.
func FreeAddress() (address string, err error) {
	owned.Lock()
	defer owned.Unlock()
	for range attempts {
		if owned.left == 0 {
			var listener net.Listener
			first := lowestPort + blockSize*rand.IntN(blockCount)
			if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first)); err != nil {
				continue // another process has the block
			}
			owned.first, owned.next, owned.left = append(owned.first, listener), first+1, blockSize-1
		}
		address = fmt.Sprintf("127.0.0.1:%d", owned.next)
		owned.next, owned.left = owned.next+1, owned.left-1
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", err
}
