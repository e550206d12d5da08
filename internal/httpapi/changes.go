package httpapi

import (
	"context"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

func (s *Server) changeOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/changes", ID: "EventsController_listChanges", Summary: "Follow changes",
			Description: "Returns the events of the tenant in a fixed order, the oldest first. No event ever appears before the cursor of a response. If a change depends on another one, its event comes after that of the other one. To copy the data of a tenant, first get a cursor with at=now, then read the lists, and then follow the changes after this cursor. Items are CloudEvents 1.0. They have no secrets and no IP addresses.",
			Policy:      authz.ReadChanges,
			Answers:     operation.Answers{{http.StatusOK, "The next changes, and the cursor after them.", nil}},
			Problems:    problems{rolecall.ErrChangesExpired, rolecall.ErrTooManyWaits},
			Handler:     operation.JSON(s.listChanges),
		},
	}
}

// Types of package feed in the OpenAPI document.
var (
	_ = operation.Component[feed.Item]("Change", "An event as a CloudEvent 1.0. The page on events describes each type.")
	_ = operation.Component[feed.ItemData]("ChangeData", "The content of a change.")
	_ = operation.Component[feed.ItemActor]("ChangeActor", "Who caused a change.")
)

type listChangesRequest struct {
	After changesCursor  `query:"after" doc:"The nextCursor of an earlier response. It is valid for the same tenant and type. Without it, the changes begin with the oldest event that is kept."`
	At    changesPlace   `query:"at" doc:"With now, the response has no changes, and the cursor after all changes until now."`
	Type  eventTypeValue `query:"type" doc:"Only events of this type, such as user.updated. Later versions may add types."`
	changesPage
}

// changesPage is the part of a request for changes that limits the page and the wait.
type changesPage struct {
	Limit   operation.Limit `query:"limit" doc:"Maximum number of changes. Values above 200 are treated as 200. A response can have fewer changes, or none, while upToDate is false."`
	Wait    waitSeconds     `query:"wait" doc:"If there are no changes, how many seconds to wait for one. A principal can have 8 requests that wait on a node."`
	Waiting operation.Waiting
}

// await calls read until it returns true, the wait of the request is over, or the process is about to
// stop. Between the calls, it waits until changed tells of a change.
func (p *changesPage) await(c access.Caller, changed func(access.Caller) (<-chan struct{}, func()), read func(access.Caller) (done bool, err error)) error {
	end := time.Now().Add(time.Duration(p.Wait) * time.Second)
	if p.Wait > 0 {
		endWait, err := p.Waiting.Begin(time.Until(end))
		if err != nil {
			return err
		}
		defer endWait()
	}
	for more := true; ; {
		awoken, stop := changed(c)
		done, err := read(c)
		rest := time.Until(end)
		if err != nil || done || rest <= 0 || !more {
			stop()
			return err
		}
		c, more, err = p.Waiting.Await(awoken, min(rest, waitPart))
		stop()
		if err != nil {
			return err
		}
	}
}

// changesCursor is the text of a cursor of the change feed.
type changesCursor string

var _ = operation.SchemaOf[changesCursor](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", MinLength: new(1)}
})

// SetParameter stores the text. The handler decrypts it.
func (c *changesCursor) SetParameter(text string) (code, detail string) {
	*c = changesCursor(text)
	if text == "" {
		return "cursor", changesCursorDetail
	}
	return "", ""
}

const changesCursorDetail = "must be the nextCursor of a response with changes of the same tenant and type"

// changesPlace is a place in the change feed that has a name.
type changesPlace string

// Known returns the names of places.
func (changesPlace) Known() (places []string, otherwise string) {
	return []string{"now"}, "must be now"
}

// waitSeconds is the time that a request can wait.
type waitSeconds int

var _ = operation.SchemaOf[waitSeconds](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "integer", Minimum: new(0.0), Maximum: new(float64(longestWait)), Default: 0}
})

// SetParameter parses the number of seconds.
func (s *waitSeconds) SetParameter(text string) (code, detail string) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > longestWait {
		return "range", "must be a whole number from 0 to 30"
	}
	*s = waitSeconds(n)
	return "", ""
}

