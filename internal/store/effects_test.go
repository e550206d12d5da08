package store

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/rolecall/rolecall"
)

const effectsTime rolecall.Time = 1_800_000_000_000_000

var (
	aTenant  = rolecall.NewID[rolecall.Tenant](effectsTime)
	aUser    = rolecall.NewID[rolecall.User](effectsTime)
	aSession = rolecall.NewID[rolecall.Session](effectsTime)
)

// changing is a Querier whose statements each return the given number of rows.
type changing struct{ rows int }

func (c *changing) Exec(string, ...any) {}

func (c *changing) Announce(rolecall.AnyID) {}

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
