package sqlite

import "time"

// checkpointPause is how long commits collect in the log before they are moved to the
// file. A page that was written often meanwhile is moved once.
const checkpointPause = 200 * time.Millisecond

// logMax makes the writer itself move what the checkpointer has left when the log has
// 64 MiB. Only then can the log begin anew while writes follow each other without a pause.
const logMax = "wal_autocheckpoint(16000)"

// checkpointer moves what was committed from the log to the file, so that no
// commit waits for that. It was a seventh of the writer's time for a create.
type checkpointer struct {
	conn  *conn
	dirty chan struct{} // something was committed
	end   chan struct{}
	ended chan struct{}
}

func startCheckpointer(c *conn) *checkpointer {
	p := &checkpointer{conn: c, dirty: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{})}
	go p.loop()
	return p
}

// wake says that something was committed.
func (p *checkpointer) wake() {
	select {
	case p.dirty <- struct{}{}:
	default: // it knows
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

// close ends the loop and closes the connection.
func (p *checkpointer) close() error {
	close(p.end)
	<-p.ended
	return p.conn.Close()
}
