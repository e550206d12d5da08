package service_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// tallied returns how often each kind of refusal was recorded, by its subject and
// reason.
func (f *fixture) tallied(kind rolecall.EventType) map[string]int {
	f.Helper()
	recorded := map[string]int{}
	l := service.EventListing{Type: string(kind), Limit: rolecall.MaxLimit}
	for {
		page, err := f.service.Events(f.Context(), f.owner, l)
		f.ok(err)
		for _, e := range page.Items {
			recorded[fmt.Sprintf("%s: %s", e.Subject.Type, e.Reason)]++
		}
		if page.Next == nil {
			return recorded
		}
		l.After = page.Next
	}
}

func (f *fixture) expectTallied(kind rolecall.EventType, want map[string]int) {
	f.Helper()
	if got := f.tallied(kind); !maps.Equal(got, want) {
		f.Errorf("recorded is %v, not %v", got, want)
	}
}

// unlimited lets every sign-in be tried.
var unlimited = service.AttemptLimits{AccountAndSource: 1e6, Account: 1e6, Source: 1e6}

func TestFailedSignInsOfASecondBecomeOneEventEach(t *testing.T) {
	onEachStoreLimited(t, unlimited, func(f *fixture) {
		for i := range 12 {
			f.is(f.guess(fmt.Sprintf("192.0.2.%d", i), "owner", "wrong"), rolecall.ErrWrongCredentials)
			f.is(f.guess("192.0.2.1", fmt.Sprintf("nobody-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		elsewhere := service.Attempt{TenantName: "nobody", Source: "192.0.2.1"}
		f.is(errorOf(f.service.Login(f.Context(), elsewhere, address("owner"), "wrong")), rolecall.ErrWrongCredentials)
		f.expectTallied(rolecall.EventSignInFailed, map[string]int{})

		f.clock.advance(time.Second)
		f.ok(f.service.Flush(f.Context()))
		failed := map[string]int{"user: wrong-credentials, 12 times": 1, "tenant: wrong-credentials, 12 times": 1}
		f.expectTallied(rolecall.EventSignInFailed, failed)
		for _, e := range f.events(f.owner, service.EventListing{Type: string(rolecall.EventSignInFailed)}) {
			if e.Actor.Type != rolecall.ActorAnonymous || e.OccurredAt != f.clock.Now() || e.Source == "" {
				t.Errorf("the event is %+v", e)
			}
			if e.Subject.Type == rolecall.SubjectUser && (e.Subject.ID != rolecall.AnyID(f.owner.User.ID) || e.Source != "192.0.2.0") {
				t.Errorf("the event is %+v", e)
			}
		}
		f.is(f.guess("192.0.2.1", "owner", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.service.Flush(f.Context()))
		failed["user: wrong-credentials"] = 1
		f.expectTallied(rolecall.EventSignInFailed, failed)
	})
}

func TestWhatIsNobodysIsNotRecorded(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.is(errorOf(f.service.Login(f.Context(), service.Attempt{TenantName: "nobody", Source: "192.0.2.1"}, address("owner"), "wrong")), rolecall.ErrWrongCredentials)
		if asked := f.store.during(func() { f.ok(f.service.Flush(f.Context())) }); len(asked) != 0 {
			t.Errorf("of an unknown tenant the store was asked %q", asked)
		}
	})
}

func TestRefusalsWaitInABoundedPlaceAndNoneIsForgotten(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		const most, more = 10_000, 50
		refuse := func(n int) {
			for range n {
				f.service.Refused(f.owner, rolecall.NewID[rolecall.User](start), "getUser", "permission-denied")
			}
		}
		refuse(most + more)
		f.store.fail(rolecall.ErrUnavailable)
		f.is(f.service.Flush(f.Context()), rolecall.ErrUnavailable)
		f.store.fail(nil)
		refuse(more)
		f.ok(f.service.Flush(f.Context()))
		recorded := f.tallied(rolecall.EventRefused)
		alone := recorded["user: getUser: permission-denied"]
		together := fmt.Sprintf("tenant: getUser: permission-denied, %d times", most+2*more-alone)
		if alone < most-1 || alone > most || recorded[together] != 1 || len(recorded) != 2 {
			t.Errorf("recorded is %v", recorded)
		}
	})
}

func TestRefusalsThatCannotBeRecordedAreKept(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.newTenant("other")
		elsewhere := f.owner
		principal := *f.owner.Principal
		principal.Tenant = other
		elsewhere.Principal = &principal
		for round := range 3 {
			f.service.Refused(f.owner, rolecall.UserID{}, "listEvents", "permission-denied")
			f.service.Refused(elsewhere, rolecall.UserID{}, "listEvents", "permission-denied")
			if round < 2 {
				f.store.fail(rolecall.ErrUnavailable)
				f.is(f.service.Flush(f.Context()), rolecall.ErrUnavailable)
				f.store.fail(nil)
			}
		}
		f.ok(f.service.Flush(f.Context()))
		f.ok(f.service.Flush(f.Context()))
		recorded := map[string]int{"tenant: listEvents: permission-denied, 3 times": 1}
		f.expectTallied(rolecall.EventRefused, recorded)
		f.owner, f.tenant = elsewhere, other
		f.expectTallied(rolecall.EventRefused, recorded)
	})
}

func TestRefusalsAreRecordedEverySecondAndAtTheEnd(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ctx, stop := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.service.Run(ctx) }()
		f.service.Refused(f.owner, f.owner.User.ID, "first", "permission-denied")
		f.eventually(func() bool { return len(f.tallied(rolecall.EventRefused)) == 1 })
		f.service.Refused(f.owner, f.owner.User.ID, "last", "permission-denied")
		stop()
		f.ok(<-ended)
		f.expectTallied(rolecall.EventRefused, map[string]int{"user: first: permission-denied": 1, "user: last: permission-denied": 1})
	})
}
