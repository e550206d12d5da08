package node_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// sessionsOf returns the ids of the user's live sessions, newest first.
func (f *fixture) sessionsOf(c access.Caller, id rolecall.UserID) (ids []rolecall.SessionID) {
	f.Helper()
	page, err := f.SignIn.UserSessions(f.Context(), c, id, nil, rolecall.MaxLimit)
	f.ok(err)
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return ids
}

// sessionOf inserts a session of the user, without a sign-in.
func (f *fixture) sessionOf(id rolecall.UserID) rolecall.SessionID {
	f.Helper()
	s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: id, AuthenticatedAt: start, LastUsedAt: start, ExpiresAt: start.Add(time.Hour)}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertSession(s, s.ID[:])
		return nil
	}))
	return s.ID
}

func TestReadingAndEndingSessionsIsAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for what, c := range map[string]struct {
			caller    []held
			subject   []held // in Sales
			read, end error
		}{
			"nobody":                             {hold(), hold(), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			"who may only read":                  {hold(holding("users:read", "sessions:read")), hold(), nil, rolecall.ErrPermissionDenied},
			"who may only end":                   {hold(holding("users:read", "sessions:revoke")), hold(), rolecall.ErrPermissionDenied, nil},
			"who does not see the user":          {hold(holding("sessions:*")), hold(), rolecall.ErrNotFound, rolecall.ErrNotFound},
			"who may within Sales":               {hold(holding("users:read", "sessions:*").within("Sales")), hold(), nil, nil},
			"who may within Ops, and sees Sales": {hold(holding("sessions:*").within("Ops"), holding("users:read")), hold(), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			"who lacks what the user has":        {hold(holding("users:read", "sessions:*")), hold(auditor), nil, rolecall.ErrBeyondOwnPermissions},
			"who has it too":                     {hold(holding("users:read", "sessions:*", "events:read")), hold(auditor), nil, nil},
			"what is an application's bars not":  {hold(holding("users:read", "sessions:*")), hold(shop), nil, nil},
		} {
			caller := f.caller(c.caller...)
			user, _ := f.person("Sales", c.subject...)
			one, other := f.sessionOf(user.ID), f.sessionOf(user.ID)
			if _, err := f.SignIn.UserSessions(f.Context(), caller, user.ID, nil, 10); !errors.Is(err, c.read) {
				t.Errorf("%s reads: %v", what, err)
			}
			if err := f.SignIn.EndUserSession(f.Context(), caller, user.ID, one); !errors.Is(err, c.end) {
				t.Errorf("%s ends one: %v", what, err)
			}
			left := f.sessionsOf(f.owner, user.ID)
			if err := f.SignIn.EndUserSessions(f.Context(), caller, user.ID); !errors.Is(err, c.end) {
				t.Errorf("%s ends all: %v", what, err)
			}
			leftAfterAll := f.sessionsOf(f.owner, user.ID)
			if c.end == nil && (!slices.Equal(left, []rolecall.SessionID{other}) || leftAfterAll != nil) || c.end != nil && len(leftAfterAll) != 2 {
				t.Errorf("%s: %d are left of two, then %d", what, len(left), len(leftAfterAll))
			}
		}
	})
}

func TestOnesOwnSessionsNeedNoPermission(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, other := f.member("ada"), f.member("other")
		f.clock.advance(time.Second)
		first, second, current := f.signIn("ada"), f.signIn("ada"), f.signIn("ada")
		c, foreign := f.call(current), f.signIn("other").Principal.Session.ID
		if got := f.sessionsOf(c, ada.ID); len(got) != 3 || !slices.Contains(got, first.Principal.Session.ID) {
			t.Errorf("one's own sessions are %v", got)
		}
		f.is(f.SignIn.EndUserSession(f.Context(), c, ada.ID, foreign), rolecall.ErrNotFound)
		f.is(f.SignIn.EndUserSession(f.Context(), c, other.ID, foreign), rolecall.ErrPermissionDenied)
		f.ok(f.SignIn.EndUserSession(f.Context(), c, ada.ID, first.Principal.Session.ID))
		f.is(f.SignIn.EndUserSession(f.Context(), c, ada.ID, first.Principal.Session.ID), rolecall.ErrNotFound)
		f.is(errorOf(f.authenticate(f.Node, first.Token)), rolecall.ErrUnauthenticated)
		f.ok(errorOf(f.authenticate(f.Node, second.Token)))
		f.ok(f.SignIn.EndUserSessions(f.Context(), c, ada.ID))
		for _, in := range []signin.SignIn{second, current} {
			f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		}
		ended := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSessionEnded), Subject: rolecall.AnyID(ada.ID)})
		if len(ended) != 3 {
			t.Fatalf("there are %d events", len(ended))
		}
		for _, e := range ended {
			if e.Reason != "revoked" || e.Actor.ID != ada.ID || e.SessionID.IsZero() {
				t.Errorf("the event is %+v", e)
			}
		}
	})
}

