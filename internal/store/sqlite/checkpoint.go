package sqlite

import "time"

// checkpointPause is how long the checkpointer waits after a commit before it copies
// commits from the write-ahead log to the database file. A page that was written several
// times during this pause is copied once.
const checkpointPause = 200 * time.Millisecond

// logMax is the setting that makes the writer copy the write-ahead log itself when the log
// reaches 16,000 pages (64 MiB). Without a pause between writes, SQLite can only then
// start the log from its beginning again.
const logMax = "wal_autocheckpoint(16000)"

// checkpointer copies commits from the write-ahead log to the database file in the
// background, so that no commit waits for the copying. If the writer did this, it would
// take a seventh of the time of a create.
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

// wake makes the checkpointer run. The writer calls it after a commit.
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
		// A failure loses no data, because the log keeps the pages that were not copied.
		// They are copied after the next commit or the next start.
		_ = p.conn.exec("pragma wal_checkpoint(passive)")
	}
}

func (p *checkpointer) close() error {
	close(p.end)
	<-p.ended
	return p.conn.Close()
}
