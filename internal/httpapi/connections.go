package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) connectionOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/connections", ID: "ConnectionsController_listConnections", Summary: "List connections",
			Description: "Lists all connections of the tenant to identity providers, the oldest first. A tenant can have 20.",
			Policy:      authz.ReadConnections,
			Answers:     operation.Answers{{http.StatusOK, "The connections.", nil}},
			Handler:     operation.JSON(s.listConnections),
		},
		{
			Method: http.MethodPost, Path: "/connections", ID: "ConnectionsController_createConnection", Summary: "Create a connection",
			Description: "Creates a connection to an identity provider (OpenID Connect). Users of the tenant can then sign in with it. Then register the path /auths/oidc/callback/{id} of the public URL, with the ID of the connection, as the redirect URI at the identity provider. Each connection has another redirect URI. A user who can configure a connection can become any other user, so this needs all permissions.",
			Policy:      authz.CreateConnection,
			Answers:     operation.Answers{{http.StatusCreated, "The new connection.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrSessionRequired, rolecall.ErrBeyondOwnPermissions, rolecall.ErrTooManyConnections, rolecall.ErrConnectionNameTaken, rolecall.ErrIssuerTaken, rolecall.ErrDomainTaken},
			Handler:     operation.JSON(s.createConnection),
		},
		{
			Method: http.MethodGet, Path: "/connections/{id}", ID: "ConnectionsController_getConnection", Summary: "Get a connection",
			Description: "Returns the connection, without its client secret.",
			Policy:      authz.ReadConnections,
			Answers:     operation.Answers{{http.StatusOK, "The connection.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getConnection),
		},
		{
			Method: http.MethodPatch, Path: "/connections/{id}", ID: "ConnectionsController_updateConnection", Summary: "Update a connection",
			Description: "Changes the members that are in the body. The issuer cannot be changed: create another connection.",
			Policy:      authz.UpdateConnection,
			Answers:     operation.Answers{{http.StatusOK, "The changed connection.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrBeyondOwnPermissions, rolecall.ErrConnectionNameTaken, rolecall.ErrDomainTaken},
			Handler:     operation.JSON(s.updateConnection),
		},
		{
			Method: http.MethodDelete, Path: "/connections/{id}", ID: "ConnectionsController_deleteConnection", Summary: "Delete a connection",
			Description: "If users have identities of the connection, the answer is 409. With force=true, these identities are deleted too, and the sessions that began with them end. The event has their numbers. The groups of the connection remain with their members, without a source.",
			Policy:      authz.DeleteConnection,
			Answers:     operation.Answers{{http.StatusNoContent, "The connection was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrConnectionInUse},
			Handler:     operation.JSON(s.deleteConnection),
		},
		{
			Method: http.MethodPost, Path: "/connections/{id}/test", ID: "ConnectionsController_testConnection", Summary: "Test a connection",
			Description: "Fetches the metadata and the keys of the identity provider. The response lists the problems because of which users cannot sign in. The client secret can only be tested by signing in.",
			Policy:      authz.TestConnection,
			Answers:     operation.Answers{{http.StatusOK, "The report.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrConnectionUnavailable},
			Handler:     operation.JSON(s.testConnection),
		},
		{
			Method: http.MethodGet, Path: "/auths/connections", ID: "AuthsController_listConnections", Summary: "List connections to sign in with",
			Description: "Lists the names of the tenant's connections, for a sign-in page. A tenant that does not exist has the same response as one without connections.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.Anyone,
			Answers:     operation.Answers{{http.StatusOK, "The connections.", nil}},
			Handler:     operation.JSON(s.offeredConnections),
		},
		{
			Method: http.MethodPost, Path: "/auths/connections/find", ID: "AuthsController_findConnection", Summary: "Find the connection of an email address",
			Description: "Returns the connection that has the domain of the address. Only the domain counts, so the response does not reveal whether a user has the address.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.Anyone,
			Answers:     operation.Answers{{http.StatusOK, "The connection, or null.", nil}},
			Handler:     operation.JSON(s.findConnection),
		},
		{
			Method: http.MethodGet, Path: "/users/{id}/identities", ID: "UsersController_listIdentities", Summary: "List a user's identities",
			Description: "Lists the accounts at identity providers with which the user can sign in, the oldest first. A user can have 20.",
			Policy:      authz.ReadIdentities,
			Answers:     operation.Answers{{http.StatusOK, "The identities.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listIdentities),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/identities/{identityId}", ID: "UsersController_deleteIdentity", Summary: "Remove an identity from a user",
			Description: "The user cannot sign in with the identity any more, and the sessions that began with it end.",
			Policy:      authz.DeleteIdentity,
			Answers:     operation.Answers{{http.StatusNoContent, "The identity was removed.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.deleteIdentity),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.ConnectionID]("ID of the connection.", "019d83e6-1ef1-7006-8f6e-9d8c7b6a5f4e")
	_ = operation.Component[rolecall.ConnectionDraft]("CreateConnection", "A new connection to an identity provider.")
	_ = operation.Component[rolecall.ConnectionPatch]("UpdateConnection", "A merge patch (RFC 7396). Absent members do not change.")
	_ = operation.ComponentOrID[rolecall.Connection]("Connection", "A connection to an identity provider, without its client secret.")
	_ = operation.Component[rolecall.Provisioning]("Provisioning", "The access of users that a connection creates.")
	_ = operation.Component[rolecall.ConnectionGroups]("ConnectionGroups", "How a claim of the identity provider fills the groups whose source is the connection.")
)

type listConnectionsRequest struct{}

func (s *Server) listConnections(ctx context.Context, c access.Caller, _ *listConnectionsRequest) (operation.Response[operation.Page[connectionBody]], error) {
	all, err := s.signin.Connections(ctx, c)
	page := rolecall.Page[rolecall.Connection]{Items: all}
	return operation.NewPage(&page, func(c *rolecall.Connection) connectionBody { return connectionBody{c} }), err
}

type createConnectionRequest struct {
	operation.IdempotencyHeader
	Body rolecall.ConnectionDraft
}

func (s *Server) createConnection(ctx context.Context, c access.Caller, in *createConnectionRequest) (operation.Response[connectionBody], error) {
	created, err := s.signin.CreateConnection(ctx, c, in.Key, in.Body)
	return operation.Response[connectionBody]{
		Body: connectionBody{&created.Value}, Location: "/connections/" + created.Value.ID.String(), Replayed: created.Replayed,
	}, err
}

func (s *Server) getConnection(ctx context.Context, c access.Caller, in *getRequest[rolecall.Connection]) (operation.Response[connectionBody], error) {
	connection, err := s.signin.Connection(ctx, c, in.ID)
	return operation.Response[connectionBody]{Body: connectionBody{&connection}}, err
}

type updateConnectionRequest struct {
	idPath[rolecall.Connection]
	operation.IfMatchHeader
	Body rolecall.ConnectionPatch
}

func (s *Server) updateConnection(ctx context.Context, c access.Caller, in *updateConnectionRequest) (operation.Response[connectionBody], error) {
	connection, err := s.signin.UpdateConnection(ctx, c, in.ID, in.Body, match(in.IfMatch, connectionTag))
	return operation.Response[connectionBody]{Body: connectionBody{&connection}}, err
}

type deleteConnectionRequest struct {
	deleteRequest[rolecall.Connection]
	Force bool `query:"force" doc:"Whether to delete the identities of users too, and to end the sessions that began with them."`
}

func (s *Server) deleteConnection(ctx context.Context, c access.Caller, in *deleteConnectionRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.signin.DeleteConnection(ctx, c, in.ID, in.Force, match(in.IfMatch, connectionTag))
}

type connectionRequest struct{ idPath[rolecall.Connection] }

func (s *Server) testConnection(ctx context.Context, c access.Caller, in *connectionRequest) (operation.Response[connectionReport], error) {
	metadata, err := s.signin.TestConnection(ctx, c, in.ID)
	return operation.Response[connectionReport]{Body: newConnectionReport(&metadata)}, err
}

// connectionReport is the result of a test of a connection.
type connectionReport struct {
	Passed                bool         `json:"passed" doc:"Whether no problem was found."`
	Problems              []string     `json:"problems" doc:"The problems, as sentences in English."`
	AuthorizationEndpoint optionalText `json:"authorizationEndpoint" nullable:"true" doc:"Where users sign in at the identity provider. Null if it is unknown."`
	TokenEndpoint         optionalText `json:"tokenEndpoint" nullable:"true" doc:"Where Rolecall gets the ID token. Null if it is unknown."`
	KeysEndpoint          optionalText `json:"keysEndpoint" nullable:"true" doc:"Where Rolecall gets the keys of the identity provider. Null if it is unknown."`
	EndSessionEndpoint    optionalText `json:"endSessionEndpoint" nullable:"true" doc:"Where users sign out at the identity provider. Null if it does not support this."`
	Algorithms            []string     `json:"algorithms" doc:"The algorithms of ID tokens that both sides accept."`
	Keys                  int          `json:"keys" doc:"The number of keys of the identity provider that Rolecall can use."`
}

var _ = operation.Component[connectionReport]("ConnectionReport", "The result of a test of a connection.")

func newConnectionReport(m *oidc.Metadata) connectionReport {
	return connectionReport{
		Passed: m.Passed(), Problems: listed(m.Problems), AuthorizationEndpoint: optionalText(m.AuthorizationEndpoint), TokenEndpoint: optionalText(m.TokenEndpoint),
		KeysEndpoint: optionalText(m.KeysEndpoint), EndSessionEndpoint: optionalText(m.EndSessionEndpoint), Algorithms: listed(m.Algorithms), Keys: m.Keys,
	}
}

// listed returns the texts, or an empty list in place of nil.
func listed(texts []string) []string { return append([]string{}, texts...) }

type offeredRequest struct {
	Anonymous access.Anonymous
}

// offeredConnection is a connection for callers who are not signed in.
type offeredConnection struct {
	ID   rolecall.ConnectionID `json:"id" doc:"ID of the connection."`
	Name string                `json:"name" doc:"Name of the connection."`
}

var _ = operation.Component[offeredConnection]("OfferedConnection", "A connection with which users can sign in.")
var _ = operation.Component[operation.Page[offeredConnection]]("OfferedConnectionPage", "The connections with which users can sign in.")

func newOfferedConnection(c *rolecall.Connection) offeredConnection {
	return offeredConnection{c.ID, c.Name}
}

func (s *Server) offeredConnections(ctx context.Context, _ access.Caller, in *offeredRequest) (operation.Response[operation.Page[offeredConnection]], error) {
	all, err := s.signin.OfferedConnections(ctx, in.Anonymous.Tenant.ID)
	page := rolecall.Page[rolecall.Connection]{Items: all}
	return operation.NewPage(&page, newOfferedConnection), err
}

type findConnectionRequest struct {
	Anonymous access.Anonymous
	Body      findConnectionBody
}

type findConnectionBody struct {
	Email string `json:"email" required:"true" doc:"An email address. Only its domain counts."`
}

var _ = operation.Component[findConnectionBody]("FindConnection", "An email address.")

// foundConnection is the result of a search for the connection of an address.
type foundConnection struct {
	Connection *offeredConnection `json:"connection" nullable:"true" doc:"The connection that has the domain of the address. Null if no connection has it."`
}

var _ = operation.Component[foundConnection]("FoundConnection", "The connection of an email address.")

func (s *Server) findConnection(ctx context.Context, _ access.Caller, in *findConnectionRequest) (operation.Response[foundConnection], error) {
	found, err := s.signin.FindConnection(ctx, in.Anonymous.Tenant.ID, in.Body.Email)
	var body foundConnection
	if found != nil {
		offered := newOfferedConnection(found)
		body.Connection = &offered
	}
	return operation.Response[foundConnection]{Body: body}, err
}

// identityBody is an identity of a user.
type identityBody struct {
	rolecall.Identity
	LastUsedAt *rolecall.Time `json:"lastUsedAt" doc:"When the user last signed in with the identity. The sign-in that linked the identity does not count. Null if never."`
}

var _ = operation.Component[identityBody]("Identity", "An account at an identity provider with which the user can sign in.")
var _ = operation.Component[operation.Page[identityBody]]("IdentityPage", "The identities of a user.")

func newIdentityBody(i *rolecall.Identity) identityBody {
	body := identityBody{Identity: *i}
	if i.LastUsedAt != 0 {
		body.LastUsedAt = &i.LastUsedAt
	}
	return body
}

func (s *Server) listIdentities(ctx context.Context, c access.Caller, in *userRequest) (operation.Response[operation.Page[identityBody]], error) {
	all, err := s.signin.Identities(ctx, c, in.ID)
	page := rolecall.Page[rolecall.Identity]{Items: all}
	return operation.NewPage(&page, newIdentityBody), err
}

type deleteIdentityRequest struct {
	userPath
	Identity rolecall.IdentityID `path:"identityId" example:"019d83e6-1ef1-7007-9f5e-8d7c6b5a4f3e" doc:"ID of the identity."`
}

func (s *Server) deleteIdentity(ctx context.Context, c access.Caller, in *deleteIdentityRequest) (operation.Response[operation.NoContent], error) {
	err := s.signin.DeleteIdentity(ctx, c, in.ID, in.Identity)
	return s.sessionsEnded(c.Session.Identity == in.Identity), err
}

var (
	connectionEncoder = wire.NewEncoder[rolecall.Connection]()
	connectionID0     = connectionEncoder.Fields("id")
)

// connectionBody is a connection without its client secret. If it was deleted since a repeated request
// created it, its JSON has only the id.
type connectionBody struct{ connection *rolecall.Connection }

var _ = operation.Component[operation.Page[connectionBody]]("ConnectionPage", "The connections of a tenant.")
var _ = operation.SameSchema[connectionBody, rolecall.Connection]()

// AppendJSON appends the connection.
func (b connectionBody) AppendJSON(out []byte) []byte {
	if !b.HasTag() {
		return connectionEncoder.AppendFields(out, b.connection, connectionID0)
	}
	return connectionEncoder.Append(out, b.connection)
}

// HiddenMembers returns the members that the JSON lacks.
func (b connectionBody) HiddenMembers() string {
	if b.HasTag() {
		return ""
	}
	return "name, issuer, clientId, domains, linking, provisioning, secondFactor, acrValues, amrValues, groups, createdAt, updatedAt"
}

// HasTag reports whether the response has an ETag.
func (b connectionBody) HasTag() bool { return b.connection.CreatedAt != 0 }

// connectionTag returns the ETag of a connection.
func connectionTag(c *rolecall.Connection) string {
	return secret.ETag(connectionBody{c}.AppendJSON(nil))
}
