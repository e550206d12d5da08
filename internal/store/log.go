package store

import (
	"errors"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
)

const (
	selectLog = `select size, root, removed, built_at, signing_key, removed_leaf from logs where tenant_id = $1`

	upsertLog = `insert into logs (tenant_id, size, root, removed, built_at) values ($1, $2, $3, $4, $5)
		on conflict (tenant_id) do update set size = excluded.size, root = excluded.root, removed = excluded.removed, built_at = excluded.built_at`

	updateRemoved = `update logs set removed = $1, removed_leaf = $2 where tenant_id = $3`

	upsertSigningKey = `insert into logs (tenant_id, size, root, removed, built_at, signing_key) values ($1, 0, $2, 0, 0, $3)
		on conflict (tenant_id) do update set signing_key = excluded.signing_key`

	selectTile = `select hashes from tiles where tenant_id = $1 and level = $2 and n = $3`

	selectTiles = `select n, hashes from tiles where tenant_id = $1 and level = $2 and n >= $3 order by n limit ` + tilesAtOnce

	upsertTile = `insert into tiles (tenant_id, level, n, hashes) values ($1, $2, $3, $4)
		on conflict (tenant_id, level, n) do update set hashes = excluded.hashes`

	selectLeaves = `select number, leaf from changes where tenant_id = $1 and number > $2 and number <= $3 order by number`

	loggedColumns = `r.id, r.type, r.occurred_at, r.actor_type, r.actor_id, r.actor_via, r.actor_token, r.subject_type,
		r.subject_id, r.members, r.request_id, r.session_id, r.source, r.reason, r.before, r.after, r.salts`

	selectWithoutLeaf = `select c.number, ` + loggedColumns + ` from changes c join events r on r.tenant_id = $1 and r.id = c.event_id
		where c.tenant_id = $1 and c.number > $2 and c.number <= $3 and c.leaf is null`

	updateSalts = `update events set salts = $1 where tenant_id = $2 and id = $3`

	selectNumbers = `select number, event_id from changes where tenant_id = $1 and number > $2 and number <= $3 order by number`

	selectLogged = `select c.number, ` + loggedColumns + ` from changes c join events r on r.tenant_id = $1 and r.id = c.event_id
		where c.tenant_id = $1 and c.number > $2 and c.number <= $3 order by c.number`

	selectLoggedEvent = `select ` + loggedColumns + ` from events r where r.tenant_id = $1 and r.id = $2`

	// selectUnlogged returns events without a number, of the events after an id.
	selectUnlogged = `select e.id from (select id, arrival from events where tenant_id = $1 and id > $2 order by id limit $3) e
		where e.arrival is null and not exists (select 1 from changes c where c.tenant_id = $1 and c.event_id = e.id) order by e.id`

	selectLastEvent = `select id from (select id from events where tenant_id = $1 and id > $2 order by id limit $3) e order by id desc limit 1`

	selectQueued = `select n from event_queue where tenant_id = $1 and event_id = $2 limit 1`

	selectNumber = `select number from changes where tenant_id = $1 and event_id = $2 order by number limit 1`
)

// TileHeight is the number of levels of the Merkle tree in a tile. A complete tile has 256 hashes.
const TileHeight = 8

const (
	// TileWidth is the number of hashes of a complete tile.
	TileWidth = 1 << TileHeight

	// LeavesAtOnce is the maximum number of leaves that one call of BuildLog adds to the log.
	LeavesAtOnce = 8 * TileWidth

	// TilesAtOnce is the maximum number of tiles that Tiles returns.
	TilesAtOnce = 16

	tilesAtOnce = "16" // the same, as text
)

// lostLeaf is the leaf of an event that was deleted before its leaf was stored: before the migration that created the
// log, or by a node that still runs a version of Rolecall without the log.
var lostLeaf = tlog.RecordHash([]byte(`{"version":1,"deletedBeforeTheLog":true}`))