func (s *Server) listChanges(ctx context.Context, c access.Caller, in *listChangesRequest) (operation.Response[changesBody], error) {
	q := feed.Query{Type: rolecall.EventType(in.Type), Limit: in.Limit.OrDefault()}
	rights, err := s.openChangesCursor(c, in, &q)
	if err != nil {
		return operation.Response[changesBody]{}, err
	}
	if in.At != "" {
		page, err := s.directory.ChangesEnd(ctx, c)
		return s.changesOf(c, in, &page), err
	}
	var response operation.Response[changesBody]
	err = in.await(c, s.directory.AwaitChanges, func(c access.Caller) (done bool, err error) {
		if rights != "" && rights != rightsOf(c) {
			return true, rolecall.ErrChangesExpired
		}
		page, err := s.directory.Changes(ctx, c, q)
		if err != nil {
			return true, err
		}
		q.After = &page.Next
		response = s.changesOf(c, in, &page)
		return len(page.Changes) > 0 || !page.UpToDate, nil
	})
	return response, err
}

// rightsLength is the number of bytes of a cursor that identify which values the caller may read.
const rightsLength = 16

// rightsOf identifies which values of events the caller may read.
func rightsOf(c access.Caller) string {
	return string(secret.Digest(authz.ValueRights(c.Principal))[:rightsLength])
}

// openChangesCursor sets q.After to the position in the cursor of the request. It returns the rights
// that the cursor was issued for, or an empty string if the request has no cursor.
func (s *Server) openChangesCursor(c access.Caller, in *listChangesRequest, q *feed.Query) (rights string, err error) {
	if in.After == "" {
		return "", nil
	}
	at, err := s.openFeedCursor(in.After, in.At, changesDigest(c, in), 8+rightsLength)
	if err != nil {
		return "", err
	}
	q.After = &rolecall.FeedPosition{Number: int64(binary.BigEndian.Uint64([]byte(at.Key[:8]))), Event: rolecall.EventID(at.ID)}
	return at.Key[8:], nil
}

// openFeedCursor returns the content of a cursor, whose key must have the given length.
func (s *Server) openFeedCursor(cursor changesCursor, at changesPlace, digest []byte, length int) (*rolecall.Position, error) {
	if at != "" {
		return nil, rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Parameter: "at", Code: "ambiguous", Detail: "must not be given together with after"})
	}
	content, ok := web.OpenCursor(s.access.Keys, string(cursor), digest)
	if !ok || len(content.Key) != length {
		return nil, rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Parameter: "after", Code: "cursor", Detail: changesCursorDetail})
	}
	return content, nil
}

// changesDigest identifies the changes of a tenant with a type. A cursor is valid only for them.
func changesDigest(c access.Caller, in *listChangesRequest) []byte {
	return secret.Digest([]byte("changes"), c.Tenant.ID[:], []byte(in.Type))
}

// changesOf returns the response with the page.
func (s *Server) changesOf(c access.Caller, in *listChangesRequest, page *feed.Page) operation.Response[changesBody] {
	key := binary.BigEndian.AppendUint64(nil, uint64(page.Next.Number))
	next := rolecall.Position{ID: rolecall.AnyID(page.Next.Event), Key: string(key) + rightsOf(c)}
	body := changesBody{NextCursor: web.SealCursor(s.access.Keys, &next, changesDigest(c, in)), UpToDate: page.UpToDate}
	source := feed.SourceOf(s.site.Public, c.Tenant.Name)
	body.Items = operation.Bodies(page.Changes, func(change *rolecall.Change) feed.Item { return feed.NewItem(&change.Event, source, c.Tenant.Name) })
	return operation.Response[changesBody]{Body: body}
}

// changesBody is a part of the change feed.
type changesBody struct {
	Items      []feed.Item `json:"items" doc:"The changes, the oldest first."`
	NextCursor string      `json:"nextCursor" doc:"The cursor after these changes. It is never null. Use it as after in the next request."`
	UpToDate   bool        `json:"upToDate" doc:"Whether there were no further changes."`
}

var _ = operation.Component[changesBody]("Changes", "A part of the change feed.")

const (
	longestWait = 30 // seconds

	// waitPart is how long a request waits without a look at the database. Some changes wake no
	// waiting request, such as those of a process that died after its commit.
	waitPart = 5 * time.Second
)
