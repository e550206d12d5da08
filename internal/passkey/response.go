package passkey

import (
	"encoding/base64"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// Response is what an authenticator gave back, as toJSON of a PublicKeyCredential
// writes it. What it says is not verified: it only tells what to look up.
type Response struct {
	ID        []byte          // of the passkey
	Challenge secret.Token    // that it claims to answer
	User      rolecall.UserID // whose it claims to be; zero if it does not say
	raw       []byte
}

// ReadResponse returns the response that the JSON document is, or false if it is
// none.
func ReadResponse(document []byte) (Response, bool) {
	var shape struct {
		ID       string
		Response struct{ ClientDataJSON, UserHandle string }
	}
	var client struct{ Challenge string }
	r := Response{raw: document}
	if json.Unmarshal(document, &shape) != nil {
		return r, false
	}
	id, err := base64.RawURLEncoding.DecodeString(shape.ID)
	if err != nil || len(id) == 0 {
		return r, false
	}
	data, err := base64.RawURLEncoding.DecodeString(shape.Response.ClientDataJSON)
	if err != nil || json.Unmarshal(data, &client) != nil {
		return r, false
	}
	if handle, err := base64.RawURLEncoding.DecodeString(shape.Response.UserHandle); err == nil && len(handle) == len(r.User) {
		r.User = rolecall.UserID(handle)
	}
	challenge, ok := secret.ParseToken(client.Challenge)
	r.ID, r.Challenge = id, challenge
	return r, ok
}
