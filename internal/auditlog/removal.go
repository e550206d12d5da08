package auditlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// statement has the contents of a checkpoint.
type statement struct {
	size      int64
	root      tlog.Hash
	at        rolecall.Time // when the checkpoint was signed
	removed   int64         // the events up to this number were deleted because of their age
	removedTo rolecall.Time // when the last deleted event occurred; zero: no event was deleted, or its leaf is unknown
}

// unknownTime replaces the time of the last deleted event if its leaf is unknown.
const unknownTime = "unknown"

// noteText returns the text of a checkpoint before it is signed. Its first three lines are those of C2SP
// tlog-checkpoint, and the others are extensions.
func (s *statement) noteText(origin string) string {
	text := origin + "\n" + strconv.FormatInt(s.size, 10) + "\n" + s.root.String() + "\ntime " + s.at.String() + "\n"
	if s.removed == 0 {
		return text
	}
	last := unknownTime
	if s.removedTo != 0 {
		last = s.removedTo.String()
	}
	return text + "removed " + strconv.FormatInt(s.removed, 10) + " " + last + "\n"
}

var errNoteText = errors.New("auditlog: not the text of a checkpoint")

// parseNoteText parses the result of noteText.
func parseNoteText(text string) (s statement, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 5 || lines[len(lines)-1] != "" {
		return s, errNoteText
	}
	var errs [5]error
	s.size, errs[0] = strconv.ParseInt(lines[1], 10, 64)
	s.root, errs[1] = tlog.ParseHash(lines[2])
	errs[2] = s.at.UnmarshalText([]byte(strings.TrimPrefix(lines[3], "time ")))
	if len(lines) > 5 {
		number, last, _ := strings.Cut(strings.TrimPrefix(lines[4], "removed "), " ")
		s.removed, errs[3] = strconv.ParseInt(number, 10, 64)
		if last != unknownTime {
			errs[4] = s.removedTo.UnmarshalText([]byte(last))
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	if s.noteText(lines[0]) != text {
		return s, errNoteText
	}
	return s, nil
}

// statement returns the statement of a checkpoint of the state.
func (l *Log) statement(ctx context.Context, tenant rolecall.TenantID, state *rolecall.Log) (s statement, err error) {
	s = statement{size: state.Size, root: state.Root, at: l.now(), removed: state.Removed}
	if state.Removed == 0 {
		return s, nil
	}
	err = l.store.View(ctx, tenant, func(tx *store.Tx) (err error) {
		s.removedTo, err = lastRemoved(tx, state)
		return err
	})
	return s, damaged(err)
}

// lastRemoved returns when the last deleted event occurred. It returns zero if the stored leaf is not that of
// the event, and ErrNotFound if the hash of the event was deleted.
func lastRemoved(tx *store.Tx, state *rolecall.Log) (rolecall.Time, error) {
	hash, err := tx.LeafHash(state.Removed)
	if err != nil || tlog.RecordHash(state.RemovedLeaf) != hash {
		return 0, err
	}
	var leaf struct{ OccurredAt rolecall.Time }
	return leaf.OccurredAt, json.Unmarshal(state.RemovedLeaf, &leaf)
}

// retention is a setting of the log: until the given time, the tenant kept its events for the time before, and then
// for the time after.
type retention struct {
	until         rolecall.Time
	before, after time.Duration
}

// readRetention reads how long events are kept from the event of a change of the settings.
func (v *verifier) readRetention(e *rolecall.Event) {
	if e.Type != rolecall.EventTenantUpdated || e.Values == nil {
		return
	}
	kept := func(value []byte) (time.Duration, error) {
		var changed struct{ Settings rolecall.TenantSettings }
		err := json.Unmarshal(value, &changed)
		return lifetime(changed.Settings), err
	}
	before, err := kept(e.Values.Before)
	if err != nil {
		return // the data of the event was removed, which is reported elsewhere
	}
	if after, err := kept(e.Values.After); err == nil {
		v.retention = append(v.retention, retention{e.OccurredAt, before, after})
	}
}

// lifetime returns how long the settings keep an event. The service stores no value below leastLifetime. If a writer
// to the database did, it counts as leastLifetime.
func lifetime(settings rolecall.TenantSettings) time.Duration {
	return max(settings.EventLifetime(), leastLifetime)
}

// leastLifetime is the minimum of the setting eventsKeptSeconds.
const leastLifetime = 24 * time.Hour

// allows reports whether an event of the time at could be deleted because of its age, at a time that is not later
// than by. If not, it returns the retention.
func (v *verifier) allows(at, by rolecall.Time) (time.Duration, bool) {
	settings := v.Tenant.Settings
	settings.EventsAtLeast = 0 // the command does not know the minimum of the service
	kept := lifetime(settings)
	for _, r := range v.retention {
		if kept = r.before; r.until > by {
			break
		}
		if at.Add(max(kept, v.Kept)) <= r.until+edge {
			return 0, true
		}
		kept = r.after
	}
	kept = max(kept, v.Kept)
	return kept, at.Add(kept) <= by+edge
}

// checkRemoval verifies that the deleted events were old enough when they were deleted. Those of the operators' log are
// never deleted.
func (v *verifier) checkRemoval() error {
	for i := range v.statements {
		s := &v.statements[i]
		switch {
		case s.removedTo != 0:
			v.checkAge(s.removed, s.removedTo, s.at)
		case s.removed > 0:
			if err := v.checkUnproved(s.removed); err != nil {
				return err
			}
		}
	}
	removed := v.begun.Removed
	switch {
	case removed == 0:
		return nil
	case v.Tenant.ID == rolecall.OperatorsTenant:
		v.found(Problem{Kind: Missing, Number: removed, Detail: "the events up to this number were deleted, but events of the operators' log are never deleted"})
		return nil
	case removed > v.begun.Size:
		v.found(Problem{Kind: Missing, Number: removed, Detail: fmt.Sprintf("the events up to this number are said to be deleted because of their age, but the log has %d events", v.begun.Size)})
		return nil
	}
	var at rolecall.Time
	err := v.view(func(tx *store.Tx) (err error) {
		at, err = lastRemoved(tx, &v.begun)
		return err
	})
	if err != nil {
		if len(v.report.Problems) > 0 && !errors.Is(err, rolecall.ErrUnavailable) && v.ctx.Err() == nil {
			return nil // a tile is damaged, which is already in the report
		}
		return err
	}
	if at == 0 {
		return v.checkUnproved(removed)
	}
	for _, s := range v.statements {
		if removed > s.size { // the last deleted event was recorded after the checkpoint
			at = max(at, s.at-edge)
		}
	}
	v.checkAge(removed, at, v.now())
	return nil
}

// checkUnproved reports a removal up to the number without the leaf of the last event, unless the log had no leaves
// yet.
func (v *verifier) checkUnproved(number int64) error {
	before, err := v.beforeTheLog(number)
	if err == nil && !before {
		v.found(Problem{Kind: Missing, Number: number, Detail: "the events up to this number were deleted, and nothing proves that they were old enough"})
	}
	return err
}

// checkAge reports a removal that was not allowed. The last removed event has the number and the time at, and was
// removed by the time by.
func (v *verifier) checkAge(number int64, at, by rolecall.Time) {
	if kept, ok := v.allows(at, by); !ok {
		v.found(Problem{Kind: Missing, Number: number, Detail: fmt.Sprintf(
			"the events up to this number were deleted by %s, but the last of them is from %s or later, and events are kept for %s", by, at, days(kept))})
	}
}

// days returns the duration in days.
func days(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Hours()/24*10)/10, 'f', -1, 64) + " days"
}

// beforeTheLog reports whether all events up to the number were deleted before the log had their leaves.
func (v *verifier) beforeTheLog(number int64) (bool, error) {
	lost := store.LostLeaf()
	all := true
	err := v.tiles(0, 0, number, func(n int64, hashes []byte) {
		for next := n * store.TileWidth; next < min(number, (n+1)*store.TileWidth); next++ {
			all = all && len(hashes) >= tlog.HashSize && tlog.Hash(hashes[:tlog.HashSize]) == lost
			if !all {
				return
			}
			hashes = hashes[tlog.HashSize:]
		}
	})
	return all, err
}