// TestASessionEndedElsewhereIsRefusedByEveryNode ends sessions as an administrator. The
// same node must reject them immediately, and another node that watches the store must
// reject them soon.
func TestASessionEndedElsewhereIsRefusedByEveryNode(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, far := f.member("ada"), f.watchingNode()
		for what, end := range map[string]func(signin.SignIn) error{
			"one": func(in signin.SignIn) error {
				return f.SignIn.EndUserSession(f.Context(), f.owner, ada.ID, in.Principal.Session.ID)
			},
			"all": func(signin.SignIn) error { return f.SignIn.EndUserSessions(f.Context(), f.owner, ada.ID) },
			"the oldest": func(signin.SignIn) error {
				f.settings(rolecall.TenantSettings{SessionsMax: new(int64(1))})
				f.signIn("ada")
				return nil
			},
		} {
			in := f.signIn("ada")
			for _, node := range []*node.Node{f.Node, far} {
				f.ok(errorOf(f.authenticate(node, in.Token)))
			}
			f.ok(end(in))
			if _, err := f.authenticate(f.Node, in.Token); !errors.Is(err, rolecall.ErrUnauthenticated) {
				t.Errorf("%s: the next request on the same node: %v", what, err)
			}
			f.eventually(func() bool { // the clock stands still, so only an announcement can cause it
				_, err := f.authenticate(far, in.Token)
				return errors.Is(err, rolecall.ErrUnauthenticated)
			})
		}
	})
}

func TestTheOldestSessionEndsWhereThereAreTooMany(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		f.settings(rolecall.TenantSettings{SessionsMax: new(int64(3))})
		var all []signin.SignIn
		for range 5 {
			f.clock.advance(time.Second)
			all = append(all, f.signIn("ada"))
		}
		for i, in := range all {
			if _, err := f.authenticate(f.Node, in.Token); (err == nil) != (i >= 2) {
				t.Errorf("session %d: %v", i, err)
			}
		}
		ended := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSessionEnded), Subject: rolecall.AnyID(ada.ID)})
		if len(ended) != 2 || ended[0].Reason != "too many sessions" || ended[0].SessionID != all[1].Principal.Session.ID || ended[0].Actor.ID != ada.ID {
			t.Errorf("the events are %+v", ended)
		}
		f.clock.advance(rolecall.DefaultSessionIdle) // expired sessions make room, without an event
		f.signIn("ada")
		if got := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSessionEnded)}); len(got) != 2 {
			t.Errorf("there are %d events", len(got))
		}
	})
}

func TestTheLimitOfSessionsHoldsUnderParallelSignIns(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1000, Account: 1000, Source: 1000}, func(f *fixture) {
		const most = 3
		ada := f.member("ada")
		f.settings(rolecall.TenantSettings{SessionsMax: new(int64(most))})
		var done atomic.Bool
		var looked int
		var watching, signing sync.WaitGroup
		watching.Go(func() {
			for ; !done.Load(); looked++ {
				page, err := f.SignIn.UserSessions(f.Context(), f.owner, ada.ID, nil, rolecall.MaxLimit)
				if err != nil || len(page.Items) > most {
					t.Errorf("%d sessions at once, %v", len(page.Items), err)
					return
				}
			}
		})
		for range 50 {
			signing.Go(func() {
				_, err := f.SignIn.Login(f.Context(), f.attempt(), address("ada"), password)
				if err != nil && !errors.Is(err, rolecall.ErrUnauthenticated) { // this session was the oldest at some point, so it was ended
					t.Error(err)
				}
			})
		}
		signing.Wait()
		done.Store(true)
		watching.Wait()
		if got := f.sessionsOf(f.owner, ada.ID); len(got) != most || looked == 0 {
			t.Errorf("there are %d sessions in the end; looked %d times", len(got), looked)
		}
	})
}
