package storetest

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Caches is a Database that finds changes of cached data that are not invalidated. It imitates the caches of
// a node: it keeps what a node can cache about the first rows that its Updates insert, and reads it again
// after each Update. If the data differs, the Update must have announced an id on which the copy depends. An
// announcement must also follow a statement that changed a row.
type Caches struct {
	store.Database
	t testing.TB

	mu           sync.Mutex
	running      int                     // Updates; the data is compared when none runs
	kept         map[int]int             // how many copies, by the index of the cache
	read         map[int]map[string]bool // the tables of the statements that read a copy, by the index of the cache
	written      map[string]bool         // the tables that changed since the last comparison
	copies       map[cacheKey]cached
	announced    []rolecall.AnyID
	here         []rolecall.AnyID // invalidated in this process
	deletedUntil rolecall.Time    // the last time in a deletion: rows that have expired by then can be deleted
}

// cacheKey identifies an entry of a cache.
type cacheKey struct {
	cache  int // index in nodeCaches
	tenant rolecall.TenantID
	key    any
}

// cached is a copy of stored data.
type cached struct {
	ids     []rolecall.AnyID // an invalidation of one of them makes the copy stale
	value   any              // nil if no row exists
	used    rolecall.Time    // the time of the last use, which other processes need not know
	expires rolecall.Time
}

// nodeCaches are the caches of a node. Each is keyed by a column of a table.
var nodeCaches = []struct {
	table, column string
	ofTenant      bool
	inserts       bool // the read inserts rows
	read          func(tx *store.Tx, tenant *rolecall.Tenant, key any) (cached, error)
}{
	{"session_tokens", "hash", true, false, cachedSession},
	{"api_tokens", "hash", true, false, cachedToken},
	{"operator_keys", "hash", false, false, cachedOperatorKey},
	{"tenants", "name", false, false, cachedTenant},
	{"attempts", "bucket", false, false, cachedBucket},
	{"users", "id", true, true, func(tx *store.Tx, tenant *rolecall.Tenant, id any) (cached, error) {
		return cachedHolder(tx, tenant, tokenOfUser(rolecall.User{ID: id.(rolecall.UserID)}))
	}},
	{"service_accounts", "id", true, true, func(tx *store.Tx, tenant *rolecall.Tenant, id any) (cached, error) {
		return cachedHolder(tx, tenant, tokenOfAccount(rolecall.ServiceAccount{ID: id.(rolecall.ServiceAccountID)}))
	}},
}

// copiesMax is how many entries of each cache are compared.
const copiesMax = 4

func cachedSession(tx *store.Tx, tenant *rolecall.Tenant, hash any) (cached, error) {
	s, err := tx.SessionWithRoles([]byte(hash.(string)), rolecall.MaxScan)
	c := cached{
		ids:  []rolecall.AnyID{rolecall.AnyID(tenant.ID), rolecall.AnyID(s.User.ID), rolecall.AnyID(s.Session.ID)},
		used: s.Session.LastUsedAt, expires: s.Session.IdleExpiresAt(tenant.Settings.For(s.Assignments, s.Session.LastUsedAt)),
	}
	s.Session.LastUsedAt, s.Token.Sealed = 0, nil // a refresh reads the sealed token again
	c.value = s
	return c, err
}

func cachedToken(tx *store.Tx, tenant *rolecall.Tenant, hash any) (cached, error) {
	s, err := tx.APITokenByHash([]byte(hash.(string)), rolecall.MaxScan)
	c := cached{
		ids:  []rolecall.AnyID{rolecall.AnyID(tenant.ID), rolecall.AnyID(s.Holder.ID), rolecall.AnyID(s.Token.ID)},
		used: s.Token.LastUsedAt, expires: s.Token.ExpiresAt,
	}
	s.Token.LastUsedAt = 0
	c.value = s
	return c, err
}

// cachedHolder returns the cache entry of a token of the holder. It inserts the token, which the caller must roll
// back. So each change of a holder is found, also if the case has not created a token.
func cachedHolder(tx *store.Tx, tenant *rolecall.Tenant, token rolecall.APIToken) (cached, error) {
	hash := aHash()
	tx.InsertAPIToken(token, hash)
	c, err := cachedToken(tx, tenant, string(hash))
	state := c.value.(rolecall.APITokenState)
	state.Token = rolecall.APIToken{}
	c.value, c.used, c.expires = state, 0, rolecall.Never
	return c, err
}

