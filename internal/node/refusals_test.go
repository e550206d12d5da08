package node_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/ratelimit"
)

// refusals returns the number of events of this type, by the type of their subject and
// their reason.
func (f *fixture) refusals(kind rolecall.EventType) map[string]int {
	f.Helper()
	recorded := map[string]int{}
	l := directory.EventListing{Type: string(kind), Limit: rolecall.MaxLimit}
	for {
		page, err := f.Directory.Events(f.Context(), f.owner, l)
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

func (f *fixture) expectRefusals(kind rolecall.EventType, want map[string]int) {
	f.Helper()
	if got := f.refusals(kind); !maps.Equal(got, want) {
		f.Errorf("recorded is %v, not %v", got, want)
	}
}

// unlimited effectively disables the limits of sign-ins.
var unlimited = ratelimit.Limits{AccountAndSource: 1e6, Account: 1e6, Source: 1e6}

func TestFailedSignInsOfASecondAreOneEventPerKind(t *testing.T) {
	onEachStoreLimited(t, unlimited, func(f *fixture) {
		for i := range 12 {
			f.is(f.guess(fmt.Sprintf("192.0.2.%d", i), "owner", "wrong"), rolecall.ErrWrongCredentials)
			f.is(f.guess("192.0.2.1", fmt.Sprintf("nobody-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		elsewhere := access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}
		f.is(errorOf(f.SignIn.Login(f.Context(), elsewhere, address("owner"), "wrong")), rolecall.ErrWrongCredentials)
		f.expectRefusals(rolecall.EventSignInFailed, map[string]int{})

		f.clock.advance(time.Second)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		failed := map[string]int{"user: wrong-credentials, 12 times": 1, "tenant: wrong-credentials, 12 times": 1}
		f.expectRefusals(rolecall.EventSignInFailed, failed)
		for _, e := range f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSignInFailed)}) {
			if e.Actor.Type != rolecall.ActorAnonymous || e.OccurredAt != f.clock.Now() || e.Source == "" {
				t.Errorf("the event is %+v", e)
			}
			if e.Subject.Type == rolecall.SubjectUser && (e.Subject.ID != rolecall.AnyID(f.owner.User.ID) || e.Source != "192.0.2.0") {
				t.Errorf("the event is %+v", e)
			}
		}
		f.is(f.guess("192.0.2.1", "owner", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		failed["user: wrong-credentials"] = 1
		f.expectRefusals(rolecall.EventSignInFailed, failed)
	})
}

func TestRefusalsOfUnknownTenantsAreNotRecorded(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.is(errorOf(f.SignIn.Login(f.Context(), access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}, address("owner"), "wrong")), rolecall.ErrWrongCredentials)
		if asked := f.db.during(func() { f.ok(f.Access.Refusals.Flush(f.Context())) }); len(asked) != 0 {
			t.Errorf("of an unknown tenant the store was asked %q", asked)
		}
	})
}

// refusedOf returns the number of events by the type of their subject, and the sum of
// their counts.
func (f *fixture) refusedOf(kind rolecall.EventType) (events map[rolecall.SubjectType]int, sum int) {
	f.Helper()
	events = map[rolecall.SubjectType]int{}
	for _, e := range f.events(f.owner, directory.EventListing{Type: string(kind)}) {
		events[e.Subject.Type]++
		times := 1
		if _, text, ok := strings.Cut(e.Reason, ", "); ok {
			_, err := fmt.Sscanf(text, "%d times", &times)
			f.ok(err)
		}
		sum += times
	}
	return events, sum
}

func TestRefusalsAboutRandomUsersMakeFewEvents(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, eve := f.user("ada"), f.caller()
		about := directory.EventListing{Subject: rolecall.AnyID(ada.ID)}
		history := len(f.events(f.owner, about))
		for i := range 10_000 {
			subject := rolecall.NewID[rolecall.User](start)
			if i%100 == 99 {
				subject = ada.ID
			}
			f.Access.Refused(eve, subject, "getUser", "permission-denied")
		}
		f.ok(f.Access.Refusals.Flush(f.Context()))
		events, sum := f.refusedOf(rolecall.EventRefused)
		if events[rolecall.SubjectUser] != 3 || events[rolecall.SubjectTenant] != 1 || sum != 10_000 {
			t.Errorf("%v events count %d refusals", events, sum)
		}
		if got := len(f.events(f.owner, about)); got != history {
			t.Errorf("the history of another user has %d more events", got-history)
		}
		f.Access.Refused(eve, ada.ID, "getUser", "permission-denied")
		f.ok(f.Access.Refusals.Flush(f.Context()))
		if got := len(f.events(f.owner, about)); got != history+1 {
			t.Errorf("after the flood a refusal adds %d events to the history, want 1", got-history)
		}
	})
}

