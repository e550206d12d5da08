package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

type principalKey struct{}

// Middleware returns a handler that finds the caller of each request, for FromContext. It answers 503 if
// Rolecall does not answer, and 403 if the tenant is suspended, or if a page of another site sends a change with the
// session cookie.
func (p *Principals) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCrossSite(r) {
			refuse(w, http.StatusForbidden, "This request is from another site.")
			return
		}
		caller, err := p.Get(r.Context(), r.Header)
		problem, _ := errors.AsType[*Problem](err)
		switch {
		case err == nil || problem != nil && problem.Status == http.StatusUnauthorized:
		case problem != nil && problem.Status == http.StatusForbidden:
			refuse(w, http.StatusForbidden, problem.Detail)
			return
		default:
			refuse(w, http.StatusServiceUnavailable, "Permissions cannot be checked at the moment. Try again in a minute.")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, caller)))
	})
}

// FromContext returns the caller of a request that passed a Middleware, or nil if the request has no
// valid session or token.
func FromContext(ctx context.Context) *Principal {
	caller, _ := ctx.Value(principalKey{}).(*Principal)
	return caller
}

// Require returns a handler that answers 401 to requests without a caller, and 403 if the caller lacks
// the permission. The function department returns the department of the object of the action. If it is
// nil, the caller needs the permission in the whole tenant. Put the handler behind a Middleware.
func Require(permission string, department func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, where := FromContext(r.Context()), ""
		if department != nil {
			where = department(r)
		}
		switch {
		case caller == nil:
			refuse(w, http.StatusUnauthorized, "Sign in first.")
		case !Can(caller, permission, where):
			refuse(w, http.StatusForbidden, "You need the permission "+permission+".")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

var sameOrigin = http.NewCrossOriginProtection()

// isCrossSite reports whether a page of another site sends a change, or opens a WebSocket. Browsers add the
// session cookie to some of its requests, and the header Sec-Fetch-Site or at least Origin to all.
func isCrossSite(r *http.Request) bool {
	if _, cookie := credential(r.Header); cookie == "" {
		return false
	}
	if r.Header.Get("Upgrade") != "" {
		r = r.WithContext(r.Context()) // a copy
		r.Method = http.MethodPost
	}
	return sameOrigin.Check(r) != nil
}

func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": detail}) // if the write fails, the client has disconnected
}
