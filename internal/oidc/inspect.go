package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/internal/outbound"
)

// Metadata is the published metadata of a provider, with its problems.
type Metadata struct {
	AuthorizationEndpoint string
	TokenEndpoint         string
	KeysEndpoint          string
	EndSessionEndpoint    string   // empty: users cannot sign out at the provider
	Algorithms            []string // of ID tokens, that Rolecall accepts
	Keys                  int      // the number of keys that Rolecall can use

	// Problems are sentences, one for each reason why some or all users cannot sign in. It is empty if the
	// provider can be used.
	Problems []string
}

// Passed reports whether users can sign in, as far as the metadata shows it.
func (m *Metadata) Passed() bool { return len(m.Problems) == 0 }

// Inspect fetches the metadata and the keys of the provider with the issuer, also if they are cached.
// Problems are in the Metadata. It returns an error only if the context ends.
func (c *Client) Inspect(ctx context.Context, issuer string) (Metadata, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.CheckIssuer(issuer); err != nil {
		return Metadata{Problems: []string{"The issuer " + err.Error() + "."}}, nil
	}
	d, err := c.fetchDocument(ctx, issuer)
	if err != nil {
		return Metadata{Problems: []string{"The metadata of the issuer " + sentence(err)}}, caller.Err()
	}
	m := Metadata{
		AuthorizationEndpoint: d.Authorization, TokenEndpoint: d.Token, KeysEndpoint: d.Keys, EndSessionEndpoint: d.EndSession,
		Algorithms: d.accepted(), Problems: c.problems(issuer, d),
	}
	if outbound.CheckURLWithin(d.Keys, c.networks) != nil {
		return m, nil // the problem is in the list
	}
	keys, err := c.fetchKeys(ctx, d.Keys)
	if err != nil {
		m.Problems = append(m.Problems, "The keys of the provider "+sentence(err))
		return m, caller.Err()
	}
	if m.Keys = len(keys.keys); m.Keys == 0 {
		m.Problems = append(m.Problems, "The provider publishes no key that Rolecall can use. It needs a public RSA key of at least 2048 bits, an elliptic curve key, or an Ed25519 key.")
	}
	if problem := c.userInfoProblem(ctx, d); problem != "" {
		m.Problems = append(m.Problems, problem)
	}
	return m, caller.Err()
}

// userInfoProblem returns why the userinfo endpoint cannot be used, or "". The request has no access token, so a
// working endpoint refuses it.
func (c *Client) userInfoProblem(ctx context.Context, d *document) string {
	if d.UserInfo == "" || outbound.CheckURLWithin(d.UserInfo, c.networks) != nil {
		return ""
	}
	_, _, err := fetchAs(ctx, c.tokens, d.UserInfo, userInfoTypes)
	var status statusError
	if err == nil || errors.As(err, &status) && slices.Contains([]statusError{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}, status) {
		return ""
	}
	return "The userinfo endpoint " + sentence(err) + " New users whose ID token has no address cannot sign in."
}

// problems returns the problems of the metadata, as sentences.
func (c *Client) problems(issuer string, d *document) (problems []string) {
	add := func(format string, values ...any) { problems = append(problems, fmt.Sprintf(format, values...)) }
	if d.Issuer != issuer {
		add("The metadata is of the issuer %q. The issuer of the connection must be exactly the same, with the same letters and slashes.", short(d.Issuer))
	}
	for _, endpoint := range []struct{ member, url string }{
		{"authorization_endpoint", d.Authorization}, {"token_endpoint", d.Token}, {"jwks_uri", d.Keys},
		{"userinfo_endpoint", d.UserInfo}, {"end_session_endpoint", d.EndSession},
	} {
		if endpoint.url == "" && (endpoint.member == "userinfo_endpoint" || endpoint.member == "end_session_endpoint") {
			continue // not required
		}
		if err := outbound.CheckURLWithin(endpoint.url, c.networks); err != nil {
			add("The %s of the metadata %s.", endpoint.member, err)
		}
	}
	if len(d.accepted()) == 0 {
		add("The provider signs ID tokens with none of the algorithms that Rolecall accepts: RS, PS or ES with 256, 384 or 512, or EdDSA.")
	}
	if d.ResponseTypes != nil && !slices.Contains(d.ResponseTypes, "code") {
		add("The provider does not offer the authorization code flow.")
	}
	if d.Challenges != nil && !slices.Contains(d.Challenges, "S256") {
		add("The provider does not offer PKCE with S256.")
	}
	if d.TokenAuth != nil && !slices.ContainsFunc(d.TokenAuth, func(method string) bool {
		return method == "client_secret_basic" || method == "client_secret_post"
	}) {
		add("The provider accepts no client secret: the client must authenticate in another way.")
	}
	return problems
}

// short returns the text without its end, if it is long.
func short(text string) string {
	if len(text) > outbound.URLMax {
		return text[:outbound.URLMax] + "…"
	}
	return text
}

// sentence returns the end of a sentence about what could not be fetched.
func sentence(err error) string {
	var (
		status statusError
		code   codeError
	)
	switch {
	case errors.As(err, &status) && status >= 300 && status < 400:
		return fmt.Sprintf("redirects to another address (status %d), which Rolecall does not follow.", int(status))
	case errors.As(err, &status):
		return fmt.Sprintf("cannot be read: the response has the status %d.", int(status))
	case errors.As(err, &code):
		return "cannot be read: " + causes[string(code)] + "."
	}
	return "cannot be read: it is not JSON in the required form."
}

// causes are the codes of package outbound, as clauses.
var causes = map[string]string{
	outbound.CodeTimeout: "there was no response in time",
	outbound.CodeAddress: "the address is in a private network that Rolecall must not reach",
	outbound.CodeName:    "the name of the host has no address",
	outbound.CodeTLS:     "there is no secure connection, for example because of the certificate",
	outbound.CodeConnect: "there is no connection, or it broke",
	outbound.CodeSize:    "the response is too large",
}