func TestRefusalsOfACallerAndOfATenantAreBounded(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		const operations, callers = 40, 100
		refuse := func(c access.Caller) {
			for i := range operations {
				f.Access.Refused(c, rolecall.NewID[rolecall.User](start), fmt.Sprintf("operation%d", i), "permission-denied")
			}
		}
		refuse(f.owner)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		events, sum := f.refusedOf(rolecall.EventRefused)
		if events[rolecall.SubjectUser] != 10 || events[rolecall.SubjectTenant] != 1 || sum != operations {
			t.Errorf("of one caller %v events count %d refusals", events, sum)
		}
		for range callers {
			c := f.owner
			principal := *f.owner.Principal
			principal.User.ID = rolecall.NewID[rolecall.User](start)
			c.Principal = &principal
			refuse(c)
		}
		f.db.fail(rolecall.ErrUnavailable)
		f.is(f.Access.Refusals.Flush(f.Context()), rolecall.ErrUnavailable)
		f.db.fail(nil)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		added, sum := f.refusedOf(rolecall.EventRefused)
		if n := added[rolecall.SubjectUser] + added[rolecall.SubjectTenant] - 11; n != 51 || sum != operations*(callers+1) {
			t.Errorf("of many callers %d more events count %d refusals", n, sum)
		}
	})
}

func TestFailedSignInsToManyAccountsAreBounded(t *testing.T) {
	onEachStoreLimited(t, unlimited, func(f *fixture) {
		const known, unknown = 60, 40
		for i := range known {
			f.user(fmt.Sprintf("known-%d", i))
		}
		for i := range known {
			f.is(f.guess("192.0.2.1", fmt.Sprintf("known-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		for i := range unknown {
			f.is(f.guess("192.0.2.1", fmt.Sprintf("nobody-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.ok(f.Access.Refusals.Flush(f.Context()))
		events, sum := f.refusedOf(rolecall.EventSignInFailed)
		if events[rolecall.SubjectUser] != 50 || events[rolecall.SubjectTenant] != 1 || sum != known+unknown {
			t.Errorf("%v events count %d failed sign-ins", events, sum)
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
			f.Access.Refused(f.owner, rolecall.UserID{}, "listEvents", "permission-denied")
			f.Access.Refused(elsewhere, rolecall.UserID{}, "listEvents", "permission-denied")
			if round < 2 {
				f.db.fail(rolecall.ErrUnavailable)
				f.is(f.Access.Refusals.Flush(f.Context()), rolecall.ErrUnavailable)
				f.db.fail(nil)
			}
		}
		f.ok(f.Access.Refusals.Flush(f.Context()))
		f.ok(f.Access.Refusals.Flush(f.Context()))
		recorded := map[string]int{"tenant: listEvents: permission-denied, 3 times": 1}
		f.expectRefusals(rolecall.EventRefused, recorded)
		f.owner, f.tenant = elsewhere, other
		f.expectRefusals(rolecall.EventRefused, recorded)
	})
}

func TestRefusalsAreRecordedEverySecondAndAtTheEnd(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ctx, stop := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Node.Run(ctx) }()
		f.Access.Refused(f.owner, f.owner.User.ID, "first", "permission-denied")
		f.eventually(func() bool { return len(f.refusals(rolecall.EventRefused)) == 1 })
		f.Access.Refused(f.owner, f.owner.User.ID, "last", "permission-denied")
		stop()
		f.ok(<-ended)
		f.expectRefusals(rolecall.EventRefused, map[string]int{"user: first: permission-denied": 1, "user: last: permission-denied": 1})
	})
}
