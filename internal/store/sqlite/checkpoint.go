package sqlite

import "time"

// checkpointPause is how long the checkpointer waits before it copies commits from the
// write-ahead log to the database file. A page that was written several times in this
// time is copied once.
const checkpointPause = 200 * time.Millisecond

// logMax makes the writer do a checkpoint when the write-ahead log reaches 16,000 pages
// (64 MiB). Under continuous writes, only such a checkpoint lets SQLite restart the log.
const logMax = "wal_autocheckpoint(16000)"

// checkpointer copies commits from the log to the file, so that no commit waits for it.
// When the writer copied them, a seventh of the time of a create was the copying.
type checkpointer struct {
	conn  *conn
	dirty chan struct{} // receives a value after a commit
	end   chan struct{}
	ended chan struct{}
}

func startCheckpointer(c *conn) *checkpointer {
	p := &checkpointer{conn: c, dirty: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{})}
	go p.loop()
	return p
}

// wake makes the checkpointer run after a commit.
func (p *checkpointer) wake() {
	select {
	case p.dirty <- struct{}{}:
	default: // it is already awake
	}
}

func (p *checkpointer) loop() {
	defer close(p.ended)
	pause := time.NewTimer(0)
	<-pause.C
	for {
		select {
		case <-p.end:
			return
		case <-p.dirty:
		}
		pause.Reset(checkpointPause)
		select {
		case <-p.end:
			return
		case <-pause.C:
		}
		// A failure loses no data: the log keeps the pages that were not copied. The next
		// commit or the next start copies them.
		_ = p.conn.exec("pragma wal_checkpoint(passive)")
	}
}

func (p *checkpointer) close() error {
	close(p.end)
	<-p.ended
	return p.conn.Close()
}
