package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/internal/outbound"
)

// Redeem verifies the callback, which are the parameters of the query with which the provider has
// returned the browser. It exchanges the code and verifies the ID token. It returns a RefusedError, or
// ErrUnavailable. The caller has compared the state, and calls Redeem once for each attempt.
func (c *Client) Redeem(ctx context.Context, p Provider, a Attempt, callback url.Values) (Claims, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	d, err := c.document(ctx, p.Issuer, documentFresh)
	if err != nil {
		return Claims{}, err
	}
	code, err := d.codeOf(callback)
	if err != nil {
		return Claims{}, err
	}
	token, err := d.config(p, a).Exchange(oidc.ClientContext(ctx, c.tokens), code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Claims{}, exchangeError(ctx, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return Claims{}, refused(ReasonResponse)
	}
	verified, err := c.verify(ctx, d, raw, d.accepted())
	if err != nil {
		return Claims{}, err
	}
	claims, err := verified.check(p, a, token.AccessToken, c.now())
	if err != nil {
		return Claims{}, err
	}
	claims.IDToken, claims.EndsSessions = raw, d.EndSession != ""
	if d.UserInfo != "" {
		claims.userInfo = &userInfo{document: d, token: token, list: a.List}
	}
	return claims, nil
}

// codeOf returns the code of a callback.
func (d *document) codeOf(callback url.Values) (string, error) {
	responder := callback["iss"]
	if d.NamesIssuer && len(responder) == 0 || len(responder) > 1 || len(responder) == 1 && responder[0] != d.Issuer {
		return "", refused(ReasonResponder)
	}
	codes, failures := callback["code"], callback["error"]
	switch {
	case len(failures) == 1 && len(codes) == 0:
		return "", failure(failures[0])
	case len(codes) != 1 || codes[0] == "" || len(failures) > 0:
		return "", refused(ReasonCallback)
	}
	return codes[0], nil
}

// failure returns the error for an error of the authorization endpoint (RFC 6749, section 4.1.2.1).
func failure(code string) error {
	switch code {
	case "access_denied":
		return refused(ReasonDenied)
	case "server_error", "temporarily_unavailable":
		return unavailableBecause("the authorization endpoint", code)
	}
	return refused(ReasonProvider)
}

// exchangeError returns the error for an error of the token endpoint (RFC 6749, section 5.2). It contains
// no text of the response.
func exchangeError(ctx context.Context, err error) error {
	var (
		response *oauth2.RetrieveError
		request  *url.Error
	)
	switch {
	case errors.As(err, &response):
		return responseError(response)
	case ctx.Err() != nil:
		return unavailable("the token endpoint", ctx.Err())
	case errors.As(err, &request):
		return unavailable("the token endpoint", codeError(outbound.CodeOf(err)))
	}
	return refused(ReasonResponse) // too large, not JSON, or without an access token
}

func responseError(r *oauth2.RetrieveError) error {
	status := r.Response.StatusCode
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status >= 300 && status < 400:
		return unavailable("the token endpoint", statusError(status))
	case r.ErrorCode == "invalid_grant":
		return refused(ReasonCode)
	case r.ErrorCode == "invalid_client" || r.ErrorCode == "unauthorized_client" || r.ErrorCode == "" && status == http.StatusUnauthorized:
		return refused(ReasonClient)
	}
	return refused(ReasonProvider)
}
