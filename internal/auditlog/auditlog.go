// Package auditlog builds the Merkle log of the events of each tenant, proves its contents, and verifies
// it. The events of the change feed are the leaves, in the order of their numbers. The package may
// import the store.
package auditlog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outage"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// interval is the time between two rounds that build logs.
	interval = 2 * time.Second

	// roundLimit is the time limit of a transaction that builds a log, and of the last round. The end
	// of the context of Run does not interrupt them.
	roundLimit = 5 * time.Second

	// batchesOfRead is how many batches of leaves a reader adds itself. More are waiting only after an
	// upgrade, or if building has failed for a while.
	batchesOfRead = 4

	keyPurpose = "audit log signing key"
)

// Log builds and reads the Merkle logs of all tenants. It is safe for concurrent use.
type Log struct {
	store  *store.Store
	keys   *secret.Keys
	now    func() rolecall.Time
	log    *slog.Logger
	number func(context.Context, rolecall.TenantID) error

	outages *outage.Log

	mu  sync.Mutex
	due map[rolecall.TenantID]bool // tenants with events that are not in their log yet
}

// New returns a Log. The function number gives numbers to events that have none. Call Run to build the
// logs.
func New(s *store.Store, keys *secret.Keys, now func() rolecall.Time, log *slog.Logger, outages *outage.Log, number func(context.Context, rolecall.TenantID) error) *Log {
	return &Log{store: s, keys: keys, now: now, log: log, outages: outages, number: number, due: map[rolecall.TenantID]bool{}}
}

// Numbered tells Run that events of the tenant have new numbers.
func (l *Log) Numbered(tenant rolecall.TenantID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due[tenant] = true
}

// Run builds the logs of tenants with new numbers until ctx ends, and then once more. If several
// processes build the same log, a lock in the database makes one of them wait.
func (l *Log) Run(ctx context.Context) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticks.C:
			l.round(ctx)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundLimit)
	defer cancel()
	l.round(ctx)
}

// round builds the logs of all tenants that are due. It stops early if ctx ends. Tenants that fail stay
// due, except those whose log is damaged.
func (l *Log) round(ctx context.Context) {
	l.mu.Lock()
	due := l.due
	l.due = map[rolecall.TenantID]bool{}
	l.mu.Unlock()
	var unavailable error
	for tenant := range due {
		err := ctx.Err()
		for more := err == nil; more; {
			more, err = l.buildInTime(ctx, tenant)
			more = more && err == nil && ctx.Err() == nil
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrLogDamaged) {
			l.Numbered(tenant)
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, rolecall.ErrUnavailable):
			unavailable = err
		default:
			l.log.WarnContext(ctx, "cannot add events to the Merkle log", "tenant", tenant, "error", err)
		}
	}
	if ctx.Err() == nil {
		l.outages.Report(ctx, "cannot add events to the Merkle log; will retry", unavailable)
	}
}

func (l *Log) buildInTime(ctx context.Context, tenant rolecall.TenantID) (more bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundLimit)
	defer cancel()
	return l.build(ctx, tenant)
}

// build adds a batch of leaves, and reports whether there may be more.
func (l *Log) build(ctx context.Context, tenant rolecall.TenantID) (more bool, err error) {
	err = l.store.Update(ctx, tenant, func(tx *store.Tx) error {
		added, err := tx.BuildLog(l.now())
		more = added == store.LeavesAtOnce
		return err
	})
	return more, err
}

// current returns the state of the log after it has added the leaves of recent events.
func (l *Log) current(ctx context.Context, tenant rolecall.TenantID) (state rolecall.Log, err error) {
	if err := l.number(ctx, tenant); err != nil {
		return state, err
	}
	for range batchesOfRead {
		var last int64
		if err := l.store.View(ctx, tenant, func(tx *store.Tx) error {
			feed, err := tx.Feed(0)
			if err != nil {
				return err
			}
			last = feed.Last
			state, err = tx.Log()
			return err
		}); err != nil || state.Size >= last {
			return state, err
		}
		if _, err := l.build(ctx, tenant); err != nil {
			return state, err
		}
	}
	return state, l.store.View(ctx, tenant, func(tx *store.Tx) (err error) {
		state, err = tx.Log()
		return err
	})
}

// Checkpoint is the signed state of a log.
type Checkpoint struct {
	rolecall.Log
	Note        string // the signed note in the form of C2SP tlog-checkpoint
	VerifierKey string // the public key that verifies the note
}

// Checkpoint returns the signed state of the log of the tenant. The origin is the name of the log in the
// checkpoint and in its key.
func (l *Log) Checkpoint(ctx context.Context, tenant rolecall.TenantID, origin string) (Checkpoint, error) {
	state, err := l.current(ctx, tenant)
	if err != nil {
		return Checkpoint{}, err
	}
	return l.sign(ctx, tenant, origin, state)
}

func (l *Log) sign(ctx context.Context, tenant rolecall.TenantID, origin string, state rolecall.Log) (c Checkpoint, err error) {
	statement, err := l.statement(ctx, tenant, &state)
	if err != nil {
		return c, err
	}
	seed, err := l.signingKey(ctx, tenant, state.SigningKey)
	if err != nil {
		return c, err
	}
	signer, verifierKey, err := secret.NoteSigner(origin, seed)
	if err != nil {
		return c, err
	}
	signed, err := note.Sign(&note.Note{Text: statement.noteText(origin)}, signer)
	return Checkpoint{state, string(signed), verifierKey}, err
}

