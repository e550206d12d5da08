package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) eventOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/users/{id}/events", ID: "UsersController_listUserEvents", Summary: "List a user's events",
			Description: "Lists the events about the user, newest first.",
			Policy:      authz.ReadUserEvents,
			Answers:     operation.Answers{{http.StatusOK, "A page of events.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listUserEvents),
		},
		{
			Method: http.MethodGet, Path: "/events", ID: "EventsController_listEvents", Summary: "List events",
			Description: "Lists the events of the tenant (the audit log), newest first.",
			Policy:      authz.ReadEvents,
			Answers:     operation.Answers{{http.StatusOK, "A page of events.", []string{"Link"}}},
			Handler:     operation.JSON(s.listEvents),
		},
		{
			Method: http.MethodGet, Path: "/events/checkpoint", ID: "EventsController_getCheckpoint", Summary: "Get a checkpoint of the audit log",
			Description: "Returns the signed state of the log that all events of the tenant form: a Merkle tree as in RFC 6962, whose leaves are the events in the order of GET /changes. Save checkpoints outside of the service. With a checkpoint, you can prove later that no event before it was changed or removed.",
			Policy:      authz.ReadEvents,
			Answers:     operation.Answers{{http.StatusOK, "The checkpoint.", nil}},
			Handler:     operation.JSON(s.getCheckpoint),
		},
		{
			Method: http.MethodGet, Path: "/events/consistency", ID: "EventsController_getConsistency", Summary: "Prove that the audit log has only grown",
			Description: "Returns the proof that the log begins with exactly the events of an earlier checkpoint.",
			Policy:      authz.ReadEvents,
			Answers:     operation.Answers{{http.StatusOK, "The proof, and the current checkpoint.", nil}},
			Problems:    problems{rolecall.ErrLogShorter},
			Handler:     operation.JSON(s.getConsistency),
		},
		{
			Method: http.MethodGet, Path: "/events/{id}/proof", ID: "EventsController_getEventProof", Summary: "Prove that an event is in the audit log",
			Description: "Returns the leaf of the event, the proof that it is in the log, and the checkpoint to verify both. An erasure of a person removes data from events. Their leaves have salted commitments to the data, and stay valid.",
			Policy:      authz.ReadEvents,
			Answers:     operation.Answers{{http.StatusOK, "The proof, and the checkpoint of the log.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getEventProof),
		},
	}
}

var _ = operation.PathID[rolecall.EventID]("ID of the event.", "019d83e6-1ef1-7003-9d1e-2b4c6d8e0f33")

// eventFilters are the filters of every list of events.
type eventFilters struct {
	Type  eventTypeValue `query:"type" doc:"Only events of this type, such as user.updated. Later versions may add types."`
	Actor rolecall.AnyID `query:"actor" doc:"Only events that this principal caused."`
	From  rolecall.Time  `query:"from" doc:"Only events at this timestamp or later."`
	To    rolecall.Time  `query:"to" doc:"Only events before this timestamp."`
}

// listing converts the filters to the argument of the service methods.
func (r *eventFilters) listing(subject rolecall.AnyID) directory.EventListing {
	return directory.EventListing{Type: string(r.Type), Actor: r.Actor, Subject: subject, From: r.From, To: r.To}
}

// eventFilterRequest is a request for a page of a list of events.
type eventFilterRequest struct {
	operation.PageRequest
	eventFilters
}

// eventTypeValue is a query parameter with a known type of event.
type eventTypeValue string

// Known returns the known types of events.
func (eventTypeValue) Known() (types []string, otherwise string) {
	for _, d := range rolecall.EventDescriptions() {
		types = append(types, string(d.Type))
	}
	return types, "must be a known type of event, such as user.updated; /docs/events lists all types"
}

// listing converts the filters and the page to the argument of the service methods.
func (r *eventFilterRequest) listing(subject rolecall.AnyID) directory.EventListing {
	l := r.eventFilters.listing(subject)
	l.After, l.Limit = r.After.At, r.Limit.OrDefault()
	return l
}

type listEventsRequest struct {
	eventFilterRequest
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this user, role, service account or tenant."`
}

func (s *Server) listEvents(ctx context.Context, c access.Caller, in *listEventsRequest) (operation.Response[operation.Page[eventBody]], error) {
	page, err := s.directory.Events(ctx, c, in.listing(in.Subject))
	return operation.NewPage(&page, newEventBody), err
}

type listUserEventsRequest struct {
	userPath
	eventFilterRequest
}

func (s *Server) listUserEvents(ctx context.Context, c access.Caller, in *listUserEventsRequest) (operation.Response[operation.Page[eventBody]], error) {
	page, err := s.directory.UserEvents(ctx, c, in.ID, in.listing(rolecall.AnyID{}))
	return operation.NewPage(&page, newEventBody), err
}

// eventBody is an event with the values that the caller may read.
type eventBody struct {
	ID         rolecall.EventID   `json:"id" doc:"ID of the event. IDs are not in the order of commits."`
	Type       rolecall.EventType `json:"type" doc:"Type of the event: one of the values of the query parameter type. Later versions may add values. /docs/events describes each type."`
	OccurredAt rolecall.Time      `json:"occurredAt" doc:"When it happened."`
	Actor      eventActor         `json:"actor" doc:"Who caused the event."`
	Subject    eventSubject       `json:"subject" doc:"What the event is about."`
	Members    []string           `json:"members" doc:"Names of the members that changed."`
	RequestID  optionalText       `json:"requestId" nullable:"true" doc:"ID of the request."`
	SessionID  rolecall.SessionID `json:"sessionId" nullable:"true" doc:"ID of the session of the request. In the event session.ended, ID of the session that ended. In other events, it is also null if another user, service account or operator caused the event, unless the caller may read all events."`
	Source     optionalText       `json:"source" nullable:"true" doc:"IP address of the client. It is also null if another user, service account or operator caused the event, unless the caller may read all events."`
	Reason     optionalText       `json:"reason" nullable:"true" doc:"The reason for the change or for the refusal."`
	Before     jsontext.Value     `json:"before,omitzero" doc:"The changed members before the change. Members that the caller may not read are absent. For an assignment: roleId, departments (absent for the whole tenant) and expiresAt (absent if it does not expire)."`
	After      jsontext.Value     `json:"after,omitzero" doc:"The changed members after the change, as in before."`
}

var _ = operation.Component[eventBody]("Event", "An event. To copy all events, poll with an overlap and skip the IDs that you have, as the guide on events shows.")
var _ = operation.Component[operation.Page[eventBody]]("EventPage", "A page of events.")

type eventActor struct {
	Type  rolecall.ActorType  `json:"type" doc:"Kind of principal: user, service_account, operator, anonymous or directory. Later versions may add values."`
	ID    rolecall.UserID     `json:"id" nullable:"true" doc:"ID of the principal. Null for commands and for anonymous callers."`
	Via   string              `json:"via" doc:"How the request came in: http, token, command, mail or scim. Later versions may add values."`
	Token rolecall.APITokenID `json:"tokenId" nullable:"true" doc:"ID of the API token of the request. It is also null if another user, service account or operator caused the event, unless the caller may read all events."`
}

var _ = operation.Component[eventActor]("EventActor", "Who caused an event.")

type eventSubject = feed.ItemSubject

var _ = operation.Component[eventSubject]("EventSubject", "The user, role or other object that an event is about.")

func newEventBody(e *rolecall.Event) eventBody {
	body := eventBody{
		ID: e.ID, Type: e.Type, OccurredAt: e.OccurredAt,
		Actor:   eventActor{e.Actor.Type, e.Actor.ID, e.Actor.Via, e.Actor.Token},
		Subject: eventSubject(e.Subject),
		Members: e.Members, RequestID: optionalText(e.RequestID), SessionID: e.SessionID,
		Source: optionalText(e.Source), Reason: optionalText(e.Reason),
	}
	if e.Values != nil {
		body.Before, body.After = e.Values.Before, e.Values.After
	}
	return body
}

// optionalText is a text. If it is empty, its JSON is null.
type optionalText = wire.OptionalText

// checkpointBody is the signed state of the audit log.
type checkpointBody struct {
	Size        int64         `json:"size" doc:"Number of events in the log, including those that were deleted because of their age."`
	Root        string        `json:"root" doc:"Hash of the whole log in base64."`
	BuiltAt     rolecall.Time `json:"builtAt" doc:"When the last event was added to the log."`
	Note        string        `json:"note" doc:"The checkpoint as a signed note in the form of C2SP tlog-checkpoint. Save it to a file for rolecall events verify."`
	VerifierKey string        `json:"verifierKey" doc:"The public key that verifies the signature of the note, in the form of golang.org/x/mod/sumdb/note. It stays the same, so save it once."`
}

var _ = operation.Component[checkpointBody]("Checkpoint", "The signed state of the audit log of the tenant.")

func newCheckpointBody(c *auditlog.Checkpoint) checkpointBody {
	return checkpointBody{Size: c.Size, Root: auditlog.RootText(&c.Log), BuiltAt: c.BuiltAt, Note: c.Note, VerifierKey: c.VerifierKey}
}

func (s *Server) getCheckpoint(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[checkpointBody], error) {
	checkpoint, err := s.directory.Checkpoint(ctx, c, s.site.Public)
	return operation.Response[checkpointBody]{Body: newCheckpointBody(&checkpoint)}, err
}

// eventProofBody proves that an event is in the audit log.
type eventProofBody struct {
	ID         rolecall.EventID `json:"id" doc:"ID of the event."`
	Index      int64            `json:"index" doc:"Index of the leaf in the log. The oldest event ever has the index 0."`
	Leaf       string           `json:"leaf" doc:"The leaf: the event as a JSON object, with commitments instead of values, reason and source. The hash of the leaf is the SHA-256 of a zero byte and this text."`
	Hashes     []string         `json:"hashes" doc:"The inclusion proof of RFC 6962 in base64: with the hash of the leaf, these hashes give the root of the checkpoint."`
	Values     *openedBody      `json:"values" doc:"The values before and after the change, as a JSON object in a text. Null if they were erased, or if the caller may not read all of them."`
	Reason     *openedBody      `json:"reason" doc:"The reason. Null if it was erased."`
	Source     *openedBody      `json:"source" doc:"The IP address of the client. Null if it was erased."`
	Checkpoint checkpointBody   `json:"checkpoint" doc:"The checkpoint of the log that has the event."`
}

var _ = operation.Component[eventProofBody]("EventProof", "The proof that an event is in the audit log.")

// openedBody is the data behind a commitment.
type openedBody struct {
	Salt string `json:"salt" doc:"The salt in base64. The commitment in the leaf is the SHA-256 of a zero byte, the salt and the data, in base64."`
	Data string `json:"data" doc:"The data. It is empty if the event has none."`
}

var _ = operation.Component[openedBody]("OpenedCommitment", "The data of an event to which its leaf commits.")

func (s *Server) getEventProof(ctx context.Context, c access.Caller, in *eventProofRequest) (operation.Response[eventProofBody], error) {
	proof, err := s.directory.EventProof(ctx, c, s.site.Public, in.ID)
	if err != nil {
		return operation.Response[eventProofBody]{}, err
	}
	return operation.Response[eventProofBody]{Body: newEventProofBody(&proof)}, nil
}

func newEventProofBody(proof *directory.EventProof) eventProofBody {
	opened := func(g rolecall.EventGroup) *openedBody {
		if group, ok := proof.Opened[g]; ok {
			return &openedBody{base64.StdEncoding.EncodeToString(group.Salt), string(group.Data)}
		}
		return nil
	}
	return eventProofBody{
		ID: proof.ID, Index: proof.Number - 1, Leaf: string(proof.Leaf), Hashes: hashTexts(proof.Hashes),
		Values: opened(rolecall.GroupValues), Reason: opened(rolecall.GroupReason), Source: opened(rolecall.GroupSource),
		Checkpoint: newCheckpointBody(&proof.Checkpoint),
	}
}

type eventProofRequest struct{ idPath[rolecall.Event] }

func hashTexts(hashes []tlog.Hash) []string {
	texts := make([]string, len(hashes))
	for i := range hashes {
		texts[i] = hashes[i].String()
	}
	return texts
}

type consistencyRequest struct {
	From logSize `query:"from" required:"true" doc:"The size of the earlier checkpoint."`
}

// logSize is the number of events of a checkpoint.
type logSize int64

var _ = operation.SchemaOf[logSize](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "integer", Format: "int64", Minimum: new(1.0)}
})

