package passkey

import (
	"encoding/base64"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// Response is the response of an authenticator, in the JSON form of PublicKeyCredential.toJSON. Its
// members are not verified. They only select the passkey and the challenge to load.
type Response struct {
	ID        []byte          // of the passkey
	Challenge secret.Token    // the claimed challenge
	User      rolecall.UserID // the claimed user; zero without one
	raw       []byte
}

// ReadResponse parses the JSON document. It returns false if the document is not a
// response.
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
