package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) directoryOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/directories", ID: "DirectoriesController_listDirectories", Summary: "List directories",
			Description: "Lists all directories of the tenant, the oldest first. A tenant can have 20.",
			Policy:      authz.ReadConnections,
			Answers:     operation.Answers{{http.StatusOK, "The directories.", nil}},
			Handler:     operation.JSON(s.listDirectories),
		},
		{
			Method: http.MethodPost, Path: "/directories", ID: "DirectoriesController_createDirectory", Summary: "Create a directory",
			Description: "Creates a directory, through which an identity provider creates, changes and suspends users and groups with SCIM 2.0 (RFC 7644). Then create a token, and enter it at the identity provider with the base URL: the public URL, /scim/v2/ and the name of the tenant. A user who can configure a directory can become any other user except owners, so this needs all permissions.",
			Policy:      authz.CreateConnection,
			Answers:     operation.Answers{{http.StatusCreated, "The new directory.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrSessionRequired, rolecall.ErrLimitReached, rolecall.ErrDirectoryNameTaken},
			Handler:     operation.JSON(s.createDirectory),
		},
		{
			Method: http.MethodGet, Path: "/directories/{id}", ID: "DirectoriesController_getDirectory", Summary: "Get a directory",
			Description: "Returns the directory.",
			Policy:      authz.ReadConnections,
			Answers:     operation.Answers{{http.StatusOK, "The directory.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getDirectory),
		},
		{
			Method: http.MethodPatch, Path: "/directories/{id}", ID: "DirectoriesController_updateDirectory", Summary: "Update a directory",
			Description: "Changes the members that are in the body. While a directory is paused, its requests get 503.",
			Policy:      authz.UpdateConnection,
			Answers:     operation.Answers{{http.StatusOK, "The changed directory.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrDirectoryNameTaken},
			Handler:     operation.JSON(s.updateDirectory),
		},
		{
			Method: http.MethodDelete, Path: "/directories/{id}", ID: "DirectoriesController_deleteDirectory", Summary: "Delete a directory",
			Description: "Deletes the directory and its tokens. Its users and groups remain, with their memberships, and can then be changed here. If a group without a source has the name of one of its groups, the name of the directory is appended.",
			Policy:      authz.DeleteConnection,
			Answers:     operation.Answers{{http.StatusNoContent, "The directory was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired},
			Handler:     operation.JSON(s.deleteDirectory),
		},
		{
			Method: http.MethodGet, Path: "/directories/{id}/requests", ID: "DirectoriesController_listDirectoryRequests", Summary: "List the last requests of a directory",
			Description: "Lists the last 100 requests that the identity provider has sent with a token of the directory, the newest first. A request appears after about a second.",
			Policy:      authz.ReadConnections,
			Answers:     operation.Answers{{http.StatusOK, "The requests.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listDirectoryRequests),
		},
		{
			Method: http.MethodGet, Path: "/directories/{id}/tokens", ID: "DirectoriesController_listDirectoryTokens", Summary: "List the tokens of a directory",
			Description: "Lists the tokens of the directory without their secrets, the oldest first. Expired tokens are listed for 30 days.",
			Policy:      authz.ReadConnections,
			Answers:     operation.Answers{{http.StatusOK, "The tokens.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listDirectoryTokens),
		},
		{
			Method: http.MethodPost, Path: "/directories/{id}/tokens", ID: "DirectoriesController_createDirectoryToken", Summary: "Create a token of a directory",
			Description: "Creates a token with which the identity provider sends SCIM requests. The response to the first request has the secret, and no other response has it. A directory can have two tokens, so that one can replace the other.",
			Policy:      authz.UpdateConnection,
			Answers:     operation.Answers{{http.StatusCreated, "The new token.", []string{"Location", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrLimitReached},
			Handler:     operation.JSON(s.createDirectoryToken),
		},
		{
			Method: http.MethodDelete, Path: "/directories/{id}/tokens/{tokenId}", ID: "DirectoriesController_revokeDirectoryToken", Summary: "Revoke a token of a directory",
			Description: "The next request with the token gets 401.",
			Policy:      authz.RevokeDirectoryToken,
			Answers:     operation.Answers{{http.StatusNoContent, "The token was revoked.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired},
			Handler:     operation.JSON(s.revokeDirectoryToken),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.DirectoryID]("ID of the directory.", "019d83e6-1ef1-7009-8a6b-5c4d3e2f1a0b")
	_ = operation.PathID[rolecall.DirectoryTokenID]("ID of the token.", "019d83e6-1ef1-700a-9b7c-6d5e4f3a2b1c")
	_ = operation.Component[rolecall.DirectoryDraft]("CreateDirectory", "A new directory. It has no users and no tokens at first.")
	_ = operation.Component[rolecall.DirectoryPatch]("UpdateDirectory", "A merge patch (RFC 7396). Absent members do not change.")
	_ = operation.ComponentOrID[rolecall.Directory]("Directory", "A directory, through which an identity provider manages users and groups.")
	_ = operation.Component[rolecall.DirectoryTokenDraft]("CreateDirectoryToken", "A new token of a directory.")
	_ = operation.Component[rolecall.DirectoryRequest]("DirectoryRequest", "A request that an identity provider has sent.")
)

func (s *Server) listDirectories(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[operation.Page[directoryBody]], error) {
	all, err := s.directory.Directories(ctx, c)
	page := rolecall.Page[rolecall.Directory]{Items: all}
	return operation.NewPage(&page, func(d *rolecall.Directory) directoryBody { return directoryBody{d} }), err
}

type createDirectoryRequest struct {
	operation.IdempotencyHeader
	Body rolecall.DirectoryDraft
}

func (s *Server) createDirectory(ctx context.Context, c access.Caller, in *createDirectoryRequest) (operation.Response[directoryBody], error) {
	created, err := s.directory.CreateDirectory(ctx, c, in.Key, in.Body)
	return operation.Response[directoryBody]{
		Body: directoryBody{&created.Value}, Location: "/directories/" + created.Value.ID.String(), Replayed: created.Replayed,
	}, err
}

func (s *Server) getDirectory(ctx context.Context, c access.Caller, in *getRequest[rolecall.Directory]) (operation.Response[directoryBody], error) {
	d, err := s.directory.Directory(ctx, c, in.ID)
	return operation.Response[directoryBody]{Body: directoryBody{&d}}, err
}

type updateDirectoryRequest struct {
	idPath[rolecall.Directory]
	operation.IfMatchHeader
	Body rolecall.DirectoryPatch
}

func (s *Server) updateDirectory(ctx context.Context, c access.Caller, in *updateDirectoryRequest) (operation.Response[directoryBody], error) {
	d, err := s.directory.UpdateDirectory(ctx, c, in.ID, in.Body, match(in.IfMatch, directoryTag))
	return operation.Response[directoryBody]{Body: directoryBody{&d}}, err
}

func (s *Server) deleteDirectory(ctx context.Context, c access.Caller, in *deleteRequest[rolecall.Directory]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.DeleteDirectory(ctx, c, in.ID, match(in.IfMatch, directoryTag))
}

type directoryRequest struct{ idPath[rolecall.Directory] }

func (s *Server) listDirectoryRequests(ctx context.Context, c access.Caller, in *directoryRequest) (operation.Response[operation.Page[rolecall.DirectoryRequest]], error) {
	all, err := s.directory.DirectoryRequests(ctx, c, in.ID)
	page := rolecall.Page[rolecall.DirectoryRequest]{Items: all}
	return operation.NewPage(&page, func(r *rolecall.DirectoryRequest) rolecall.DirectoryRequest { return *r }), err
}

func (s *Server) listDirectoryTokens(ctx context.Context, c access.Caller, in *directoryRequest) (operation.Response[operation.Page[directoryTokenBody]], error) {
	all, err := s.directory.DirectoryTokens(ctx, c, in.ID)
	page := rolecall.Page[rolecall.DirectoryToken]{Items: all}
	return operation.NewPage(&page, newDirectoryTokenBody), err
}

type createDirectoryTokenRequest struct {
	idPath[rolecall.Directory]
	operation.IdempotencyHeader
	Body rolecall.DirectoryTokenDraft
}

func (s *Server) createDirectoryToken(ctx context.Context, c access.Caller, in *createDirectoryTokenRequest) (operation.Response[directoryTokenWithSecret], error) {
	created, err := s.directory.CreateDirectoryToken(ctx, c, in.Key, in.ID, in.Body)
	secret := created.Value.Secret
	return operation.Response[directoryTokenWithSecret]{
		Body: directoryTokenWithSecret{newDirectoryTokenBody(&created.Value.DirectoryToken), secret == "", string(secret)}, Replayed: created.Replayed,
	}, err
}

type revokeDirectoryTokenRequest struct {
	idPath[rolecall.Directory]
	Token rolecall.DirectoryTokenID `path:"tokenId" example:"019d83e6-1ef1-700a-9b7c-6d5e4f3a2b1c" doc:"ID of the token."`
}

func (s *Server) revokeDirectoryToken(ctx context.Context, c access.Caller, in *revokeDirectoryTokenRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.RevokeDirectoryToken(ctx, c, in.ID, in.Token)
}

// directoryTokenBody is a token of a directory without its secret.
type directoryTokenBody struct {
	rolecall.DirectoryToken
	LastUsedAt rolecall.Time `json:"lastUsedAt" nullable:"true" doc:"When the token was used last, to within about a minute. Null if it was never used."`
}

var _ = operation.Component[directoryTokenBody]("DirectoryToken", "A token of a directory, without its secret.")

func newDirectoryTokenBody(t *rolecall.DirectoryToken) directoryTokenBody {
	return directoryTokenBody{*t, t.LastUsedAt}
}

// directoryTokenWithSecret is a new token of a directory with its secret. Only the first response has the secret. The
// response to a repeated request has secretWithheld instead.
type directoryTokenWithSecret struct {
	directoryTokenBody
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."`
	Token          string `json:"token,omitzero" doc:"The secret, which the identity provider sends as Authorization: Bearer rd_…."`
}

var (
	_ = operation.Component[directoryTokenWithSecret]("CreatedDirectoryToken", "A new token of a directory. Its secret is returned only once: the answer to a repeated request has secretWithheld instead.")
	_ = operation.Component[operation.Page[directoryTokenBody]]("DirectoryTokenPage", "The tokens of a directory.")
	_ = operation.Component[operation.Page[rolecall.DirectoryRequest]]("DirectoryRequestPage", "The last requests of a directory.")
)

var (
	directoryEncoder = wire.NewEncoder[rolecall.Directory]()
	directoryID0     = directoryEncoder.Fields("id")
)

// directoryBody is a directory. If it was deleted since a repeated request created it, its JSON has only the id.
type directoryBody struct{ directory *rolecall.Directory }

var _ = operation.Component[operation.Page[directoryBody]]("DirectoryPage", "The directories of a tenant.")
var _ = operation.SameSchema[directoryBody, rolecall.Directory]()

// AppendJSON appends the directory.
func (b directoryBody) AppendJSON(out []byte) []byte {
	if !b.HasTag() {
		return directoryEncoder.AppendFields(out, b.directory, directoryID0)
	}
	return directoryEncoder.Append(out, b.directory)
}

// HiddenMembers returns the members that the JSON lacks.
func (b directoryBody) HiddenMembers() string {
	if b.HasTag() {
		return ""
	}
	return "name, matching, deprovisioning, paused, createdAt, updatedAt"
}

// HasTag reports whether the response has an ETag.
func (b directoryBody) HasTag() bool { return b.directory.CreatedAt != 0 }

// directoryTag returns the ETag of a directory.
func directoryTag(d *rolecall.Directory) string { return secret.ETag(directoryBody{d}.AppendJSON(nil)) }
