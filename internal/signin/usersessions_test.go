package signin_test

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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// sessionsOf returns the ids of the user's live sessions, newest first.
func sessionsOf(f *nodetest.Fixture, c access.Caller, id rolecall.UserID) (ids []rolecall.SessionID) {
	f.Helper()
	page, err := f.SignIn.UserSessions(f.Context(), c, id, nil, rolecall.MaxLimit)
	f.OK(err)
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return ids
}

// sessionOf inserts a session of the user, without a sign-in.
func sessionOf(f *nodetest.Fixture, id rolecall.UserID) rolecall.SessionID {
	f.Helper()
	s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](nodetest.Start), UserID: id, AuthenticatedAt: nodetest.Start, LastUsedAt: nodetest.Start, ExpiresAt: nodetest.Start.Add(time.Hour)}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertSession(s, s.ID[:])
		return nil
	}))
	return s.ID
}

func TestReadingAndEndingSessionsIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for what, c := range map[string]struct {
			caller    []nodetest.Held
			subject   []nodetest.Held // in Sales
			read, end error
		}{
			"nobody":                             {nodetest.Roles(), nodetest.Roles(), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			"who may only read":                  {nodetest.Roles(nodetest.Holding("users:read", "sessions:read")), nodetest.Roles(), nil, rolecall.ErrPermissionDenied},
			"who may only end":                   {nodetest.Roles(nodetest.Holding("users:read", "sessions:revoke")), nodetest.Roles(), rolecall.ErrPermissionDenied, nil},
			"who does not see the user":          {nodetest.Roles(nodetest.Holding("sessions:*")), nodetest.Roles(), rolecall.ErrNotFound, rolecall.ErrNotFound},
			"who may within Sales":               {nodetest.Roles(nodetest.Holding("users:read", "sessions:*").Within("Sales")), nodetest.Roles(), nil, nil},
			"who may within Ops, and sees Sales": {nodetest.Roles(nodetest.Holding("sessions:*").Within("Ops"), nodetest.Holding("users:read")), nodetest.Roles(), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			"who lacks what the user has":        {nodetest.Roles(nodetest.Holding("users:read", "sessions:*")), nodetest.Roles(nodetest.Auditor), nil, rolecall.ErrBeyondOwnPermissions},
			"who has it too":                     {nodetest.Roles(nodetest.Holding("users:read", "sessions:*", "events:read")), nodetest.Roles(nodetest.Auditor), nil, nil},
			"what is an application's bars not":  {nodetest.Roles(nodetest.Holding("users:read", "sessions:*")), nodetest.Roles(nodetest.Shop), nil, nil},
		} {
			caller := f.CallerWith(c.caller...)
			user, _ := f.Person("Sales", c.subject...)
			one, other := sessionOf(f, user.ID), sessionOf(f, user.ID)
			if _, err := f.SignIn.UserSessions(f.Context(), caller, user.ID, nil, 10); !errors.Is(err, c.read) {
				t.Errorf("%s reads: %v", what, err)
			}
			if err := f.SignIn.EndUserSession(f.Context(), caller, user.ID, one); !errors.Is(err, c.end) {
				t.Errorf("%s ends one: %v", what, err)
			}
			left := sessionsOf(f, f.Owner, user.ID)
			if err := f.SignIn.EndUserSessions(f.Context(), caller, user.ID); !errors.Is(err, c.end) {
				t.Errorf("%s ends all: %v", what, err)
			}
			leftAfterAll := sessionsOf(f, f.Owner, user.ID)
			if c.end == nil && (!slices.Equal(left, []rolecall.SessionID{other}) || leftAfterAll != nil) || c.end != nil && len(leftAfterAll) != 2 {
				t.Errorf("%s: %d are left of two, then %d", what, len(left), len(leftAfterAll))
			}
		}
	})
}

