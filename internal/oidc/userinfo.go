package oidc

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"
)

// userInfoTypes are the media types of responses of the userinfo endpoint.
const userInfoTypes = "application/json, application/jwt"

// userInfo is what a request to the userinfo endpoint needs.
type userInfo struct {
	document *document
	token    *oauth2.Token
	list     string // the name of the claim for Claims.List
}

// HasMore reports whether AddUserInfo can add an address to the claims: the ID token has none, and the provider has
// a userinfo endpoint.
func (c *Claims) HasMore() bool { return c.userInfo != nil && c.Email == "" }

// HasMoreLists reports whether AddUserInfo can set the list: the ID token does not have its claim, and the provider has
// a userinfo endpoint.
func (c *Claims) HasMoreLists() bool {
	return c.userInfo != nil && c.userInfo.list != "" && c.List.State == ListAbsent
}

// AddUserInfo sets the address, the name and the list from the userinfo endpoint (OpenID Connect Core 1.0, section 5.3),
// each if the ID token does not state it. Many providers state them only there. The response can be JSON or a signed
// token. Call it only if HasMore or HasMoreLists returns true and the claim is needed, so that a broken endpoint does not
// lock users out. AddUserInfo can fail with a RefusedError or ErrUnavailable.
func (c *Client) AddUserInfo(ctx context.Context, p Provider, claims *Claims) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	t, err := c.userInfo(ctx, p, claims.userInfo)
	if err != nil {
		return err
	}
	if t.Subject != claims.Subject {
		return refused(ReasonUserInfo)
	}
	stated := t.claims()
	if claims.Email == "" {
		claims.Email, claims.EmailVerified = stated.Email, stated.EmailVerified
		claims.VerificationStated = claims.VerificationStated || stated.VerificationStated
	}
	if claims.HasMoreLists() {
		claims.List = t.list(claims.userInfo.list)
	}
	if claims.Name == "" {
		claims.Name = stated.Name
	}
	return nil
}

// userInfo returns the response of the userinfo endpoint.
func (c *Client) userInfo(ctx context.Context, p Provider, u *userInfo) (*idToken, error) {
	client := oauth2.NewClient(oidc.ClientContext(ctx, c.tokens), oauth2.StaticTokenSource(u.token))
	body, mediaType, err := fetchAs(ctx, client, u.document.UserInfo, userInfoTypes)
	var status statusError
	switch {
	case errors.As(err, &status) && status >= 400 && status < 500 && status != http.StatusTooManyRequests:
		return nil, refused(ReasonUserInfoResponse)
	case err != nil:
		return nil, unavailable("the userinfo endpoint", err)
	case mediaType == "application/jwt":
		return c.signedUserInfo(ctx, p, u.document, string(body))
	}
	t := &idToken{payload: body}
	if json.Unmarshal(body, t) != nil {
		return nil, refused(ReasonUserInfoResponse)
	}
	return t, nil
}

// signedUserInfo verifies a signed response. Its issuer and its audience are optional (OpenID Connect Core 1.0,
// section 5.3.2), but must be right.
func (c *Client) signedUserInfo(ctx context.Context, p Provider, d *document, raw string) (*idToken, error) {
	accepted := d.accepted()
	if d.InfoAlgs != nil {
		accepted = acceptedOf(d.InfoAlgs)
	}
	t, err := c.verify(ctx, d, raw, accepted)
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	} else if err != nil {
		return nil, refused(ReasonUserInfoResponse)
	}
	audience, ok := t.audience()
	switch now := c.now(); {
	case !ok, t.Issuer != "" && t.Issuer != p.Issuer, t.Audience != nil && !slices.Contains(audience, p.ClientID),
		t.Expiry != nil && *t.Expiry <= seconds(now.Add(-skew)), t.NotBefore != nil && *t.NotBefore > seconds(now.Add(skew)):
		return nil, refused(ReasonUserInfoResponse)
	}
	return t, nil
}
