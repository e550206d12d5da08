// Package directory has the operations of administrators on users, roles, assignments,
// service accounts, API tokens, invitations, deleted users, tenants and operator keys. It
// also runs jobs, lists events, and summarizes users and tenants.
//
// Methods authorize their caller by the policies of authz. Most methods for operators are
// an exception: the code that calls them checks the policy, and the method only checks
// whether the operator key can access the tenant. A method that makes a change writes its
// event in the same transaction. The package may import access and the packages that access
// may import, but not signin.
package directory

import (
	"encoding/json"
	"log/slog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/store"
)

// Service has the operations of the package. It is safe for concurrent use. In addition to
// the errors that the comment of a method names, the method can return ErrUnavailable: the
// store is unavailable, or concurrent requests change the same row too often.
type Service struct {
	access       *access.Service
	store        *store.Store
	now          func() rolecall.Time
	log          *slog.Logger
	limiter      *ratelimit.Limiter
	invalidation *invalidation.Table
	outbox       *outbox.Outbox
	tenants      *tenantCache
	newJob       chan struct{} // signals a new job to RunJobs
	requests     directoryRequests
}

// New returns a Service that uses the database and the other dependencies of a.
func New(a *access.Service) *Service {
	return &Service{
		access: a, store: a.Store, now: a.Now, log: a.Log, limiter: a.Limiter, invalidation: a.Invalidation, outbox: a.Outbox,
		tenants: newTenantCache(), newJob: make(chan struct{}, 1),
	}
}

// Match is a precondition on the stored value.
type Match[T any] = access.Match[T]

// changeEvent returns the event of a change of an object from old to changed. For a new object, old is nil. If the
// object was deleted, changed is nil.
// The names of the members that changed are in members.
func changeEvent[T any](s *Service, c access.Caller, kind rolecall.EventType, about rolecall.Subject, old, changed *T, members []string) (event *rolecall.Event, err error) {
	event = s.access.Event(c, kind, about)
	event.Members, event.Values = members, &rolecall.EventValues{}
	if old != nil {
		if event.Values.Before, err = json.Marshal(old); err != nil {
			return nil, err
		}
	}
	if changed != nil {
		event.Values.After, err = json.Marshal(changed)
	}
	return event, err
}
