package auditlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Kind is the kind of a problem that Verify finds.
type Kind string

// The kinds of problems.
const (
	Altered  Kind = "altered"  // an event differs from its leaf
	Missing  Kind = "missing"  // an event of the log does not exist
	Inserted Kind = "inserted" // an event is not in the log
	Moved    Kind = "moved"    // an event is in the log at another number
	Wiped    Kind = "wiped"    // the data of an event was removed without an erasure
	Damaged  Kind = "damaged"  // the tiles of the log do not match its root
	Rebuilt  Kind = "rebuilt"  // the log does not begin with the events of the checkpoint
)

// Problem is a difference between the events of a tenant and their log.
type Problem struct {
	Kind   Kind
	Number int64            // the number of the event; 0: none
	Event  rolecall.EventID // zero: unknown
	Detail string
}

// Report is the result of Verify.
type Report struct {
	Log      rolecall.Log
	Pending  int64 // the number of events that are not in the log yet. They were not compared
	OldKeys  int   // the number of checkpoints that were signed with another key than that of the log
	Problems []Problem
}

// Verification is one run of Verify. Its fields are the arguments.
type Verification struct {
	Tenant   rolecall.Tenant         // zero: the log of the operators
	Notes    [][]byte                // signed checkpoints
	Kept     time.Duration           // how long events are kept at least, as the auditor expects; zero: as the settings of the tenant say
	Progress func(done, total int64) // is called after each step; nil: not called
}

// verifier has the state of a run.
type verifier struct {
	*Log
	Verification
	ctx    context.Context
	report Report

	expected map[tlog.Hash]int64 // leaves whose event was not found, with their numbers
	ids      map[int64]rolecall.EventID
	others   []other // events that do not match their leaf
	unknown  map[int64]bool
	erased   map[rolecall.AnyID]bool // users with the event of an erasure
	claims   map[rolecall.AnyID][]Problem
	first    rolecall.Time // of the oldest kept event

	begun      rolecall.Log // the state at the beginning
	statements []statement  // of the checkpoints
	retention  []retention  // of the settings in the log, in the order of their events
}

// other is an event that does not match the leaf of its number, or that has no number.
type other struct {
	number int64
	id     rolecall.EventID
	leaf   tlog.Hash
}

// Verify compares the events of a tenant, or those of the operators' log, with the leaves of the log, the
// leaves with the root, and the root with the checkpoint. It writes nothing. Errors are those of the
// database and of a malformed checkpoint. Everything else is in the report.
func (l *Log) Verify(ctx context.Context, arguments Verification) (Report, error) {
	if arguments.Tenant.ID.IsZero() {
		arguments.Tenant.ID = rolecall.OperatorsTenant
	}
	v := &verifier{
		Log: l, Verification: arguments, ctx: ctx, expected: map[tlog.Hash]int64{}, ids: map[int64]rolecall.EventID{}, unknown: map[int64]bool{},
		erased: map[rolecall.AnyID]bool{}, claims: map[rolecall.AnyID][]Problem{},
	}
	for _, step := range []func() error{v.begin, v.checkTiles, v.checkCheckpoints, v.checkEvents, v.checkUnlogged, v.resolve, v.checkRemoval, v.checkClaims} {
		if err := step(); err != nil {
			return v.report, err
		}
	}
	slices.SortStableFunc(v.report.Problems, func(a, b Problem) int { return int(min(max(a.Number-b.Number, -1), 1)) })
	return v.report, nil
}

func (v *verifier) view(fn func(*store.Tx) error) error { return v.store.View(v.ctx, v.Tenant.ID, fn) }

func (v *verifier) found(p Problem) { v.report.Problems = append(v.report.Problems, p) }

func (v *verifier) begin() error {
	return v.view(func(tx *store.Tx) (err error) {
		if v.report.Log, err = tx.Log(); err != nil {
			return err
		}
		v.begun = v.report.Log
		feed, err := tx.Feed(0)
		v.report.Pending = feed.Last - v.report.Log.Size
		return err
	})
}

