package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// together runs the updates in one group. It blocks the writer until all updates are in
// the queue.
func together(t *testing.T, s *Database, tenant rolecall.TenantID, updates ...func(*store.Tx) error) []error {
	t.Helper()
	held, release := make(chan struct{}), make(chan struct{})
	errs := make([]error, len(updates))
	var group sync.WaitGroup
	group.Go(func() {
		if err := store.New(s, nil).Update(t.Context(), tenant, func(*store.Tx) error {
			close(held)
			<-release
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-held
	for i, update := range updates {
		group.Go(func() {
			defer func() {
				if value := recover(); value != nil {
					errs[i] = fmt.Errorf("panic: %v", value)
				}
			}()
			errs[i] = store.New(s, nil).Update(t.Context(), tenant, update)
		})
	}
	for len(s.writer.queue) < len(updates) {
		runtime.Gosched()
	}
	close(release)
	group.Wait()
	return errs
}

func insert(u rolecall.User) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		tx.InsertUser(u)
		return nil
	}
}

func isStored(t *testing.T, s *Database, tenant rolecall.TenantID, id rolecall.UserID) bool {
	t.Helper()
	err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) error {
		_, err := tx.UserByID(id)
		return err
	})
	if err != nil && !errors.Is(err, rolecall.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAFailedUpdateOfAGroupDoesNotAffectOthers(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	taken, first, last := newUser("Taken"), newUser("First"), newUser("Last")
	refused, thrown, twice := newUser("Refused"), newUser("Thrown"), newUser("Twice")
	twice.Email = taken.Email
	if err := store.New(s, nil).Update(t.Context(), tenant, insert(taken)); err != nil {
		t.Fatal(err)
	}
	errRefused := errors.New("refused")
	errs := together(t, s, tenant,
		insert(first),
		func(tx *store.Tx) error { tx.InsertUser(refused); return errRefused },
		func(tx *store.Tx) error { tx.InsertUser(thrown); panic("thrown") },
		insert(twice),
		func(tx *store.Tx) error { return errRefused },
		insert(last),
	)
	for i, want := range []string{"", "refused", "panic: thrown", "email-taken", "refused", ""} {
		if got := fmt.Sprint(errs[i]); want == "" && errs[i] != nil || !strings.Contains(got, want) {
			t.Errorf("member %d got %v, want %q", i, errs[i], want)
		}
	}
	for u, want := range map[*rolecall.User]bool{&first: true, &last: true, &refused: false, &thrown: false, &twice: false} {
		if got := isStored(t, s, tenant, u.ID); got != want {
			t.Errorf("%s stored: %v, want %v", u.Name, got, want)
		}
	}
}

// TestAFullDiskFailsOnlyUpdatesThatDoNotFit limits the file to a few more pages. The
// update that exceeds the limit makes SQLite end the transaction of the whole group.
func TestAFullDiskFailsOnlyUpdatesThatDoNotFit(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	limit := func(pages string) {
		t.Helper()
		var got int
		if err := s.writer.conn.QueryRowContext(t.Context(), "pragma max_page_count = "+pages).Scan(&got); err != nil {
			t.Fatal(err)
		}
	}
	var used int
	if err := s.writer.conn.QueryRowContext(t.Context(), "pragma page_count").Scan(&used); err != nil {
		t.Fatal(err)
	}
	limit(fmt.Sprint(used + 20))

	first, huge, last := newUser("First"), newUser("Huge"), newUser("Last")
	huge.Metadata = rolecall.NewMetadata(map[string]string{"size": strings.Repeat("x", 1<<20)})
	errs := together(t, s, tenant, insert(first), insert(huge), insert(last))
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("members that fit got %v and %v", errs[0], errs[2])
	}
	if rolecall.KindOf(errs[1]) != rolecall.Unavailable {
		t.Errorf("the member that does not fit got %v, want unavailable", errs[1])
	}
	for u, want := range map[*rolecall.User]bool{&first: true, &huge: false, &last: true} {
		if got := isStored(t, s, tenant, u.ID); got != want {
			t.Errorf("%s stored: %v, want %v", u.Name, got, want)
		}
	}
	limit("1000000")
	if err := store.New(s, nil).Update(t.Context(), tenant, insert(huge)); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

// TestCancelledCallersDoNotAffectOtherWrites runs clients that cancel their updates at
// random, together with clients that do not. Some updates fail, so that groups run again.
func TestCancelledCallersDoNotAffectOtherWrites(t *testing.T) {
	const clients, rounds = 32, 40
	s := openNew(t)
	tenant := newTenant(t, s)
	type attempt struct {
		users [2]rolecall.User
		err   error
	}
	attempts := make([][]attempt, clients)
	errRefused := errors.New("refused")
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range rounds {
				a := attempt{users: [2]rolecall.User{newUser("One"), newUser("Other")}}
				ctx, cancel := context.WithCancel(t.Context())
				switch random.IntN(4) {
				case 0:
					cancel()
				case 1:
					go cancel()
				}
				refuse := random.IntN(16) == 0
				a.err = store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error {
					tx.InsertUser(a.users[0])
					if _, err := tx.UserByID(a.users[0].ID); err != nil {
						return err
					}
					tx.InsertUser(a.users[1])
					if refuse {
						return errRefused
					}
					return nil
				})
				cancel()
				attempts[i] = append(attempts[i], a)
			}
		})
	}
	group.Wait()

	written, given := 0, 0
	for _, a := range slices.Concat(attempts...) {
		one, other := isStored(t, s, tenant, a.users[0].ID), isStored(t, s, tenant, a.users[1].ID)
		switch {
		case one != other:
			t.Error("an update is half there")
		case one != (a.err == nil):
			t.Errorf("stored: %v, though its caller got %v", one, a.err)
		case a.err == nil:
			written++
		case errors.Is(a.err, context.Canceled):
			given++
		case !errors.Is(a.err, errRefused):
			t.Errorf("a caller got %v", a.err)
		}
	}
	if written == 0 || given == 0 {
		t.Errorf("%d written, %d given up: the test tried nothing", written, given)
	}
}

func TestAFullQueueIsUnavailable(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	nothing := func(*store.Tx) error { return nil }
	var last *job
	if err := store.New(s, nil).Update(t.Context(), tenant, func(*store.Tx) error {
		for range queueMax {
			last = &job{fn: func(store.Querier) error { return nil }, done: make(chan struct{})}
			if !s.writer.enqueue(last) {
				t.Error("the queue was full too early")
			}
		}
		if err := store.New(s, nil).Update(t.Context(), tenant, nothing); !errors.Is(err, rolecall.ErrUnavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	<-last.done
	if err := store.New(s, nil).Update(t.Context(), tenant, nothing); err != nil {
		t.Errorf("after the queue was served: %v", err)
	}
}
