package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

type listUserSessionsRequest struct {
	userPath
	pageRequest
}

func (s *Server) listUserSessions(ctx context.Context, c service.Call, in *listUserSessionsRequest) (Response[pageBody[userSessionBody]], error) {
	page, err := s.service.UserSessions(ctx, c, in.ID, in.After.after, in.Limit.orDefault())
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
	Session rolecall.SessionID `path:"sessionId" doc:"ID of the session."`
}

func (s *Server) endUserSession(ctx context.Context, c service.Call, in *endUserSessionRequest) (Response[NoContent], error) {
	err := s.service.EndUserSession(ctx, c, in.ID, in.Session)
	return Response[NoContent]{SignedOut: in.Session == c.Session.ID}, err
}

func (s *Server) endUserSessions(ctx context.Context, c service.Call, in *userRequest) (Response[NoContent], error) {
	err := s.service.EndUserSessions(ctx, c, in.ID)
	return Response[NoContent]{SignedOut: in.ID == c.Session.UserID}, err
}

// userSessionBody is a live session of a user.
type userSessionBody struct {
	ID           rolecall.SessionID `json:"id"`
	CreatedAt    rolecall.Time      `json:"createdAt"`
	LastUsedAt   rolecall.Time      `json:"lastUsedAt"`
	ExpiresAt    rolecall.Time      `json:"expiresAt"`
	SecondFactor bool               `json:"secondFactor"`
	Address      optionalText       `json:"address"`
	Client       optionalText       `json:"client"`
	Current      bool               `json:"current"`
}