func TestOnesOwnSessionsNeedNoPermission(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, other := f.NewMember("ada"), f.NewMember("other")
		f.Clock.Advance(time.Second)
		first, second, current := f.LogIn("ada"), f.LogIn("ada"), f.LogIn("ada")
		c, foreign := f.CallerOf(current), f.LogIn("other").Principal.Session.ID
		if got := sessionsOf(f, c, ada.ID); len(got) != 3 || !slices.Contains(got, first.Principal.Session.ID) {
			t.Errorf("one's own sessions are %v", got)
		}
		f.Is(f.SignIn.EndUserSession(f.Context(), c, ada.ID, foreign), rolecall.ErrNotFound)
		f.Is(f.SignIn.EndUserSession(f.Context(), c, other.ID, foreign), rolecall.ErrPermissionDenied)
		f.OK(f.SignIn.EndUserSession(f.Context(), c, ada.ID, first.Principal.Session.ID))
		f.Is(f.SignIn.EndUserSession(f.Context(), c, ada.ID, first.Principal.Session.ID), rolecall.ErrNotFound)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, first.Token)), rolecall.ErrUnauthenticated)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, second.Token)))
		f.OK(f.SignIn.EndUserSessions(f.Context(), c, ada.ID))
		for _, in := range []signin.SignIn{second, current} {
			f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		}
		ended := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSessionEnded), Subject: rolecall.AnyID(ada.ID)})
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, far := f.NewMember("ada"), f.NewWatchingNode()
		for what, end := range map[string]func(signin.SignIn) error{
			"one": func(in signin.SignIn) error {
				return f.SignIn.EndUserSession(f.Context(), f.Owner, ada.ID, in.Principal.Session.ID)
			},
			"all": func(signin.SignIn) error { return f.SignIn.EndUserSessions(f.Context(), f.Owner, ada.ID) },
			"the oldest": func(signin.SignIn) error {
				f.SetSettings(rolecall.TenantSettings{SessionsMax: new(int64(1))})
				f.LogIn("ada")
				return nil
			},
		} {
			in := f.LogIn("ada")
			for _, node := range []*node.Node{f.Node, far} {
				f.OK(nodetest.ErrorOf(f.Authenticate(node, in.Token)))
			}
			f.OK(end(in))
			if _, err := f.Authenticate(f.Node, in.Token); !errors.Is(err, rolecall.ErrUnauthenticated) {
				t.Errorf("%s: the next request on the same node: %v", what, err)
			}
			f.Eventually(func() bool { // the clock stands still, so only an announcement can cause it
				_, err := f.Authenticate(far, in.Token)
				return errors.Is(err, rolecall.ErrUnauthenticated)
			})
		}
	})
}

func TestTheOldestSessionEndsWhereThereAreTooMany(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		f.SetSettings(rolecall.TenantSettings{SessionsMax: new(int64(3))})
		var all []signin.SignIn
		for range 5 {
			f.Clock.Advance(time.Second)
			all = append(all, f.LogIn("ada"))
		}
		for i, in := range all {
			if _, err := f.Authenticate(f.Node, in.Token); (err == nil) != (i >= 2) {
				t.Errorf("session %d: %v", i, err)
			}
		}
		ended := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSessionEnded), Subject: rolecall.AnyID(ada.ID)})
		if len(ended) != 2 || ended[0].Reason != "too many sessions" || ended[0].SessionID != all[1].Principal.Session.ID || ended[0].Actor.ID != ada.ID {
			t.Errorf("the events are %+v", ended)
		}
		f.Clock.Advance(rolecall.DefaultSessionIdle) // expired sessions make room, without an event
		f.LogIn("ada")
		if got := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSessionEnded)}); len(got) != 2 {
			t.Errorf("there are %d events", len(got))
		}
	})
}

func TestTheLimitOfSessionsHoldsUnderParallelSignIns(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1000, Account: 1000, Source: 1000}, func(f *nodetest.Fixture) {
		const most = 3
		ada := f.NewMember("ada")
		f.SetSettings(rolecall.TenantSettings{SessionsMax: new(int64(most))})
		var done atomic.Bool
		var looked int
		var watching, signing sync.WaitGroup
		watching.Go(func() {
			for ; !done.Load(); looked++ {
				page, err := f.SignIn.UserSessions(f.Context(), f.Owner, ada.ID, nil, rolecall.MaxLimit)
				if err != nil || len(page.Items) > most {
					t.Errorf("%d sessions at once, %v", len(page.Items), err)
					return
				}
			}
		})
		for range 50 {
			signing.Go(func() {
				_, err := f.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("ada"), nodetest.Password)
				if err != nil && !errors.Is(err, rolecall.ErrUnauthenticated) { // this session was the oldest at some point, so it was ended
					t.Error(err)
				}
			})
		}
		signing.Wait()
		done.Store(true)
		watching.Wait()
		if got := sessionsOf(f, f.Owner, ada.ID); len(got) != most || looked == 0 {
			t.Errorf("there are %d sessions in the end; looked %d times", len(got), looked)
		}
	})
}
