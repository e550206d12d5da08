package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
)

type listUserSessionsRequest struct {
	userPath
	pageRequest
}

func (s *Server) listUserSessions(ctx context.Context, c access.Caller, in *listUserSessionsRequest) (Response[pageBody[userSessionBody]], error) {
	page, err := s.signin.UserSessions(ctx, c, in.ID, in.After.after, in.Limit.orDefault())
	return newPage(&page, func(session *rolecall.Session) userSessionBody {
		return userSessionBody{
			ID: session.ID, CreatedAt: session.AuthenticatedAt, LastUsedAt: session.LastUsedAt, ExpiresAt: session.ExpiresAt,
			SecondFactor: session.SecondFactor, Address: optionalText(session.Source), Client: optionalText(session.Client),
			Current: session.ID == c.Session.ID,
		}
	}), err
}

type endUserSessionRequest struct {
	userPath
	Session rolecall.SessionID `path:"sessionId" example:"019d83e6-1ef1-7004-a4d5-6e7f8091a244" doc:"ID of the session."`
}

func (s *Server) endUserSession(ctx context.Context, c access.Caller, in *endUserSessionRequest) (Response[NoContent], error) {
	err := s.signin.EndUserSession(ctx, c, in.ID, in.Session)
	return Response[NoContent]{SignedOut: in.Session == c.Session.ID}, err
}

func (s *Server) endUserSessions(ctx context.Context, c access.Caller, in *userRequest) (Response[NoContent], error) {
	err := s.signin.EndUserSessions(ctx, c, in.ID)
	return Response[NoContent]{SignedOut: in.ID == c.Session.UserID}, err
}

// userSessionBody is a live session of a user.
type userSessionBody struct {
	ID           rolecall.SessionID `json:"id" doc:"ID of the session."`
	CreatedAt    rolecall.Time      `json:"createdAt" doc:"When the user signed in."`
	LastUsedAt   rolecall.Time      `json:"lastUsedAt" doc:"When the session was used last, to about a minute."`
	ExpiresAt    rolecall.Time      `json:"expiresAt" doc:"When the session ends, even if it is used."`
	SecondFactor bool               `json:"secondFactor" doc:"Whether the user proved a second factor. A session without one is refused while the tenant requires a second factor of the user."`
	Address      optionalText       `json:"address" nullable:"true" doc:"Client address at sign-in."`
	Client       optionalText       `json:"client" nullable:"true" doc:"Name of the client at sign-in, such as Firefox on Linux."`
	Current      bool               `json:"current" doc:"Whether it is the session of this request."`
}