func cachedOperatorKey(tx *store.Tx, _ *rolecall.Tenant, hash any) (cached, error) {
	k, err := tx.OperatorKeyByToken([]byte(hash.(string)))
	c := cached{ids: []rolecall.AnyID{rolecall.AnyID(k.ID)}, used: k.LastUsedAt, expires: k.ExpiresAt}
	k.LastUsedAt = 0
	c.value = k
	return c, err
}

func cachedTenant(tx *store.Tx, _ *rolecall.Tenant, name any) (cached, error) {
	tenant, err := tx.TenantByName(name.(string))
	if errors.Is(err, rolecall.ErrNotFound) {
		return absentTenant(name.(string)), nil
	}
	return cached{ids: []rolecall.AnyID{rolecall.AnyID(tenant.ID)}, value: tenant, expires: rolecall.Never}, err
}

// absentTenant is the copy that records that no tenant has the name.
func absentTenant(name string) cached {
	return cached{ids: []rolecall.AnyID{rolecall.TenantNameID(name)}}
}

// cachedBucket returns whether the bucket can be full. Subtracted attempts leave the copy of a full bucket
// valid: the next attempt fills it again.
func cachedBucket(tx *store.Tx, _ *rolecall.Tenant, key any) (cached, error) {
	bucket := rolecall.Bucket{Key: []byte(key.(string))}
	attempts, err := tx.Attempts([]rolecall.Bucket{bucket}, 0)
	if err == nil && attempts[0].EndsAt == 0 {
		err = rolecall.ErrNotFound
	}
	if err != nil {
		return cached{}, err
	}
	return cached{ids: []rolecall.AnyID{bucket.ID()}, value: true, expires: attempts[0].EndsAt}, nil
}

// NewCaches returns Caches on the database, for the test.
func NewCaches(t testing.TB, db store.Database) *Caches {
	return &Caches{Database: db, t: t, copies: map[cacheKey]cached{}, kept: map[int]int{}, read: map[int]map[string]bool{}, written: map[string]bool{}}
}

// store returns a Store on the Caches. The data is compared at the end of each of its Updates.
func (c *Caches) store() *store.Store {
	return store.New(c, func(e store.Effects) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.here = append(c.here, e.Invalidated...)
		c.ended()
	})
}

// Update records what the transaction inserts and announces, and compares the copies with the data afterwards.
func (c *Caches) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	return c.Database.Update(ctx, tenant, func(q store.Querier) error { return fn(&cacheWatcher{Querier: q, caches: c, tenant: tenant}) })
}

// ended compares the copies with the data, unless another Update runs.
func (c *Caches) ended() {
	if c.running--; c.running > 0 {
		return
	}
	for key, before := range c.copies {
		if before.ids != nil && !c.isWritten(key.cache) {
			continue // no statement can have changed it
		}
		after, err := c.load(key)
		if err != nil {
			if !errors.Is(err, rolecall.ErrNotFound) && !errors.Is(err, store.ErrManyPermissions) {
				c.t.Errorf("caches: %v", err)
			}
			delete(c.copies, key)
			c.kept[key.cache]--
		} else {
			c.copies[key] = after
		}
		c.compare(key, before, after)
	}
	clear(c.written)
	c.announced, c.here, c.deletedUntil = nil, nil, 0
}

// isWritten reports whether a table that the cache reads has changed.
func (c *Caches) isWritten(cache int) bool {
	for table := range c.written {
		if c.read[cache][table] {
			return true
		}
	}
	return c.read[cache] == nil
}

// load reads the data of the key. The entries of a deleted tenant do not exist, because a node reads the
// tenant first.
func (c *Caches) load(key cacheKey) (data cached, err error) {
	run := c.Database.View
	if nodeCaches[key.cache].inserts {
		run = c.Database.Update
	}
	err = run(context.WithoutCancel(c.t.Context()), key.tenant, func(q store.Querier) error {
		tx := store.NewTx(&tableReader{q, c, key.cache}, key.tenant)
		var tenant rolecall.Tenant
		if !key.tenant.IsZero() {
			if tenant, err = tx.TenantByID(key.tenant); err != nil {
				return err
			}
		}
		data, err = nodeCaches[key.cache].read(tx, &tenant, key.key)
		return cmp.Or(err, errRefused) // rolls back
	})
	if errors.Is(err, errRefused) {
		return data, nil
	}
	return cached{}, err
}