// checkTiles compares the tiles of each level with the hashes in the next level, and the highest hashes
// with the root.
func (v *verifier) checkTiles() error {
	var complete []tlog.Hash // the hashes of the complete tiles of the level before
	for level, count := int64(0), v.report.Log.Size; count > 0; level, count = level+1, count/store.TileWidth {
		below := complete
		complete = nil
		err := v.tiles(level, 0, count, func(n int64, hashes []byte) {
			width := min(count-n*store.TileWidth, store.TileWidth)
			if int64(len(hashes)) < width*tlog.HashSize {
				v.damaged(level, n)
				hashes = make([]byte, width*tlog.HashSize)
			}
			for i := range width {
				if level > 0 && !slices.Equal(hashes[i*tlog.HashSize:(i+1)*tlog.HashSize], below[n*store.TileWidth+i][:]) {
					v.damaged(level-1, n*store.TileWidth+i)
				}
			}
			if width == store.TileWidth {
				complete = append(complete, store.TileHash(hashes[:width*tlog.HashSize]))
			}
		})
		if err != nil {
			return err
		}
	}
	if len(v.report.Problems) > 0 || v.report.Log.Size == 0 {
		return nil
	}
	root, err := v.rootOf(v.report.Log.Size)
	if err == nil && root != v.report.Log.Root {
		v.found(Problem{Kind: Damaged, Detail: "the root of the log does not match its tiles"})
	}
	return err
}

// damaged records that a tile does not match the log. The events of its leaves cannot be compared.
func (v *verifier) damaged(level, n int64) {
	first := n<<(store.TileHeight*(level+1)) + 1
	last := min((n+1)<<(store.TileHeight*(level+1)), v.report.Log.Size)
	if level == 0 {
		if v.unknown[n] {
			return
		}
		v.unknown[n] = true
	}
	v.found(Problem{Kind: Damaged, Number: first, Detail: fmt.Sprintf("the hashes of the events %d to %d were changed or deleted, so these events cannot be compared", first, last)})
}

// tiles calls fn for each tile of the level that has hashes from the number from on and before the number
// to. If the tile does not exist, its hashes are nil.
func (v *verifier) tiles(level, from, to int64, fn func(n int64, hashes []byte)) error {
	for n := from / store.TileWidth; n*store.TileWidth < to; {
		var page []store.Tile
		if err := v.view(func(tx *store.Tx) (err error) {
			page, err = tx.Tiles(level, n)
			return err
		}); err != nil {
			return err
		}
		for i := 0; i < store.TilesAtOnce && n*store.TileWidth < to; i, n = i+1, n+1 {
			var hashes []byte
			for _, tile := range page {
				if tile.N == n {
					hashes = tile.Hashes
				}
			}
			fn(n, hashes)
		}
	}
	return nil
}

func (v *verifier) rootOf(size int64) (tlog.Hash, error) { return v.Root(v.ctx, v.Tenant.ID, size) }

// ErrCheckpoint is the error for a checkpoint that is malformed or of another log.
var ErrCheckpoint = errors.New("the checkpoint")

// errOtherKey is the error for a checkpoint with no signature by the key of the log.
var errOtherKey = errors.New("another key")

func (v *verifier) checkCheckpoints() error {
	for _, signed := range v.Notes {
		if err := v.checkCheckpoint(signed); err != nil {
			return err
		}
	}
	return nil
}