// SetParameter parses the number.
func (n *logSize) SetParameter(text string) (code, detail string) {
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 1 {
		return "range", "must be the size of a checkpoint, which is a whole number from 1"
	}
	*n = logSize(size)
	return "", ""
}

// consistencyBody proves that the audit log has only grown since an earlier checkpoint.
type consistencyBody struct {
	From       int64          `json:"from" doc:"The size of the earlier checkpoint."`
	Hashes     []string       `json:"hashes" doc:"The consistency proof of RFC 6962 in base64, from the root of the earlier checkpoint to the root of this one."`
	Checkpoint checkpointBody `json:"checkpoint" doc:"The current checkpoint."`
}

var _ = operation.Component[consistencyBody]("ConsistencyProof", "The proof that the audit log begins with the events of an earlier checkpoint.")

func (s *Server) getConsistency(ctx context.Context, c access.Caller, in *consistencyRequest) (operation.Response[consistencyBody], error) {
	proof, err := s.directory.Consistency(ctx, c, s.site.Public, int64(in.From))
	return operation.Response[consistencyBody]{Body: newConsistencyBody(int64(in.From), &proof)}, err
}

func newConsistencyBody(from int64, proof *auditlog.Consistency) consistencyBody {
	return consistencyBody{From: from, Hashes: hashTexts(proof.Hashes), Checkpoint: newCheckpointBody(&proof.Checkpoint)}
}
