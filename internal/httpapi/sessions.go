package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) sessionOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/users/{id}/sessions", ID: "UsersController_listUserSessions", Summary: "List a user's sessions",
			Description: "Lists the live sessions of the user, newest first.",
			Policy:      authz.ReadSessions,
			Answers:     operation.Answers{{http.StatusOK, "A page of sessions.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listUserSessions),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/sessions", ID: "UsersController_endUserSessions", Summary: "Revoke all sessions of a user",
			Description: "Ends all sessions of the user. If the session of the request is one of them, its cookie is cleared. Links that were requested in these sessions, such as invitations of other users, become invalid. A change of the user's email address that is not confirmed becomes invalid too.",
			Policy:      authz.EndSessions,
			Answers:     operation.Answers{{http.StatusNoContent, "All sessions of the user have ended.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.endUserSessions),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/sessions/{sessionId}", ID: "UsersController_endUserSession", Summary: "Revoke a user's session",
			Description: "Ends the session. If it is the session of the request, its cookie is cleared. Links that were requested in it, such as invitations of other users, become invalid.",
			Policy:      authz.EndSessions,
			Answers:     operation.Answers{{http.StatusNoContent, "The session has ended.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.endUserSession),
		},
	}
}

type listUserSessionsRequest struct {
	userPath
	operation.PageRequest
}

func (s *Server) listUserSessions(ctx context.Context, c access.Caller, in *listUserSessionsRequest) (operation.Response[operation.Page[userSessionBody]], error) {
	page, err := s.signin.UserSessions(ctx, c, in.ID, in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, func(session *rolecall.Session) userSessionBody {
		return userSessionBody{
			ID: session.ID, CreatedAt: session.AuthenticatedAt, LastUsedAt: session.LastUsedAt, ExpiresAt: session.ExpiresAt,
			SecondFactor: session.SecondFactor, Address: optionalText(session.Source), Client: optionalText(session.Client),
			ConnectionID: session.Connection, Current: session.ID == c.Session.ID,
		}
	}), err
}

type endUserSessionRequest struct {
	userPath
	Session rolecall.SessionID `path:"sessionId" example:"019d83e6-1ef1-7004-a4d5-6e7f8091a244" doc:"ID of the session."`
}

func (s *Server) endUserSession(ctx context.Context, c access.Caller, in *endUserSessionRequest) (operation.Response[operation.NoContent], error) {
	err := s.signin.EndUserSession(ctx, c, in.ID, in.Session)
	return s.sessionsEnded(in.Session == c.Session.ID), err
}

func (s *Server) endUserSessions(ctx context.Context, c access.Caller, in *userRequest) (operation.Response[operation.NoContent], error) {
	err := s.signin.EndUserSessions(ctx, c, in.ID)
	return s.sessionsEnded(in.ID == c.Session.UserID), err
}

// sessionsEnded returns the response after sessions were ended. If isOwn is true, the session of
// the request ended too, and the response clears its cookie.
func (s *Server) sessionsEnded(isOwn bool) operation.Response[operation.NoContent] {
	if !isOwn {
		return operation.Response[operation.NoContent]{}
	}
	return operation.Response[operation.NoContent]{Cookies: s.clearSession}
}

// userSessionBody is a live session of a user.
type userSessionBody struct {
	ID           rolecall.SessionID    `json:"id" doc:"ID of the session."`
	CreatedAt    rolecall.Time         `json:"createdAt" doc:"When the user signed in."`
	LastUsedAt   rolecall.Time         `json:"lastUsedAt" doc:"When the session was used last, to about a minute."`
	ExpiresAt    rolecall.Time         `json:"expiresAt" doc:"When the session expires even if it is used (maximum session length)."`
	SecondFactor bool                  `json:"secondFactor" doc:"Whether the user signed in with a second factor. If not, the session is refused while the tenant requires a second factor of the user."`
	Address      optionalText          `json:"address" nullable:"true" doc:"Client address at sign-in."`
	Client       optionalText          `json:"client" nullable:"true" doc:"Name of the client at sign-in, such as Firefox on Linux."`
	ConnectionID rolecall.ConnectionID `json:"connectionId" nullable:"true" doc:"ID of the connection with which the user signed in. Null if the user signed in without an identity provider."`
	Current      bool                  `json:"current" doc:"Whether this is the session of the request."`
}

var _ = operation.Component[userSessionBody]("UserSession", "A live session of a user.")
var _ = operation.Component[operation.Page[userSessionBody]]("UserSessionPage", "A page of sessions.")