// LostLeaf returns the hash of the leaf of events that were deleted before the log had their leaves.
func LostLeaf() tlog.Hash { return lostLeaf }

// loggedRow is an event as it is stored, with the salts of its commitments.
type loggedRow struct {
	number int64
	eventRow
	salts []byte
}

func loggedDest(r *loggedRow) []any {
	dest := eventDest(&r.eventRow)
	return append(dest[:len(dest)-1], &r.salts)
}

// parse returns the event with all of its values, and its salts or nil.
func (r *loggedRow) parse() (e rolecall.Event, salts *rolecall.EventSalts, err error) {
	e = r.Event
	if r.values.Before != nil || r.values.After != nil {
		e.Values = &r.values
	}
	salts, err = rolecall.ParseEventSalts(r.salts)
	return e, salts, err
}

// Log returns the state of the Merkle log of the tenant.
func (t *Tx) Log() (l rolecall.Log, err error) {
	var root []byte
	err = t.row(selectLog, []any{t.tenant}, &l.Size, &root, &l.Removed, &l.BuiltAt, &l.SigningKey, &l.RemovedLeaf)
	if errors.Is(err, rolecall.ErrNotFound) {
		err = nil // the log has no leaf yet
	}
	copy(l.Root[:], root)
	return l, err
}

// LeafHash returns the hash of the leaf with the number, which begins at 1. It returns ErrNotFound if its
// tile does not exist.
func (t *Tx) LeafHash(number int64) (tlog.Hash, error) {
	hashes, err := t.Hashes().ReadHashes([]int64{tlog.StoredHashIndex(0, number-1)})
	if err != nil {
		return tlog.Hash{}, err
	}
	return hashes[0], nil
}

// SetSigningKey stores the encrypted key that signs the checkpoints of the log. Call LockFeed first.
func (t *Tx) SetSigningKey(sealed string) {
	var empty tlog.Hash
	t.q.Exec(upsertSigningKey, t.tenant, empty[:], sealed)
}

// BuildLog adds the leaves of the oldest numbered events that are not in the Merkle log yet, at most
// LeavesAtOnce. It returns how many it added.
func (t *Tx) BuildLog(now rolecall.Time) (added int, err error) {
	feed, err := t.Feed(0)
	if err != nil {
		return 0, err
	}
	log, err := t.Log()
	if err != nil || log.Size >= feed.Last {
		return 0, err
	}
	if _, _, err := t.LockFeed(); err != nil {
		return 0, err
	}
	if log, err = t.Log(); err != nil {
		return 0, err
	}
	if log.Size == 0 {
		log.Removed = feed.First - 1
	}
	to := min(feed.Last, log.Size+LeavesAtOnce)
	if to <= log.Size {
		return 0, nil
	}
	leaves, err := t.leaves(log.Size, to)
	if err != nil {
		return 0, err
	}
	tiles := t.Hashes()
	if root, err := tlog.TreeHash(log.Size, tiles); err != nil || log.Size > 0 && root != log.Root {
		return 0, errors.Join(ErrLogDamaged, err)
	}
	if err := tiles.add(log.Size, leaves); err != nil {
		return 0, err
	}
	root, err := tlog.TreeHash(to, tiles)
	if err != nil {
		return 0, err
	}
	t.q.Exec(upsertLog, t.tenant, to, root[:], log.Removed, now)
	return len(leaves), nil
}

