package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// authorization is what the code of an authorization stands for.
type authorization struct {
	redirectURI string
	challenge   string
	nonce       string
	reauthorize bool // with max_age=0
}

// ServeMetadata is the endpoint of the metadata. Handlers of tests can call it.
func (p *Provider) ServeMetadata(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := map[string]any{
		"issuer":                                         p.Issuer,
		"authorization_endpoint":                         p.Issuer + PathAuthorization,
		"token_endpoint":                                 p.Issuer + PathToken,
		"jwks_uri":                                       p.Issuer + PathKeys,
		"userinfo_endpoint":                              p.Issuer + PathUserInfo,
		"end_session_endpoint":                           p.Issuer + PathEndSession,
		"response_types_supported":                       []string{"code"},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          Algorithms,
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if p.settings.Metadata != nil {
		p.settings.Metadata(m)
	}
	send(w, http.StatusOK, m)
}

// publishKeys is the endpoint of the keys.
func (p *Provider) publishKeys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []any
	for _, k := range p.keys {
		keys = append(keys, k.public()...)
	}
	var document any = map[string]any{"keys": keys}
	if p.settings.Keys != nil {
		document = p.settings.Keys(keys)
	}
	send(w, http.StatusOK, document)
}

// authorize is the authorization endpoint. It signs the preset person in.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirectURI, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case err != nil || redirectURI.Host == "":
		http.Error(w, "redirect_uri is not a URL", http.StatusBadRequest)
	case q.Get("client_id") != ClientID:
		http.Error(w, "client_id is not known", http.StatusBadRequest)
	case q.Get("response_type") != "code" || !slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		http.Error(w, "response_type or scope is wrong", http.StatusBadRequest)
	case q.Get("state") == "" || q.Get("nonce") == "":
		http.Error(w, "state or nonce is missing", http.StatusBadRequest)
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != base64.RawURLEncoding.EncodedLen(sha256.Size):
		http.Error(w, "code_challenge is wrong", http.StatusBadRequest)
	default:
		p.mu.Lock()
		defer p.mu.Unlock()
		code := rand.Text()
		p.codes[code] = &authorization{redirectURI: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), nonce: q.Get("nonce"), reauthorize: q.Get("max_age") == "0"}
		back := redirectURI.Query()
		back.Set("code", code)
		back.Set("state", q.Get("state"))
		back.Set("iss", p.Issuer)
		if p.settings.Callback != nil {
			p.settings.Callback(back)
		}
		redirectURI.RawQuery = back.Encode()
		http.Redirect(w, r, redirectURI.String(), http.StatusSeeOther)
	}
}

// token is the token endpoint. A code can be used once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method != http.MethodPost || r.PostFormValue("grant_type") != "authorization_code" {
		send(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
		return
	}
	if !p.authenticates(r) {
		w.Header().Set("WWW-Authenticate", "Basic")
		send(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	a := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if a == nil || a.redirectURI != r.PostFormValue("redirect_uri") || base64.RawURLEncoding.EncodeToString(challenge[:]) != a.challenge {
		send(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	accessToken := rand.Text()
	p.access = accessToken
	idToken, err := p.newToken(a, accessToken).compact()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.idToken = idToken
	response := map[string]any{"access_token": accessToken, "token_type": "Bearer", "expires_in": 60, "refresh_token": rand.Text(), "id_token": idToken}
	if p.settings.Response != nil {
		p.settings.Response(response)
	}
	send(w, http.StatusOK, response)
}

// authenticates reports whether the request is from the client, with client_secret_basic, client_secret_post,
// or without a secret.
func (p *Provider) authenticates(r *http.Request) bool {
	id, secret := r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	if basicID, basicSecret, ok := r.BasicAuth(); ok {
		var errID, errSecret error
		id, errID = url.QueryUnescape(basicID)
		secret, errSecret = url.QueryUnescape(basicSecret)
		if errID != nil || errSecret != nil {
			return false
		}
	}
	return id == ClientID && subtle.ConstantTimeCompare([]byte(secret), []byte(ClientSecret)) == 1
}

// userInfo is the userinfo endpoint. It knows the last access token.
func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.access == "" || r.Header.Get("Authorization") != "Bearer "+p.access {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	info := map[string]any{"sub": p.settings.Person.Subject}
	maps.Copy(info, p.settings.Person.UserInfo)
	if p.settings.UserInfo == nil {
		send(w, http.StatusOK, info)
		return
	}
	t := p.unsigned(map[string]any{"iss": p.Issuer, "aud": ClientID})
	maps.Copy(t.Claims, info)
	p.settings.UserInfo(t)
	signed, err := t.compact()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/jwt")
	_, _ = io.WriteString(w, signed)
}

// endSession is the endpoint that signs out, and returns the browser. Like Okta, it requires the last ID token.
func (p *Provider) endSession(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	back := r.FormValue("post_logout_redirect_uri")
	if back == "" || r.FormValue("client_id") != ClientID || r.FormValue("id_token_hint") != p.idToken {
		http.Error(w, "post_logout_redirect_uri, client_id or id_token_hint is missing or wrong", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}
