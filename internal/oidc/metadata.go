package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/internal/outbound"
)

// wellKnown is the path of the metadata under the issuer (OpenID Connect Discovery 1.0, section 4).
const wellKnown = "/.well-known/openid-configuration"

// algorithms are the algorithms of signatures that are accepted, if the provider lists them.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// document is the metadata of a provider.
type document struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	UserInfo      string   `json:"userinfo_endpoint"`
	EndSession    string   `json:"end_session_endpoint"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	InfoAlgs      []string `json:"userinfo_signing_alg_values_supported"`
	ResponseTypes []string `json:"response_types_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
	NamesIssuer   bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// size returns about how many bytes of memory the document uses.
func (d *document) size() int {
	size := 0
	for _, texts := range [][]string{
		{d.Issuer, d.Authorization, d.Token, d.Keys, d.UserInfo, d.EndSession},
		d.Algorithms, d.InfoAlgs, d.ResponseTypes, d.Challenges, d.TokenAuth,
	} {
		size += stringBytes * cap(texts)
		for _, text := range texts {
			size += len(text)
		}
	}
	return size
}

// stringBytes is the size of a string without its text.
const stringBytes = 16

// multiTenant are the first parts of the path of issuers that stand for all tenants of Microsoft Entra. The last is
// the ID of the tenant of all personal accounts, which is also the issuer of consumers.
var multiTenant = []string{"common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"}

// microsoft are the domains of issuers of Microsoft Entra, also of national clouds.
var microsoft = []string{"microsoftonline.com", "microsoftonline.us", "microsoftonline.cn", "microsoftonline.de", "microsoft.com", "windows.net", "chinacloudapi.cn"}

// isMicrosoft reports whether the host is in a domain of Microsoft.
func isMicrosoft(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(microsoft, func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) })
}

// CheckIssuer checks an issuer before it is stored. The text of the error continues a sentence about the
// issuer, such as "must be a URL that begins with https:// and a host".
func (c *Client) CheckIssuer(issuer string) error {
	if err := outbound.CheckURLWithin(issuer, c.networks); err != nil {
		return err
	}
	u, err := url.Parse(issuer)
	if err != nil || strings.Contains(issuer, "?") {
		return errors.New("must not have a query")
	}
	first, _, _ := strings.Cut(strings.TrimLeft(u.Path, "/"), "/")
	if strings.ContainsAny(u.Path, "{}") || isMicrosoft(u.Hostname()) && slices.Contains(multiTenant, strings.ToLower(first)) {
		return errors.New("must be the issuer of one tenant, with its ID, and not the one of all tenants")
	}
	return nil
}

// document returns the metadata of the issuer, at most as old as age. It returns ErrUnavailable if the
// metadata has problems.
func (c *Client) document(ctx context.Context, issuer string, age time.Duration) (*document, error) {
	if err := c.CheckIssuer(issuer); err != nil {
		return nil, unavailable("the issuer", err)
	}
	return c.documents.get(ctx, issuer, age, func(ctx context.Context, issuer string) (*document, error) {
		d, err := c.fetchDocument(ctx, issuer)
		if err != nil {
			return nil, err
		}
		for _, endpoint := range []*string{&d.UserInfo, &d.EndSession} { // not required for a sign-in
			if outbound.CheckURLWithin(*endpoint, c.networks) != nil {
				*endpoint = ""
			}
		}
		if problems := c.problems(issuer, d); len(problems) > 0 {
			return nil, unavailableBecause("the metadata", strings.Join(problems, " "))
		}
		return d, nil
	})
}

func (c *Client) fetchDocument(ctx context.Context, issuer string) (*document, error) {
	body, err := fetch(ctx, c.fetches, strings.TrimSuffix(issuer, "/")+wellKnown)
	if err != nil {
		return nil, unavailable("the metadata", err)
	}
	d := &document{}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, unavailable("the metadata", errDocument)
	}
	return d, nil
}

var errDocument = errors.New("not a JSON object in the required form")

// statusError is the error for a response with another status than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// codeError is the error for a request without a response. It is a code of package outbound.
type codeError string

func (e codeError) Error() string { return string(e) }

// fetch returns the body of the URL.
func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	body, _, err := fetchAs(ctx, client, url, "application/json")
	return body, err
}

// fetchAs is fetch with an Accept header. It also returns the media type.
func fetchAs(ctx context.Context, client *http.Client, url, accept string) (body []byte, mediaType string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", codeError(outbound.CodeAddress)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		return nil, "", codeError(outbound.CodeOf(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, "", statusError(response.StatusCode)
	}
	if body, err = io.ReadAll(response.Body); err != nil {
		return nil, "", codeError(outbound.CodeOf(err))
	}
	mediaType, _, _ = strings.Cut(response.Header.Get("Content-Type"), ";")
	return body, strings.ToLower(strings.TrimSpace(mediaType)), nil
}

// authStyle returns how the client authenticates at the token endpoint. Without a list, the default is
// client_secret_basic (OpenID Connect Discovery 1.0, section 3).
func (d *document) authStyle() oauth2.AuthStyle {
	if d.TokenAuth != nil && !slices.Contains(d.TokenAuth, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// accepted returns the algorithms that the provider lists and that are accepted. Every provider must
// support RS256, which is the only one without a list.
func (d *document) accepted() []string { return acceptedOf(d.Algorithms) }

// acceptedOf is accepted for another list of the metadata.
func acceptedOf(listed []string) []string {
	if listed == nil {
		return []string{oidc.RS256}
	}
	return slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return !slices.Contains(listed, a) })
}