// leaves returns the hashes of the leaves of the events with numbers after after and up to to. It
// computes those of events that are older than the log.
func (t *Tx) leaves(after, to int64) ([]tlog.Hash, error) {
	leaves, without := make([]tlog.Hash, to-after), false
	for i := range leaves {
		leaves[i] = lostLeaf
	}
	_, err := t.q.Query(selectLeaves, []any{t.tenant, after, to}, func(scan func(dest ...any) error) error {
		var number int64
		var leaf []byte
		err := scan(&number, &leaf)
		if err == nil && number > after && number <= to && copy(leaves[number-after-1][:], leaf) == 0 {
			without = true
		}
		return err
	})
	if err != nil || !without {
		return leaves, err
	}
	var rows []loggedRow
	if _, err := t.q.Query(selectWithoutLeaf, []any{t.tenant, after, to}, into(&rows, func(r *loggedRow) []any {
		return append([]any{&r.number}, loggedDest(r)...)
	})); err != nil {
		return nil, err
	}
	for i := range rows {
		e, salts, err := rows[i].parse()
		if err != nil {
			return nil, err
		}
		if salts == nil {
			salts = new(rolecall.NewEventSalts())
			t.q.Exec(updateSalts, salts.Stored(), t.tenant, e.ID)
		}
		leaves[rows[i].number-after-1] = e.LeafHash(salts)
	}
	return leaves, nil
}

// Hashes reads hashes of the Merkle log from its tiles (tlog.HashReader). It keeps the tiles that it
// has read.
type Hashes struct {
	tx    *Tx
	tiles map[tile][]byte
}

// tile identifies a tile of a log.
type tile struct{ level, n int64 }

// Hashes returns a reader of the hashes of the Merkle log.
func (t *Tx) Hashes() *Hashes { return &Hashes{tx: t, tiles: map[tile][]byte{}} }

