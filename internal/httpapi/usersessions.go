package httpapi

import (
	"net/http"
	"strconv"

	"github.com/rolecall/rolecall"
)

func listUserSessions(x *exchange) error {
	page, err := x.server.service.UserSessions(x.ctx, x.call, x.in.user, x.in.after, x.in.limit)
	if err != nil {
		return err
	}
	x.out = append(appendPage(x, x.out, &page, x.appendUserSession), '}')
	return x.json(http.StatusOK)
}

func endUserSession(x *exchange) error {
	if err := x.server.service.EndUserSession(x.ctx, x.call, x.in.user, x.in.session); err != nil {
		return err
	}
	if x.in.session == x.call.Session.ID {
		x.server.site.ClearSession(x.writer)
	}
	return x.nothing()
}

func endUserSessions(x *exchange) error {
	if err := x.server.service.EndUserSessions(x.ctx, x.call, x.in.user); err != nil {
		return err
	}
	if x.in.user == x.call.Session.UserID {
		x.server.site.ClearSession(x.writer)
	}
	return x.nothing()
}

func (x *exchange) appendUserSession(b []byte, s *rolecall.Session) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, s.ID)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, s.AuthenticatedAt)
	b = append(b, `,"lastUsedAt":`...)
	b = appendTime(b, s.LastUsedAt)
	b = append(b, `,"expiresAt":`...)
	b = appendTime(b, s.ExpiresAt)
	b = append(b, `,"secondFactor":`...)
	b = strconv.AppendBool(b, s.SecondFactor)
	b = append(b, `,"address":`...)
	b = appendNonEmpty(b, s.Source)
	b = append(b, `,"client":`...)
	b = appendNonEmpty(b, s.Client)
	b = append(b, `,"current":`...)
	b = strconv.AppendBool(b, s.ID == x.call.Session.ID)
	return append(b, '}')
}