// checkCheckpoint verifies the signature of the checkpoint, and that the log begins with its events. If the
// key of the log is another one, the events alone are compared: the auditor has kept the checkpoint.
func (v *verifier) checkCheckpoint(signed []byte) error {
	s, err := v.openCheckpoint(signed)
	cause := "the log was rebuilt after the checkpoint"
	switch {
	case errors.Is(err, errOtherKey): // a new key begins after the loss of all keys of the instance
		v.report.OldKeys++
		cause += ", and signed with another key, or the checkpoint is of another instance"
	case err != nil:
		return err
	}
	v.statements = append(v.statements, s)
	if s.size > v.report.Log.Size {
		v.found(Problem{Kind: Rebuilt, Detail: fmt.Sprintf("the log has %d events, but the checkpoint has %d", v.report.Log.Size, s.size)})
		return nil
	}
	if s.size == 0 {
		return nil
	}
	now, err := v.rootOf(s.size)
	if err != nil && len(v.report.Problems) > 0 { // a tile is damaged, which is already in the report
		return nil
	}
	if err == nil && now != s.root {
		v.found(Problem{Kind: Rebuilt, Detail: fmt.Sprintf("the first %d events of the log are not those of the checkpoint: %s", s.size, cause)})
	}
	return err
}

// openCheckpoint verifies the signature of the checkpoint, and returns its statement. With errOtherKey, it
// returns the statement too.
func (v *verifier) openCheckpoint(signed []byte) (s statement, err error) {
	origin, _, _ := strings.Cut(string(signed), "\n")
	path := tenantPath(v.Tenant.Name)
	if v.Tenant.ID == rolecall.OperatorsTenant {
		path = operatorsPath
	}
	if !strings.HasSuffix(origin, path) {
		return s, fmt.Errorf("%w is of another log: its first line does not end with %s", ErrCheckpoint, path)
	}
	known, err := v.verifiers(origin)
	if err != nil {
		return s, err
	}
	opened, err := note.Open(signed, known)
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	switch {
	case ok:
		opened, err = unverified.Note, errOtherKey
	case err != nil:
		return s, fmt.Errorf("%w is malformed, or was changed after it was signed: %w", ErrCheckpoint, err)
	}
	s, parseErr := parseNoteText(opened.Text)
	if parseErr != nil {
		return s, fmt.Errorf("%w is malformed", ErrCheckpoint)
	}
	return s, err
}

// verifiers returns the verifier of the key of the log, or none if the log has no key that the keys of the
// instance can decrypt.
func (v *verifier) verifiers(origin string) (note.Verifiers, error) {
	if v.report.Log.SigningKey == nil {
		return note.VerifierList(), nil
	}
	seed, err := v.keys.Open(keyPurpose, *v.report.Log.SigningKey, v.Tenant.ID[:])
	if err != nil {
		return note.VerifierList(), nil // with the next checkpoint, a new key begins
	}
	_, verifierKey, err := secret.NoteSigner(origin, seed)
	if err != nil {
		return nil, err
	}
	verifier, err := note.NewVerifier(verifierKey)
	if err != nil {
		return nil, err
	}
	return note.VerifierList(verifier), nil
}

// eventsAtOnce is the number of events that are read and compared together.
const eventsAtOnce = store.TilesAtOnce * store.TileWidth

// checkEvents compares the events that have numbers with the leaves.
func (v *verifier) checkEvents() error {
	size := v.report.Log.Size
	from := v.report.Log.Removed
	if err := v.view(func(tx *store.Tx) error {
		feed, err := tx.Feed(0)
		from = min(from, feed.First-1) / store.TileWidth * store.TileWidth
		return err
	}); err != nil {
		return err
	}
	for ; from < size; from += eventsAtOnce {
		to := min(from+eventsAtOnce, size)
		leaves := make(map[int64]tlog.Hash, eventsAtOnce)
		if err := v.tiles(0, from, to, func(n int64, hashes []byte) {
			for number := n * store.TileWidth; len(hashes) >= tlog.HashSize && !v.unknown[n]; hashes = hashes[tlog.HashSize:] {
				number++
				leaves[number] = tlog.Hash(hashes[:tlog.HashSize])
			}
		}); err != nil {
			return err
		}
		events, err := v.events(from, to)
		if err != nil {
			return err
		}
		for i, number := 0, from+1; number <= to; number++ {
			var event rolecall.LoggedEvent
			if i < len(events) && events[i].Number == number {
				event, i = events[i], i+1
			}
			if leaf, known := leaves[number]; known {
				v.compare(number, leaf, event)
			}
		}
		if v.Progress != nil {
			v.Progress(to, size)
		}
	}
	return v.checkBeyond()
}

