package sqlite

import "time"

// checkpointPause is how long commits collect in the log before they are copied to the
// file. A page that was written several times in this pause is copied once.
const checkpointPause = 200 * time.Millisecond

// logMax makes the writer itself do a checkpoint when the log has 64 MiB. Under continuous
// writes, SQLite can restart the log only then.
const logMax = "wal_autocheckpoint(16000)"

// checkpointer copies commits from the log to the file, so that no commit waits for it.
// In the writer, this took a seventh of the time of a create.
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
		// A failure loses nothing: the log keeps what was not moved, and the next
		// commit or the next start tries again.
		_ = p.conn.exec("pragma wal_checkpoint(passive)")
	}
}

func (p *checkpointer) close() error {
	close(p.end)
	<-p.ended
	return p.conn.Close()
}