// ReadHashes returns the hashes with the indexes (tlog.HashReader). It fails if a tile does not exist.
func (h *Hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		found := tlog.TileForIndex(TileHeight, index)
		data, err := h.read(tile{int64(found.L), found.N})
		if err != nil {
			return nil, err
		}
		if hashes[i], err = tlog.HashFromTile(found, data, index); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// read returns the hashes of the tile. It returns ErrNotFound if the tile does not exist.
func (h *Hashes) read(at tile) (data []byte, err error) {
	if data, ok := h.tiles[at]; ok {
		return data, nil
	}
	if err := h.tx.row(selectTile, []any{h.tx.tenant, at.level, at.n}, &data); err != nil {
		return nil, err
	}
	h.tiles[at] = data
	return data, nil
}

// add appends leaves to a log with size leaves, and stores the tiles that change.
func (h *Hashes) add(size int64, leaves []tlog.Hash) error {
	for level := int64(0); len(leaves) > 0; level++ {
		var complete []tlog.Hash
		for next := size; len(leaves) > 0; {
			at, data := tile{level, next / TileWidth}, []byte(nil)
			if width := next % TileWidth; width > 0 {
				stored, err := h.read(at)
				if err != nil {
					return err
				}
				if int64(len(stored)) < width*tlog.HashSize {
					return ErrLogDamaged
				}
				data = slices.Clone(stored[:width*tlog.HashSize])
			}
			room := min(TileWidth-int(next%TileWidth), len(leaves))
			for _, leaf := range leaves[:room] {
				data = append(data, leaf[:]...)
			}
			h.tiles[at] = data
			h.tx.q.Exec(upsertTile, h.tx.tenant, at.level, at.n, data)
			if leaves, next = leaves[room:], next+int64(room); next%TileWidth == 0 {
				complete = append(complete, TileHash(data))
			}
		}
		size, leaves = size/TileWidth, complete
	}
	return nil
}

// ErrLogDamaged is the error of a log whose tiles were changed. Such a log stays as it is, so that rolecall
// events verify reports the change.
var ErrLogDamaged = errors.New("store: the tiles of the Merkle log do not match its root; rolecall events verify finds the cause")

// TileHash returns the hash of a complete tile, which is one of the hashes in a tile of the next
// level.
func TileHash(hashes []byte) (hash tlog.Hash) {
	if len(hashes) <= tlog.HashSize {
		copy(hash[:], hashes)
		return hash
	}
	half := len(hashes) / 2
	return tlog.NodeHash(TileHash(hashes[:half]), TileHash(hashes[half:]))
}

// Tile is a row of 256 hashes of a level of the Merkle tree, or fewer at the end of the log.
type Tile struct {
	N      int64
	Hashes []byte
}

// Tiles returns the tiles of the level from the number n on, at most TilesAtOnce.
func (t *Tx) Tiles(level, n int64) (tiles []Tile, err error) {
	_, err = t.q.Query(selectTiles, []any{t.tenant, level, n}, into(&tiles, func(tile *Tile) []any { return []any{&tile.N, &tile.Hashes} }))
	return tiles, err
}

// LoggedEvents returns the events with numbers after after and up to to, in the order of their numbers.
// If a row is malformed, it fails, and returns the numbers and ids only.
func (t *Tx) LoggedEvents(after, to int64) ([]rolecall.LoggedEvent, error) {
	var events []rolecall.LoggedEvent
	if _, err := t.q.Query(selectNumbers, []any{t.tenant, after, to}, into(&events, func(e *rolecall.LoggedEvent) []any {
		return []any{&e.Number, &e.ID}
	})); err != nil {
		return nil, err
	}
	var rows []loggedRow
	if _, err := t.q.Query(selectLogged, []any{t.tenant, after, to}, into(&rows, func(r *loggedRow) []any {
		return append([]any{&r.number}, loggedDest(r)...)
	})); err != nil {
		return events, err
	}
	next := 0
	for i := range events {
		for next < len(rows) && rows[next].number < events[i].Number {
			next++
		}
		if next == len(rows) || rows[next].number != events[i].Number {
			continue
		}
		e, salts, err := rows[next].parse()
		if err != nil {
			return events, err
		}
		events[i].Event, events[i].Salts = &e, salts
	}
	return events, nil
}

// LoggedEvent returns the event with its number in the log. The number is zero if the event has no number
// yet. LoggedEvent returns ErrNotFound if the event does not exist.
func (t *Tx) LoggedEvent(id rolecall.EventID) (l rolecall.LoggedEvent, err error) {
	var r loggedRow
	if err := t.row(selectLoggedEvent, []any{t.tenant, id}, loggedDest(&r)...); err != nil {
		return l, err
	}
	e, salts, err := r.parse()
	if err != nil {
		return l, err
	}
	l = rolecall.LoggedEvent{ID: id, Event: &e, Salts: salts}
	if err := t.row(selectNumber, []any{t.tenant, id}, &l.Number); err != nil && !errors.Is(err, rolecall.ErrNotFound) {
		return l, err
	}
	return l, nil
}

// Unlogged is the result of UnloggedEvents.
type Unlogged struct {
	IDs     []rolecall.EventID // events that have no number and do not wait for one
	Waiting int64              // the number of events that wait for a number
	Last    rolecall.EventID   // the last event that was read; zero: there are no further events
}

// UnloggedEvents reads the next limit events after an id, and returns those without a number.
func (t *Tx) UnloggedEvents(after rolecall.EventID, limit int) (u Unlogged, err error) {
	if after.IsZero() {
		after = beforeAll
	}
	err = t.row(selectLastEvent, []any{t.tenant, after, limit}, &u.Last)
	if errors.Is(err, rolecall.ErrNotFound) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	var without []rolecall.EventID
	if _, err := t.q.Query(selectUnlogged, []any{t.tenant, after, limit}, into(&without, oneColumn)); err != nil {
		return u, err
	}
	for _, id := range without {
		var n int64
		err := t.row(selectQueued, []any{t.tenant, id}, &n)
		if err == nil {
			u.Waiting++
		}
		if errors.Is(err, rolecall.ErrNotFound) { // it may have got its number since the first statement
			err = t.row(selectNumber, []any{t.tenant, id}, &n)
		}
		if errors.Is(err, rolecall.ErrNotFound) {
			u.IDs = append(u.IDs, id)
		} else if err != nil {
			return u, err
		}
	}
	return u, nil
}