// compare fails the test if the data has changed and the copy is not stale.
func (c *Caches) compare(key cacheKey, before, after cached) {
	table := nodeCaches[key.cache].table
	isChanged := !reflect.DeepEqual(before.value, after.value)
	switch {
	case before.ids == nil: // a new row, of which no copy existed
	case after.value == nil && before.expires <= c.deletedUntil: // the row had expired, so no node used its copy
	case isChanged && before.value != nil && !invalidates(c.announced, before):
		c.t.Errorf("what nodes cache of %s has changed from %+v to %+v, and no announced id makes their copies stale", table, before.value, after.value)
	case (isChanged || before.used != after.used) && !invalidates(c.here, before):
		c.t.Errorf("what this node caches of %s has changed from %+v to %+v (last used at %d, %d), and no id makes its copy stale", table, before.value, after.value, before.used, after.used)
	}
}

// invalidates reports whether one of the ids makes the copy stale.
func invalidates(ids []rolecall.AnyID, c cached) bool {
	return slices.ContainsFunc(ids, func(id rolecall.AnyID) bool { return slices.Contains(c.ids, id) })
}

// cacheWatcher records the inserted rows that nodes cache, and the announcements.
type cacheWatcher struct {
	store.Querier
	caches      *Caches
	tenant      rolecall.TenantID
	withoutRows bool // the last write changed no row
}

// Exec records the statement.
func (w *cacheWatcher) Exec(query string, args ...any) {
	w.withoutRows = false
	w.record(query, args)
	w.Querier.Exec(query, args...)
}

// Query records the statement.
func (w *cacheWatcher) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	n, err := w.Querier.Query(query, args, each)
	if writtenTable.MatchString(query) {
		w.withoutRows = n == 0
		w.record(query, args)
	}
	return n, err
}

// Announce records the id. It fails the test if the statement before it has changed no row.
func (w *cacheWatcher) Announce(id rolecall.AnyID) {
	if w.withoutRows {
		w.caches.t.Errorf("%v is announced after a statement that changed nothing", id)
	}
	w.caches.mu.Lock()
	defer w.caches.mu.Unlock()
	w.caches.announced = append(w.caches.announced, id)
	w.Querier.Announce(id)
}

// SetTenant records the tenant of the following statements.
func (w *cacheWatcher) SetTenant(tenant rolecall.TenantID) {
	w.tenant = tenant
	w.Querier.SetTenant(tenant)
}

// record adds an inserted row to the copies, and the times in a deletion to those until which rows have expired.
func (w *cacheWatcher) record(query string, args []any) {
	w.caches.mu.Lock()
	defer w.caches.mu.Unlock()
	if strings.HasPrefix(query, "delete from ") {
		for _, arg := range args {
			if at, ok := arg.(rolecall.Time); ok {
				w.caches.deletedUntil = max(w.caches.deletedUntil, at)
			}
		}
	}
	if write := writtenTable.FindStringSubmatch(query); write != nil {
		w.caches.written[write[1]] = true
	}
	insert := firstRow.FindStringSubmatch(query)
	if insert == nil {
		return
	}
	for i := range nodeCaches {
		cache := &nodeCaches[i]
		place := slices.Index(separator.Split(insert[2], -1), cache.column)
		if insert[1] != cache.table || place < 0 || w.caches.kept[i] >= copiesMax || cache.ofTenant && w.tenant.IsZero() {
			continue
		}
		key := cacheKey{cache: i, key: args[place]}
		if hash, ok := key.key.([]byte); ok {
			key.key = string(hash)
		}
		if cache.ofTenant {
			key.tenant = w.tenant
		}
		if _, known := w.caches.copies[key]; !known {
			w.caches.kept[i]++
			w.caches.copies[key] = cached{}
			if cache.table == "tenants" {
				w.caches.copies[key] = absentTenant(key.key.(string))
			}
		}
	}
}

var (
	// firstRow matches an insert: the table, and the columns, whose values are the first arguments.
	firstRow     = regexp.MustCompile(`^insert into ([a-z_]+) \(([^)]*)\)\s+values`)
	separator    = regexp.MustCompile(`,\s*`)
	writtenTable = regexp.MustCompile(`^(?:insert into|update|delete from) ([a-z_]+)`)
	readTable    = regexp.MustCompile(`(?:from|join) ([a-z_]+)`)
)

// tableReader records the tables that a cache reads.
type tableReader struct {
	store.Querier
	caches *Caches
	cache  int
}

// Query records the tables of the statement.
func (r *tableReader) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	tables := r.caches.read[r.cache]
	if tables == nil {
		tables = map[string]bool{}
		r.caches.read[r.cache] = tables
	}
	for _, table := range readTable.FindAllStringSubmatch(query, -1) {
		tables[table[1]] = true
	}
	return r.Querier.Query(query, args, each)
}