// compare compares an event with its leaf. The event is zero if the number does not exist.
func (v *verifier) compare(number int64, leaf tlog.Hash, event rolecall.LoggedEvent) {
	if leaf == store.LostLeaf() && number > v.report.Log.Removed {
		v.found(Problem{Missing, number, event.ID, "the event was deleted before the log had its leaf"})
		return
	}
	if event.Event != nil && event.Salts != nil {
		actual := event.Event.LeafHash(event.Salts)
		if actual == leaf {
			if v.first == 0 {
				v.first = event.Event.OccurredAt
			}
			v.readRetention(event.Event)
			v.checkErased(number, &event)
			return
		}
		v.others = append(v.others, other{number, event.ID, actual})
	} else if event.Event != nil {
		v.others = append(v.others, other{number: number, id: event.ID})
	}
	if number > v.report.Log.Removed {
		v.expected[leaf] = number
		v.ids[number] = event.ID
	}
}

// checkErased records the erasure of a user, and which users must have been erased because their data is
// missing.
func (v *verifier) checkErased(number int64, event *rolecall.LoggedEvent) {
	e := event.Event
	if e.Type == rolecall.EventUserErased {
		v.erased[e.Subject.ID] = true
	}
	for g := range rolecall.EventGroupCount {
		if !event.Salts.Erased(g) {
			continue
		}
		problem := Problem{Kind: Wiped, Number: number, Event: event.ID, Detail: "the data was removed, but the log has no erasure of the user"}
		if len(e.GroupData(g)) > 0 && (g != rolecall.GroupValues || !isErasedForm(e)) {
			problem.Kind, problem.Detail = Altered, "the erased data was replaced by other data"
			v.found(problem)
			return
		}
		switch actor := rolecall.AnyID(e.Actor.ID); {
		case g == rolecall.GroupSource && !actor.IsZero() && actor != e.Subject.ID:
			v.claims[actor] = append(v.claims[actor], problem)
		case e.Subject.Type == rolecall.SubjectUser:
			v.claims[e.Subject.ID] = append(v.claims[e.Subject.ID], problem)
		default:
			v.found(problem)
		}
	}
}

// isErasedForm reports whether the values are those that an erasure leaves.
func isErasedForm(e *rolecall.Event) bool {
	erased := *e
	erased.Values = e.ErasedValues()
	return string(erased.GroupData(rolecall.GroupValues)) == string(e.GroupData(rolecall.GroupValues))
}

// events returns the events with the numbers. If a row is malformed, its event has no salts.
func (v *verifier) events(after, to int64) (events []rolecall.LoggedEvent, err error) {
	err = v.view(func(tx *store.Tx) (err error) {
		events, err = tx.LoggedEvents(after, to)
		return err
	})
	switch {
	case err == nil || errors.Is(err, rolecall.ErrUnavailable) || v.ctx.Err() != nil:
		return events, err
	case to == after+1:
		for i := range events {
			events[i].Event = new(rolecall.Event)
		}
		return events, nil
	}
	half := after + (to-after)/2
	first, err := v.events(after, half)
	if err != nil {
		return nil, err
	}
	second, err := v.events(half, to)
	return append(first, second...), err
}

// checkBeyond finds events with numbers that were never given.
func (v *verifier) checkBeyond() error {
	var last int64
	read := func(tx *store.Tx) error {
		feed, err := tx.Feed(0)
		last = feed.Last
		return err
	}
	if err := v.view(read); err != nil {
		return err
	}
	beyond, err := v.events(last, last+eventsAtOnce)
	if err != nil || len(beyond) == 0 {
		return err
	}
	if err := v.view(read); err != nil { // some may have got their numbers since then
		return err
	}
	for _, event := range beyond {
		if event.Number > last {
			v.others = append(v.others, other{id: event.ID})
		}
	}
	return nil
}

