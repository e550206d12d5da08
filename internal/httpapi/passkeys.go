package httpapi

import (
	"context"
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

type anonymousRequest struct{ Attempt access.Anonymous }

func (s *Server) getPasskeySignInOptions(_ context.Context, _ access.Caller, in *anonymousRequest) (Response[publicKeyBody], error) {
	publicKey, err := s.signin.PasskeySignInOptions(in.Attempt)
	return Response[publicKeyBody]{Body: publicKeyBody{publicKey}}, err
}

// publicKeyBody is what a browser passes to an authenticator.
type publicKeyBody struct {
	PublicKey jsontext.Value `json:"publicKey" doc:"Options for PublicKeyCredential.parseCreationOptionsFromJSON or parseRequestOptionsFromJSON."`
}

// credential is a PublicKeyCredential as a browser writes it, an object that only the
// relying party reads.
type credential []byte

// UnmarshalWire keeps the object as it was sent.
func (c *credential) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if value.Kind() != jsontext.KindBeginObject {
		d.Add(pointer, "type", "must be an object")
		return
	}
	*c = credential(value.Clone())
}

type signInByPasskeyBody struct {
	Passkey credential `json:"passkey" required:"true" doc:"The result of toJSON() of the credential that the browser returned."`
}

type signInByPasskeyRequest struct {
	Attempt access.Anonymous
	Body    signInByPasskeyBody
}

func (s *Server) signInByPasskey(ctx context.Context, _ access.Caller, in *signInByPasskeyRequest) (Response[signInBody], error) {
	signIn, err := s.signin.PasskeySignIn(ctx, in.Attempt, in.Body.Passkey)
	return signedIn(&signIn), err
}

type noRequest struct{}

func (s *Server) getPasskeyOptions(ctx context.Context, c access.Caller, _ *noRequest) (Response[publicKeyBody], error) {
	publicKey, err := s.signin.PasskeyCreationOptions(ctx, c)
	return Response[publicKeyBody]{Body: publicKeyBody{publicKey}}, err
}

type createPasskeyBody struct {
	Name    string     `json:"name" required:"true" minLength:"1" maxLength:"100" doc:"Name of the passkey, for its owner."`
	Passkey credential `json:"passkey" required:"true" doc:"The result of toJSON() of the credential that the browser returned."`
}

type createPasskeyRequest struct {
	idempotencyHeader
	Body createPasskeyBody
}

func (s *Server) createPasskey(ctx context.Context, c access.Caller, in *createPasskeyRequest) (Response[newPasskeyBody], error) {
	created, err := s.signin.AddPasskey(ctx, c, in.Key, in.Body.Name, in.Body.Passkey)
	body := newPasskeyBody{newPasskey(&created.Value.Passkey), created.Replayed, created.Value.RecoveryCodes}
	return Response[newPasskeyBody]{Body: body, Replayed: created.Replayed}, err
}

// passkeyPath names a passkey.
type passkeyPath struct {
	ID passkeyIDValue `path:"passkeyId" example:"AR2PEK-VQCj3H3lzcUp4IQ" doc:"ID of the passkey."`
}

type updatePasskeyBody struct {
	Name rolecall.Optional[string] `json:"name" minLength:"1" maxLength:"100" doc:"Name of the passkey, for its owner."`
}

type updatePasskeyRequest struct {
	passkeyPath
	Body updatePasskeyBody
}

func (s *Server) updatePasskey(ctx context.Context, c access.Caller, in *updatePasskeyRequest) (Response[passkeyBody], error) {
	key, err := s.signin.UpdatePasskey(ctx, c, in.ID, in.Body.Name)
	return Response[passkeyBody]{Body: newPasskey(&key)}, err
}

type deletePasskeyRequest struct {
	passkeyPath
}

func (s *Server) deletePasskey(ctx context.Context, c access.Caller, in *deletePasskeyRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.signin.RemovePasskey(ctx, c, in.ID)
}

// passkeyBody is a passkey.
type passkeyBody struct {
	ID         base64Text    `json:"id" doc:"ID of the passkey."`
	Name       string        `json:"name" doc:"Name of the passkey, for its owner."`
	CreatedAt  rolecall.Time `json:"createdAt" doc:"When the passkey was created."`
	LastUsedAt rolecall.Time `json:"lastUsedAt" nullable:"true" doc:"When the passkey was used last. Null for never."`
}

func newPasskey(key *rolecall.Passkey) passkeyBody {
	return passkeyBody{key.ID, key.Name, key.CreatedAt, key.LastUsedAt}
}

// newPasskeyBody is a new passkey. Recovery codes are shown once: a repeated request is
// answered with secretWithheld.
type newPasskeyBody struct {
	passkeyBody
	SecretWithheld bool                  `json:"secretWithheld,omitzero" doc:"True if the request was sent before, so that the recovery codes are not shown again."`
	RecoveryCodes  []secret.RecoveryCode `json:"recoveryCodes,omitzero" doc:"Ten codes, each valid once. They are shown only here, when the first second factor is enrolled."`
}

// base64Text are bytes that are written as base64url without padding.
type base64Text []byte

// AppendJSON appends the bytes as text.
func (t base64Text) AppendJSON(b []byte) []byte {
	return append(base64.RawURLEncoding.AppendEncode(append(b, '"'), t), '"')
}
