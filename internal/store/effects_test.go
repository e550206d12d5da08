package store

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
)

const effectsTime rolecall.Time = 1_800_000_000_000_000

var (
	aTenant  = rolecall.NewID[rolecall.Tenant](effectsTime)
	aUser    = rolecall.NewID[rolecall.User](effectsTime)
	aSession = rolecall.NewID[rolecall.Session](effectsTime)
)

// changing is a Querier whose statements each return the given number of rows. It records the announced ids.
type changing struct {
	rows      int
	announced []rolecall.AnyID
}

func (c *changing) Exec(string, ...any) {}

func (c *changing) Announce(id rolecall.AnyID) { c.announced = append(c.announced, id) }

func (c *changing) AnnounceChanges(rolecall.TenantID) {}

// SetTenant does nothing: no statement that is tested follows it.
func (c *changing) SetTenant(rolecall.TenantID) {}

func (c *changing) AllowAddressInAllTenants(string) {}

func (c *changing) Query(_ string, _ []any, each func(func(...any) error) error) (int, error) {
	for range c.rows {
		if err := each(func(...any) error { return nil }); err != nil {
			return 0, err
		}
	}
	return c.rows, nil
}

// TestChangesAnnounceNoMoreThanNeeded checks methods that run often. Another id would make the caches of all nodes read
// again what has not changed.
func TestChangesAnnounceNoMoreThanNeeded(t *testing.T) {
	for method, c := range map[string]struct {
		run  func(*Tx) error
		want []rolecall.AnyID
	}{
		"TouchSession":     {func(tx *Tx) error { tx.TouchSession(aSession, effectsTime, rolecall.TouchInterval); return nil }, nil},
		"TouchAPIToken":    {func(tx *Tx) error { tx.TouchAPIToken(rolecall.APITokenID(aSession), effectsTime); return nil }, nil},
		"TouchOperatorKey": {func(tx *Tx) error { tx.TouchOperatorKey(rolecall.OperatorKeyID(aSession), effectsTime); return nil }, nil},
		"InsertTenant":     {func(tx *Tx) error { tx.InsertTenant(rolecall.Tenant{ID: aTenant, Name: "acme"}); return nil }, nil},
		"UpdateUser": {func(tx *Tx) error { _, err := tx.UpdateUser(rolecall.User{ID: aUser}, rolecall.User{}); return err },
			[]rolecall.AnyID{rolecall.AnyID(aUser)}},
		"DeleteSession": {func(tx *Tx) error { _, err := tx.DeleteSession(aSession); return err },
			[]rolecall.AnyID{rolecall.AnyID(aSession)}},
		"UpsertAssignment": {func(tx *Tx) error {
			tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(aUser)})
			return nil
		}, []rolecall.AnyID{rolecall.AnyID(aUser)}},
	} {
		q := &changing{rows: 1}
		if err := c.run(NewTx(q, aTenant)); err != nil || !slices.Equal(q.announced, c.want) {
			t.Errorf("%s announces %v (error %v), want %v", method, q.announced, err, c.want)
		}
	}
}

// retried is a Database that runs the function of each Update twice and then returns an
// error.
type retried struct{ nested }

var errOutcomeUnknown = errors.New("the connection was lost during the commit")

func (r retried) Update(_ context.Context, _ rolecall.TenantID, fn func(Querier) error) error {
	return errors.Join(fn(r.q), fn(r.q), errOutcomeUnknown)
}

func TestEffectsOfTheLastAttemptAreReportedAfterAFailure(t *testing.T) {
	var reported []Effects
	s := New(retried{nested{&changing{rows: 1}}}, func(e Effects) { reported = append(reported, e) })
	attempts := 0
	err := s.Update(t.Context(), aTenant, func(tx *Tx) error {
		if attempts++; attempts == 1 {
			tx.DeleteTOTP(aUser)
			tx.InsertMail(rolecall.OutboxMail{})
			return nil
		}
		_, err := tx.DeleteSession(aSession)
		return err
	})
	want := []Effects{{Invalidated: []rolecall.AnyID{rolecall.AnyID(aSession)}, Tenant: aTenant}}
	if !errors.Is(err, errOutcomeUnknown) || !reflect.DeepEqual(reported, want) {
		t.Errorf("reported are %v after %v, want %v", reported, err, want)
	}
	reported = nil
	if err := New(nested{&changing{}}, func(e Effects) { reported = append(reported, e) }).Update(t.Context(), aTenant, func(tx *Tx) error {
		tx.InsertMail(rolecall.OutboxMail{})
		return nil
	}); err != nil || len(reported) != 1 || !reported[0].Mailed {
		t.Errorf("after a mail: %v, %v", reported, err)
	}
}