// checkUnlogged finds events that have no number and do not wait for one.
func (v *verifier) checkUnlogged() error {
	for after := (rolecall.EventID{}); ; {
		var found store.Unlogged
		if err := v.view(func(tx *store.Tx) (err error) {
			found, err = tx.UnloggedEvents(after, eventsAtOnce)
			return err
		}); err != nil || found.Last.IsZero() {
			return err
		}
		after = found.Last
		v.report.Pending += found.Waiting
		for _, id := range found.IDs {
			o := other{id: id}
			if err := v.view(func(tx *store.Tx) error {
				event, err := tx.LoggedEvent(id)
				if err == nil && event.Salts != nil {
					o.leaf = event.Event.LeafHash(event.Salts)
				}
				return err
			}); errors.Is(err, rolecall.ErrUnavailable) || v.ctx.Err() != nil {
				return err
			}
			v.others = append(v.others, o)
		}
	}
}

// resolve finds out for each event without its leaf, and each leaf without its event, what happened.
func (v *verifier) resolve() error {
	// After the start of this verification, events may have been deleted because of their age.
	if err := v.view(func(tx *store.Tx) error {
		now, err := tx.Log()
		v.report.Log.Removed = max(v.report.Log.Removed, now.Removed)
		return err
	}); err != nil {
		return err
	}
	altered := map[int64]rolecall.EventID{}
	for _, o := range v.others {
		at, isElsewhere := v.expected[o.leaf]
		switch {
		case isElsewhere && o.number == 0:
			v.found(Problem{Moved, at, o.id, "the event has lost its number"})
			delete(v.expected, o.leaf)
		case isElsewhere:
			v.found(Problem{Moved, o.number, o.id, fmt.Sprintf("the event belongs at the number %d", at)})
			delete(v.expected, o.leaf)
		case o.number == 0 || o.number <= v.report.Log.Removed:
			v.found(Problem{Inserted, o.number, o.id, "the log has no such event"})
		default:
			altered[o.number] = o.id
		}
	}
	for _, number := range v.expected {
		switch id, is := altered[number]; {
		case is:
			v.found(Problem{Altered, number, id, "the event differs from its leaf"})
			delete(altered, number)
		case number > v.report.Log.Removed:
			v.found(Problem{Missing, number, v.ids[number], "the event does not exist"})
		}
	}
	for number, id := range altered {
		v.found(Problem{Inserted, number, id, "the log has another event at this number"})
	}
	return nil
}

// edge is how long after the oldest kept event an event can be about a user whose erasure was recorded
// before, and was deleted because of its age.
const edge = 10 * 60 * 1_000_000 // ten minutes, in microseconds

// checkClaims reports the events with erased data whose erasure is not in the log. The erasure can be
// so recent that the log does not have it yet.
func (v *verifier) checkClaims() error {
	for user, claims := range v.claims {
		if v.erased[user] {
			continue
		}
		var recent bool
		if err := v.view(func(tx *store.Tx) error {
			page, err := tx.Events(rolecall.EventQuery{Subject: user, Type: rolecall.EventUserErased, Limit: 1})
			if err != nil || len(page.Items) == 0 {
				return err
			}
			event, err := tx.LoggedEvent(page.Items[0].ID)
			recent = err == nil && (event.Number == 0 || event.Number > v.report.Log.Size)
			return err
		}); err != nil {
			return err
		}
		for _, claim := range claims {
			atEdge := v.report.Log.Removed > 0 && claim.Event.CreatedAt() < v.first+edge
			if !recent && !atEdge {
				v.found(claim)
			}
		}
	}
	return nil
}