// signingKey decrypts the signing key of the tenant. It creates a key if the tenant has none, or if no
// key of the instance can decrypt it. It encrypts the key again if the key of the instance was
// replaced.
func (l *Log) signingKey(ctx context.Context, tenant rolecall.TenantID, stored *string) ([]byte, error) {
	if stored != nil && l.keys.Renew(keyPurpose, *stored, tenant[:]) == *stored {
		if seed, err := l.keys.Open(keyPurpose, *stored, tenant[:]); err == nil {
			return seed, nil
		}
	}
	var seed []byte
	err := l.store.Update(ctx, tenant, func(tx *store.Tx) error {
		if _, _, err := tx.LockFeed(); err != nil {
			return err
		}
		state, err := tx.Log()
		if err != nil {
			return err
		}
		if state.SigningKey != nil {
			if seed, err = l.keys.Open(keyPurpose, *state.SigningKey, tenant[:]); err == nil {
				if renewed := l.keys.Renew(keyPurpose, *state.SigningKey, tenant[:]); renewed != *state.SigningKey {
					tx.SetSigningKey(renewed)
				}
				return nil
			}
			l.log.WarnContext(ctx, "no key of the instance can decrypt the signing key of an audit log; a new one is used from now on", "tenant", tenant)
		}
		seed = secret.NewKey()
		tx.SetSigningKey(l.keys.Seal(keyPurpose, seed, tenant[:]))
		return nil
	})
	return seed, err
}

// Proof proves that an event is in the log of a checkpoint.
type Proof struct {
	Checkpoint
	rolecall.LoggedEvent
	Hashes tlog.RecordProof
}

// Proof returns the proof of the event. It returns ErrNotFound if the event does not exist, and
// ErrUnavailable if the log does not have the event yet.
func (l *Log) Proof(ctx context.Context, tenant rolecall.TenantID, origin string, id rolecall.EventID) (p Proof, err error) {
	event := func() error {
		return l.store.View(ctx, tenant, func(tx *store.Tx) (err error) {
			p.LoggedEvent, err = tx.LoggedEvent(id)
			return err
		})
	}
	if err := event(); err != nil {
		return p, err
	}
	state, err := l.current(ctx, tenant)
	if err == nil {
		err = event() // it has a number and salts now
	}
	if err != nil {
		return p, err
	}
	if p.Number == 0 || p.Number > state.Size || p.Salts == nil {
		return p, rolecall.ErrUnavailable
	}
	if p.Checkpoint, err = l.sign(ctx, tenant, origin, state); err != nil {
		return p, err
	}
	return p, l.store.View(ctx, tenant, func(tx *store.Tx) (err error) {
		p.Hashes, err = tlog.ProveRecord(state.Size, p.Number-1, tx.Hashes())
		return damaged(err)
	})
}

// Consistency is the proof that the log of a checkpoint begins with the leaves of an earlier one.
type Consistency struct {
	Checkpoint
	Hashes tlog.TreeProof
}

// Consistency returns the proof that the log begins with the first leaves of an earlier state with the
// size from, which is at least 1. It returns ErrLogShorter if the log has fewer leaves.
func (l *Log) Consistency(ctx context.Context, tenant rolecall.TenantID, origin string, from int64) (c Consistency, err error) {
	state, err := l.current(ctx, tenant)
	if err != nil {
		return c, err
	}
	if from > state.Size {
		return c, rolecall.ErrLogShorter
	}
	if c.Checkpoint, err = l.sign(ctx, tenant, origin, state); err != nil {
		return c, err
	}
	return c, l.store.View(ctx, tenant, func(tx *store.Tx) (err error) {
		c.Hashes, err = tlog.ProveTree(state.Size, from, tx.Hashes())
		return damaged(err)
	})
}

// damaged returns the error of a read of tiles. A tile that does not exist was deleted.
func damaged(err error) error {
	if errors.Is(err, rolecall.ErrNotFound) {
		return store.ErrLogDamaged
	}
	return err
}

// Origin returns the name of the log of a tenant: the public URL without its scheme, and the path of the
// tenant. Without a public URL, it begins with rolecall.
func Origin(publicURL, tenant string) string { return origin(publicURL, tenantPath(tenant)) }

func origin(publicURL, path string) string {
	_, host, ok := strings.Cut(publicURL, "://")
	if !ok {
		host = "rolecall"
	}
	return strings.NewReplacer("+", "%2B", " ", "%20").Replace(strings.TrimSuffix(host, "/") + path)
}

func tenantPath(tenant string) string { return "/tenants/" + tenant }

// operatorsPath is the path of the operators' log.
const operatorsPath = "/operators"

// OperatorsOrigin returns the name of the operators' log, in the form of Origin.
func OperatorsOrigin(publicURL string) string { return origin(publicURL, operatorsPath) }

// Root returns the hash of the first size leaves, which it computes from the tiles.
func (l *Log) Root(ctx context.Context, tenant rolecall.TenantID, size int64) (root tlog.Hash, err error) {
	return store.Read(ctx, l.store, tenant, func(tx *store.Tx) (tlog.Hash, error) { return tlog.TreeHash(size, tx.Hashes()) })
}

// RootText returns the hash of the log in base64.
func RootText(l *rolecall.Log) string { return tlog.Hash(l.Root).String() }
