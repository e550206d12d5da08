package passkey

import (
	"encoding/base64"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// Response is the response of an authenticator, in the JSON form of
// PublicKeyCredential.toJSON. Its members are not verified yet. Use them only to find the
// passkey and the challenge with which Create or Verify then verifies the response.
type Response struct {
	ID        []byte          // id of the passkey
	Challenge secret.Token    // challenge that the authenticator claims to have signed
	User      rolecall.UserID // user that the authenticator claims; zero: the response contains no user handle
	raw       []byte
}

// ReadResponse parses the JSON document of an authenticator's response. It returns false
// if the document does not have the shape of a response.
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
