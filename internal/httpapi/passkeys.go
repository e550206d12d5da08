package httpapi

import (
	"encoding/base64"
	"net/http"

	"github.com/rolecall/rolecall"
)

func getPasskeySignInOptions(x *exchange) error {
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	publicKey, err := x.server.service.PasskeySignInOptions(attempt)
	if err != nil {
		return err
	}
	return x.publicKey(publicKey)
}

func signInByPasskey(x *exchange) error {
	document, err := x.credential()
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	signIn, err := x.server.service.PasskeySignIn(x.ctx, attempt, document)
	if err != nil {
		return err
	}
	return x.signedIn(&signIn)
}

func (x *exchange) credential() (document []byte, err error) {
	err = x.decode(member{"passkey", true, readDocument(&document)}).err(noFaults)
	return document, err
}

func getPasskeyOptions(x *exchange) error {
	publicKey, err := x.server.service.PasskeyCreationOptions(x.ctx, x.call)
	if err != nil {
		return err
	}
	return x.publicKey(publicKey)
}

// publicKey answers with what a browser passes to an authenticator.
func (x *exchange) publicKey(publicKey []byte) error {
	x.out = append(appendPublicKey(append(x.out, '{'), publicKey), '}')
	return x.json(http.StatusOK)
}

func createPasskey(x *exchange) error {
	name, document, err := x.newPasskey()
	if err != nil {
		return err
	}
	created, err := x.server.service.AddPasskey(x.ctx, x.call, x.key(), name, document)
	if err != nil {
		return err
	}
	x.out = appendPasskey(append(x.out, '{'), &created.Value.Passkey)
	if created.Replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
		x.out = append(x.out, `,"secretWithheld":true`...)
	}
	if created.Value.RecoveryCodes != nil {
		x.out = appendRecoveryCodes(append(x.out, ','), created.Value.RecoveryCodes)
	}
	x.out = append(x.out, '}')
	return x.json(http.StatusCreated)
}

func (x *exchange) newPasskey() (name string, document []byte, err error) {
	err = x.decode(
		member{"name", true, readString(&name)},
		member{"passkey", true, readDocument(&document)},
	).err(noFaults)
	return name, document, err
}

func updatePasskey(x *exchange) error {
	name, err := x.passkeyPatch()
	if err != nil {
		return err
	}
	key, err := x.server.service.UpdatePasskey(x.ctx, x.call, x.in.passkey, name)
	if err != nil {
		return err
	}
	x.out = append(appendPasskey(append(x.out, '{'), &key), '}')
	return x.json(http.StatusOK)
}

func (x *exchange) passkeyPatch() (name rolecall.Optional[string], err error) {
	err = x.decode(member{"name", false, optional(&name, readString)}).err(noFaults)
	return name, err
}

func deletePasskey(x *exchange) error {
	if err := x.server.service.RemovePasskey(x.ctx, x.call, x.in.passkey); err != nil {
		return err
	}
	return x.nothing()
}

// passkeyIDLength is how long the id of a passkey can be as base64url: 1023 bytes
// (WebAuthn, 4).
const passkeyIDLength = 1364

func readPasskeyID(in *input, text string) (code, detail string) {
	id, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > passkeyIDLength || len(id) == 0 {
		return "format", "must be the id of a passkey: base64url without padding"
	}
	in.passkey = id
	return "", ""
}
