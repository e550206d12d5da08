package httpapi

import (
	"context"
	"encoding/binary"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

func (s *Server) tenantsChangeOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/operator/changes", ID: "OperatorController_listChanges", Summary: "Follow the changes of all tenants",
			Description: "Returns the events of all tenants that the operator key may access, in a fixed order, as GET /changes does for one tenant. The events of a tenant have the same order as there. No event ever appears at or before a cursor that was returned. The answer is 410 if an event after the cursor was deleted in any tenant, if the tenant of an event after the cursor was purged, or if the database has lost commits.",
			Policy:      authz.ReadTenantsChanges,
			Answers:     operation.Answers{{http.StatusOK, "The changes after the cursor.", nil}},
			Problems:    problems{rolecall.ErrChangesExpired, rolecall.ErrTooManyWaits},
			Handler:     operation.JSON(s.listTenantsChanges),
		},
	}
}

type listTenantsChangesRequest struct {
	After changesCursor  `query:"after" doc:"The nextCursor of an earlier response. It is valid for the same type, and for keys for the same tenants. Without it, the changes begin with the oldest event after which no event of any tenant was deleted."`
	At    changesPlace   `query:"at" doc:"With now, the response has no changes, and the cursor after all changes until now."`
	Type  eventTypeValue `query:"type" doc:"Only events of this type, such as user.updated. Later versions may add types."`
	changesPage
}

func (s *Server) listTenantsChanges(ctx context.Context, c access.Caller, in *listTenantsChangesRequest) (response operation.Response[changesBody], err error) {
	q := feed.TenantsQuery{Type: rolecall.EventType(in.Type), Limit: in.Limit.OrDefault()}
	digest := tenantsChangesDigest(c, in)
	if in.After != "" {
		at, err := s.openFeedCursor(in.After, in.At, digest, 16)
		if err != nil {
			return response, err
		}
		place, number := binary.BigEndian.Uint64([]byte(at.Key[:8])), binary.BigEndian.Uint64([]byte(at.Key[8:]))
		q.After = &rolecall.TenantsMark{Place: int64(place), Number: int64(number), Mark: at.ID}
	}
	if in.At != "" {
		page, err := s.directory.TenantsChangesEnd(ctx, c)
		return s.tenantsChangesOf(digest, &page), err
	}
	changed := func(access.Caller) (<-chan struct{}, func()) { return s.directory.AwaitTenantsChanges() }
	err = in.await(c, changed, func(c access.Caller) (done bool, err error) {
		page, err := s.directory.TenantsChanges(ctx, c, q)
		if err != nil {
			return true, err
		}
		q.After = &page.Next
		response = s.tenantsChangesOf(digest, &page)
		return len(page.Changes) > 0 || !page.UpToDate, nil
	})
	return response, err
}

// tenantsChangesDigest identifies the changes of the tenants of an operator key with a type. A cursor is
// valid only for them.
func tenantsChangesDigest(c access.Caller, in *listTenantsChangesRequest) []byte {
	parts := [][]byte{[]byte("changes of tenants"), []byte(in.Type)}
	for _, name := range c.Operator.Tenants {
		parts = append(parts, []byte(name))
	}
	return secret.Digest(parts...)
}

// tenantsChangesOf returns the response with the page.
func (s *Server) tenantsChangesOf(digest []byte, page *feed.TenantsPage) operation.Response[changesBody] {
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(page.Next.Place)), uint64(page.Next.Number))
	next := rolecall.Position{ID: page.Next.Mark, Key: string(key)}
	body := changesBody{NextCursor: web.SealCursor(s.access.Keys, &next, digest), UpToDate: page.UpToDate, Items: []feed.Item{}}
	for i := range page.Changes {
		tenant := page.Tenants[i]
		body.Items = append(body.Items, feed.NewItem(&page.Changes[i].Event, feed.SourceOf(s.site.Public, tenant), tenant))
	}
	return operation.Response[changesBody]{Body: body}
}
