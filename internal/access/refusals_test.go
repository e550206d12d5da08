package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
)

// unlimited effectively disables the limits of sign-ins.
var unlimited = ratelimit.Limits{AccountAndSource: 1e6, Account: 1e6, Source: 1e6}

func TestFailedSignInsOfASecondAreOneEventPerKind(t *testing.T) {
	nodetest.OnEachStoreLimited(t, unlimited, func(f *nodetest.Fixture) {
		for i := range 12 {
			f.Is(f.Guess(fmt.Sprintf("192.0.2.%d", i), "owner", "wrong"), rolecall.ErrWrongCredentials)
			f.Is(f.Guess("192.0.2.1", fmt.Sprintf("nobody-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		elsewhere := access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), elsewhere, nodetest.Address("owner"), "wrong")), rolecall.ErrWrongCredentials)
		f.ExpectRefusals(rolecall.EventSignInFailed, map[string]int{})

		f.Clock.Advance(time.Second)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		failed := map[string]int{"user: wrong-credentials, 12 times": 1, "tenant: wrong-credentials, 12 times": 1}
		f.ExpectRefusals(rolecall.EventSignInFailed, failed)
		for _, e := range f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSignInFailed)}) {
			if e.Actor.Type != rolecall.ActorAnonymous || e.OccurredAt != f.Clock.Now() || e.Source == "" {
				t.Errorf("the event is %+v", e)
			}
			if e.Subject.Type == rolecall.SubjectUser && (e.Subject.ID != rolecall.AnyID(f.Owner.User.ID) || e.Source != "192.0.2.0") {
				t.Errorf("the event is %+v", e)
			}
		}
		f.Is(f.Guess("192.0.2.1", "owner", "wrong"), rolecall.ErrWrongCredentials)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		failed["user: wrong-credentials"] = 1
		f.ExpectRefusals(rolecall.EventSignInFailed, failed)
	})
}

func TestRefusalsOfUnknownTenantsAreNotRecorded(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}, nodetest.Address("owner"), "wrong")), rolecall.ErrWrongCredentials)
		if asked := f.DB.During(func() { f.OK(f.Access.Refusals.Flush(f.Context())) }); len(asked) != 0 {
			t.Errorf("of an unknown tenant the store was asked %q", asked)
		}
	})
}

// refusedOf returns the number of events by the type of their subject, and the sum of
// their counts.
func refusedOf(f *nodetest.Fixture, kind rolecall.EventType) (events map[rolecall.SubjectType]int, sum int) {
	f.Helper()
	events = map[rolecall.SubjectType]int{}
	for _, e := range f.Events(f.Owner, directory.EventListing{Type: string(kind)}) {
		events[e.Subject.Type]++
		times := 1
		if _, text, ok := strings.Cut(e.Reason, ", "); ok {
			_, err := fmt.Sscanf(text, "%d times", &times)
			f.OK(err)
		}
		sum += times
	}
	return events, sum
}

func TestRefusalsAboutRandomUsersMakeFewEvents(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, eve := f.NewUser("ada"), f.CallerWith()
		about := directory.EventListing{Subject: rolecall.AnyID(ada.ID)}
		history := len(f.Events(f.Owner, about))
		for i := range 10_000 {
			subject := rolecall.NewID[rolecall.User](nodetest.Start)
			if i%100 == 99 {
				subject = ada.ID
			}
			f.Access.Refused(eve, subject, "getUser", "permission-denied")
		}
		f.OK(f.Access.Refusals.Flush(f.Context()))
		events, sum := refusedOf(f, rolecall.EventRefused)
		if events[rolecall.SubjectUser] != 3 || events[rolecall.SubjectTenant] != 1 || sum != 10_000 {
			t.Errorf("%v events count %d refusals", events, sum)
		}
		if got := len(f.Events(f.Owner, about)); got != history {
			t.Errorf("the history of another user has %d more events", got-history)
		}
		f.Access.Refused(eve, ada.ID, "getUser", "permission-denied")
		f.OK(f.Access.Refusals.Flush(f.Context()))
		if got := len(f.Events(f.Owner, about)); got != history+1 {
			t.Errorf("after the flood a refusal adds %d events to the history, want 1", got-history)
		}
	})
}

func TestRefusalsOfACallerAndOfATenantAreBounded(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const operations, callers = 40, 100
		refuse := func(c access.Caller) {
			for i := range operations {
				f.Access.Refused(c, rolecall.NewID[rolecall.User](nodetest.Start), fmt.Sprintf("operation%d", i), "permission-denied")
			}
		}
		refuse(f.Owner)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		events, sum := refusedOf(f, rolecall.EventRefused)
		if events[rolecall.SubjectUser] != 10 || events[rolecall.SubjectTenant] != 1 || sum != operations {
			t.Errorf("of one caller %v events count %d refusals", events, sum)
		}
		for range callers {
			c := f.Owner
			principal := *f.Owner.Principal
			principal.User.ID = rolecall.NewID[rolecall.User](nodetest.Start)
			c.Principal = &principal
			refuse(c)
		}
		f.DB.Fail(rolecall.ErrUnavailable)
		f.Is(f.Access.Refusals.Flush(f.Context()), rolecall.ErrUnavailable)
		f.DB.Fail(nil)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		added, sum := refusedOf(f, rolecall.EventRefused)
		if n := added[rolecall.SubjectUser] + added[rolecall.SubjectTenant] - 11; n != 51 || sum != operations*(callers+1) {
			t.Errorf("of many callers %d more events count %d refusals", n, sum)
		}
	})
}

func TestFailedSignInsToManyAccountsAreBounded(t *testing.T) {
	nodetest.OnEachStoreLimited(t, unlimited, func(f *nodetest.Fixture) {
		const known, unknown = 60, 40
		for i := range known {
			f.NewUser(fmt.Sprintf("known-%d", i))
		}
		for i := range known {
			f.Is(f.Guess("192.0.2.1", fmt.Sprintf("known-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		for i := range unknown {
			f.Is(f.Guess("192.0.2.1", fmt.Sprintf("nobody-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.OK(f.Access.Refusals.Flush(f.Context()))
		events, sum := refusedOf(f, rolecall.EventSignInFailed)
		if events[rolecall.SubjectUser] != 50 || events[rolecall.SubjectTenant] != 1 || sum != known+unknown {
			t.Errorf("%v events count %d failed sign-ins", events, sum)
		}
	})
}

func TestRefusalsThatCannotBeRecordedAreKept(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewTenant("other")
		elsewhere := f.Owner
		principal := *f.Owner.Principal
		principal.Tenant = other
		elsewhere.Principal = &principal
		for round := range 3 {
			f.Access.Refused(f.Owner, rolecall.UserID{}, "listEvents", "permission-denied")
			f.Access.Refused(elsewhere, rolecall.UserID{}, "listEvents", "permission-denied")
			if round < 2 {
				f.DB.Fail(rolecall.ErrUnavailable)
				f.Is(f.Access.Refusals.Flush(f.Context()), rolecall.ErrUnavailable)
				f.DB.Fail(nil)
			}
		}
		f.OK(f.Access.Refusals.Flush(f.Context()))
		f.OK(f.Access.Refusals.Flush(f.Context()))
		recorded := map[string]int{"tenant: listEvents: permission-denied, 3 times": 1}
		f.ExpectRefusals(rolecall.EventRefused, recorded)
		f.Owner, f.Tenant = elsewhere, other
		f.ExpectRefusals(rolecall.EventRefused, recorded)
	})
}
