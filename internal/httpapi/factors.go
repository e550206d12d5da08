package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) factorOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodPost, Path: "/auths/login/second-factor", ID: "AuthsController_completeLogin", Summary: "Complete a sign-in with a second factor",
			Description: "Answers the challenge of a sign-in with a code, a recovery code or a passkey. To enroll a second factor, send its first code or the new passkey. A challenge is valid for five minutes and accepts five answers.",
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusOK, "The signed-in user and the session. The session cookie is set, or the tokens are in the body.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrWrongCode, rolecall.ErrChallengeInvalid, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrTooManyAttempts},
			Handler:     operation.JSON(s.completeLogin),
		},
		{
			Method: http.MethodPost, Path: "/auths/login/enrolment", ID: "AuthsController_beginEnrolment", Summary: "Start enrolling a second factor at sign-in",
			Description: "For a sign-in that was answered with second-factor-enrolment-required. Complete the sign-in with POST /auths/login/second-factor.",
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusOK, "A secret for an authenticator app and options for a passkey. Use one of them.", nil}},
			Problems:    problems{rolecall.ErrChallengeInvalid, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended},
			Handler:     operation.JSON(s.beginEnrolment),
		},
		{
			Method: http.MethodPost, Path: "/auths/passkeys/sign-in-options", ID: "AuthsController_getPasskeySignInOptions", Summary: "Start a passkey sign-in",
			Description: "Returns options for navigator.credentials.get. Send its result to POST /auths/passkeys/sign-in within five minutes.",
			Policy:      authz.Anyone,
			Answers:     operation.Answers{{http.StatusOK, "The options.", nil}},
			Problems:    problems{rolecall.ErrPasskeysUnavailable},
			Handler:     operation.JSON(s.getPasskeySignInOptions),
		},
		{
			Method: http.MethodPost, Path: "/auths/passkeys/sign-in", ID: "AuthsController_signInByPasskey", Summary: "Sign in with a passkey",
			Description: "Starts a session without a password. The authenticator must verify the user, so the passkey counts as two factors.",
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusOK, "The signed-in user and the session. The session cookie is set, or the tokens are in the body.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrPasskeyRefused, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended},
			Handler:     operation.JSON(s.signInByPasskey),
		},
		{
			Method: http.MethodGet, Path: "/auths/factors", ID: "AuthsController_getFactors", Summary: "Get your second factors",
			Description: "Returns the caller's second factors, without their secrets.",
			Policy:      authz.ReadOwnFactors,
			Answers:     operation.Answers{{http.StatusOK, "The second factors, without their secrets.", nil}},
			Handler:     operation.JSON(s.getFactors),
		},
		{
			Method: http.MethodPost, Path: "/auths/totp", ID: "AuthsController_beginTotp", Summary: "Start adding an authenticator app",
			Description: "Returns a secret for the app. The app becomes a second factor when you confirm it with a code. Until then, an existing app stays in use.",
			Policy:      authz.AddOwnFactor,
			Answers:     operation.Answers{{http.StatusOK, "The secret, which is returned only once.", nil}},
			Handler:     operation.JSON(s.beginTOTP),
		},
		{
			Method: http.MethodPost, Path: "/auths/totp/confirm", ID: "AuthsController_confirmTotp", Summary: "Confirm an authenticator app",
			Description: "Verifies a code of the app, makes the app a second factor, and ends all other sessions of the user.",
			Policy:      authz.AddOwnFactor,
			Answers:     operation.Answers{{http.StatusOK, "The app is now a second factor. The body has recovery codes if the user had none.", nil}},
			Handler:     operation.JSON(s.confirmTOTP),
		},
		{
			Method: http.MethodDelete, Path: "/auths/totp", ID: "AuthsController_deleteTotp", Summary: "Remove your authenticator app",
			Description: "Removes the app and ends all other sessions of the user.",
			Policy:      authz.RemoveOwnFactor,
			Answers:     operation.Answers{{http.StatusNoContent, "The app was removed.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFactorDemanded},
			Handler:     operation.JSON(s.deleteTOTP),
		},
		{
			Method: http.MethodPost, Path: "/auths/recovery-codes", ID: "AuthsController_makeRecoveryCodes", Summary: "Create new recovery codes",
			Description: "Creates ten recovery codes, makes all earlier ones invalid, and ends all other sessions of the user.",
			Policy:      authz.AddOwnFactor,
			Answers:     operation.Answers{{http.StatusOK, "The recovery codes, which are returned only once.", nil}},
			Problems:    problems{rolecall.ErrNoSecondFactor},
			Handler:     operation.JSON(s.makeRecoveryCodes),
		},
		{
			Method: http.MethodPost, Path: "/auths/passkeys/options", ID: "AuthsController_getPasskeyOptions", Summary: "Start adding a passkey",
			Description: "Returns options for navigator.credentials.create. Send its result to POST /auths/passkeys within five minutes.",
			Policy:      authz.AddOwnFactor,
			Answers:     operation.Answers{{http.StatusOK, "The options.", nil}},
			Problems:    problems{rolecall.ErrTooManyPasskeys, rolecall.ErrPasskeysUnavailable},
			Handler:     operation.JSON(s.getPasskeyOptions),
		},
		{
			Method: http.MethodPost, Path: "/auths/passkeys", ID: "AuthsController_createPasskey", Summary: "Add a passkey",
			Description: "Makes the passkey a second factor, and ends all other sessions of the user. The passkey can also replace the password.",
			Policy:      authz.AddOwnFactor,
			Answers:     operation.Answers{{http.StatusCreated, "The passkey. The body has recovery codes if the user had none.", []string{"Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrPasskeyTaken, rolecall.ErrTooManyPasskeys, rolecall.ErrPasskeysUnavailable},
			Handler:     operation.JSON(s.createPasskey),
		},
		{
			Method: http.MethodPatch, Path: "/auths/passkeys/{passkeyId}", ID: "AuthsController_updatePasskey", Summary: "Rename a passkey",
			Description: "Changes the name of the passkey.",
			Policy:      authz.AddOwnFactor,
			Answers:     operation.Answers{{http.StatusOK, "The renamed passkey.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.updatePasskey),
		},
		{
			Method: http.MethodDelete, Path: "/auths/passkeys/{passkeyId}", ID: "AuthsController_deletePasskey", Summary: "Remove a passkey",
			Description: "Removes the passkey and ends all other sessions of the user.",
			Policy:      authz.RemoveOwnFactor,
			Answers:     operation.Answers{{http.StatusNoContent, "The passkey was removed.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFactorDemanded},
			Handler:     operation.JSON(s.deletePasskey),
		},
	}
}

// proofBody has the proof of a second factor: a code, a recovery code or a passkey response. The
// handlers check how many members are set.
type proofBody struct {
	Code         string     `json:"code" doc:"Six digits from the authenticator app."`
	RecoveryCode string     `json:"recoveryCode" doc:"An unused recovery code."`
	Passkey      credential `json:"passkey" doc:"The result of toJSON() of the credential that the browser returned."`
}

func (b *proofBody) proof() signin.Proof {
	return signin.Proof{Code: b.Code, RecoveryCode: b.RecoveryCode, Passkey: b.Passkey}
}

// count returns the number of members that are set.
func (b *proofBody) count() (n int) {
	for _, is := range []bool{b.Code != "", b.RecoveryCode != "", b.Passkey != nil} {
		if is {
			n++
		}
	}
	return n
}

type completeLoginBody struct {
	beginEnrolmentBody
	proofBody
	deviceBody
}

var _ = operation.Component[completeLoginBody]("CompleteLogin", "The challenge, and exactly one of code, recoveryCode and passkey.")

type completeLoginRequest struct {
	Anonymous access.Anonymous
	Body      completeLoginBody
}

// ReturnsToken returns true, because the challenge decides. A page on another site has no challenge
// of a sign-in with cookies.
func (*completeLoginRequest) ReturnsToken() bool { return true }

func (s *Server) completeLogin(ctx context.Context, _ access.Caller, in *completeLoginRequest) (operation.Response[signInBody], error) {
	challenge, err := parseToken(in.Body.Challenge, rolecall.ErrChallengeInvalid)
	if err != nil {
		return operation.Response[signInBody]{}, err
	}
	if in.Body.count() != 1 {
		return operation.Response[signInBody]{}, rolecall.FieldErrors{{Code: "one-of", Detail: "must have exactly one of code, recoveryCode and passkey"}}.Err()
	}
	in.Body.deviceBody.apply(&in.Anonymous)
	signIn, err := s.signin.CompleteSignIn(ctx, in.Anonymous, challenge, in.Body.proof())
	return s.signedIn(&signIn), err
}

type beginEnrolmentBody struct {
	Challenge string `json:"challenge" required:"true" doc:"The challenge in the 401 response to the sign-in."`
}

var _ = operation.Component[beginEnrolmentBody]("BeginEnrolment", "The challenge of the sign-in.")

type beginEnrolmentRequest struct {
	Anonymous access.Anonymous
	Body      beginEnrolmentBody
}

// enrolmentBody has the two ways to enroll a second factor: a secret for an authenticator app,
// and the options for a new passkey.
type enrolmentBody struct {
	totpSecretBody
	PublicKey jsontext.Value `json:"publicKey,omitzero" doc:"Options for navigator.credentials.create. Absent if passkeys are not available."`
}

var _ = operation.Component[enrolmentBody]("Enrolment", "Two ways to enroll a second factor: with a code of the secret, or with a passkey.")

func (s *Server) beginEnrolment(ctx context.Context, _ access.Caller, in *beginEnrolmentRequest) (operation.Response[enrolmentBody], error) {
	challenge, err := parseToken(in.Body.Challenge, rolecall.ErrChallengeInvalid)
	if err != nil {
		return operation.Response[enrolmentBody]{}, err
	}
	enrolment, err := s.signin.BeginEnrolment(ctx, in.Anonymous, challenge)
	return operation.Response[enrolmentBody]{Body: enrolmentBody{newTOTPSecretBody(&enrolment.TOTPSecret), enrolment.PublicKey}}, err
}

// factorsBody are the caller's second factors, without their secrets.
type factorsBody struct {
	TOTP          *confirmedBody `json:"totp" doc:"The authenticator app. Null if none is enrolled."`
	Passkeys      []passkeyBody  `json:"passkeys" doc:"The passkeys."`
	RecoveryCodes int            `json:"recoveryCodes" doc:"Number of unused recovery codes."`
	Demanded      bool           `json:"demanded" doc:"Whether the tenant requires a second factor of the caller."`
}

var _ = operation.Component[factorsBody]("Factors", "The caller's second factors.")

type confirmedBody struct {
	ConfirmedAt rolecall.Time `json:"confirmedAt" doc:"When the app was enrolled."`
}

var _ = operation.Component[confirmedBody]("AuthenticatorApp", "An authenticator app.")

func (s *Server) getFactors(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[factorsBody], error) {
	own, err := s.signin.Factors(ctx, c)
	body := factorsBody{RecoveryCodes: own.RecoveryCodes, Demanded: own.Demanded}
	if own.TOTP.Sealed != nil {
		body.TOTP = &confirmedBody{own.TOTP.ConfirmedAt}
	}
	for i := range own.Passkeys {
		body.Passkeys = append(body.Passkeys, newPasskey(&own.Passkeys[i]))
	}
	return operation.Response[factorsBody]{Body: body}, err
}

// totpSecretBody is the secret of an authenticator app.
type totpSecretBody struct {
	Secret string `json:"secret" doc:"The secret in base32, to type into the app."`
	URI    string `json:"uri" doc:"The secret as an otpauth:// URI, to show as a QR code."`
}

var _ = operation.Component[totpSecretBody]("TotpSecret", "A secret for an authenticator app.")

func newTOTPSecretBody(s *signin.TOTPSecret) totpSecretBody {
	return totpSecretBody{string(s.Secret), s.URI}
}

func (s *Server) beginTOTP(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[totpSecretBody], error) {
	begun, err := s.signin.BeginTOTP(ctx, c)
	return operation.Response[totpSecretBody]{Body: newTOTPSecretBody(&begun)}, err
}

type confirmTOTPRequest struct{ Body confirmTOTPBody }

type confirmTOTPBody struct {
	Code string `json:"code" required:"true" doc:"Six digits from the authenticator app."`
}

var _ = operation.Component[confirmTOTPBody]("ConfirmTotp", "A code of the authenticator app.")

// recoveryCodesBody has new recovery codes. The list is absent if a user who has unused codes confirms an authenticator
// app.
type recoveryCodesBody struct {
	RecoveryCodes []secret.RecoveryCode `json:"recoveryCodes,omitzero" doc:"Ten recovery codes. Each works once. They are not returned again."`
}

var _ = operation.Component[recoveryCodesBody]("CreatedRecoveryCodes", "Recovery codes. After the confirmation of an authenticator app, they are absent if the user has unused ones.")

func (s *Server) confirmTOTP(ctx context.Context, c access.Caller, in *confirmTOTPRequest) (operation.Response[recoveryCodesBody], error) {
	codes, err := s.signin.ConfirmTOTP(ctx, c, in.Body.Code)
	return operation.Response[recoveryCodesBody]{Body: recoveryCodesBody{codes}}, err
}

func (s *Server) deleteTOTP(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.signin.RemoveTOTP(ctx, c)
}

func (s *Server) makeRecoveryCodes(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[recoveryCodesBody], error) {
	codes, err := s.signin.MakeRecoveryCodes(ctx, c)
	return operation.Response[recoveryCodesBody]{Body: recoveryCodesBody{codes}}, err
}

func (s *Server) getPasskeySignInOptions(_ context.Context, _ access.Caller, in *anonymousRequest) (operation.Response[publicKeyBody], error) {
	publicKey, err := s.signin.PasskeySignInOptions(in.Anonymous)
	return operation.Response[publicKeyBody]{Body: publicKeyBody{publicKey}}, err
}

// publicKeyBody has the options that a browser passes to an authenticator.
type publicKeyBody struct {
	PublicKey jsontext.Value `json:"publicKey" doc:"Options for PublicKeyCredential.parseCreationOptionsFromJSON or parseRequestOptionsFromJSON."`
}

var _ = operation.Component[publicKeyBody]("PasskeyOptions", "Options for an authenticator.")

// credential is the JSON of a PublicKeyCredential from a browser. Package httpapi does not parse
// it.
type credential []byte

var _ = operation.SameSchema[credential, jsontext.Value]()

// UnmarshalWire stores the object unchanged.
func (c *credential) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if value.Kind() != jsontext.KindBeginObject {
		d.Add(pointer, "type", "must be an object")
		return
	}
	*c = credential(value.Clone())
}

type signInByPasskeyBody struct {
	Passkey credential `json:"passkey" required:"true" doc:"The result of toJSON() of the credential that the browser returned."`
	transportBody
}

var _ = operation.Component[signInByPasskeyBody]("SignInByPasskey", "The response of the authenticator.")

type signInByPasskeyRequest struct {
	Anonymous access.Anonymous
	Body      signInByPasskeyBody
}

// ReturnsToken reports whether the response has the token of the session.
func (in *signInByPasskeyRequest) ReturnsToken() bool { return in.Body.Transport == byBearer }

func (s *Server) signInByPasskey(ctx context.Context, _ access.Caller, in *signInByPasskeyRequest) (operation.Response[signInBody], error) {
	in.Body.apply(&in.Anonymous)
	signIn, err := s.signin.PasskeySignIn(ctx, in.Anonymous, in.Body.Passkey)
	return s.signedIn(&signIn), err
}

func (s *Server) getPasskeyOptions(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[publicKeyBody], error) {
	publicKey, err := s.signin.PasskeyCreationOptions(ctx, c)
	return operation.Response[publicKeyBody]{Body: publicKeyBody{publicKey}}, err
}

type createPasskeyBody struct {
	Name    string     `json:"name" required:"true" minLength:"1" maxLength:"100" doc:"Name of the passkey, for its owner."`
	Passkey credential `json:"passkey" required:"true" doc:"The result of toJSON() of the credential that the browser returned."`
}

var _ = operation.Component[createPasskeyBody]("CreatePasskey", "The response of the authenticator, and a name for the passkey.")

type createPasskeyRequest struct {
	operation.IdempotencyHeader
	Body createPasskeyBody
}

func (s *Server) createPasskey(ctx context.Context, c access.Caller, in *createPasskeyRequest) (operation.Response[newPasskeyBody], error) {
	created, err := s.signin.AddPasskey(ctx, c, in.Key, in.Body.Name, in.Body.Passkey)
	body := newPasskeyBody{newPasskey(&created.Value.Passkey), created.Replayed, created.Value.RecoveryCodes}
	return operation.Response[newPasskeyBody]{Body: body, Replayed: created.Replayed}, err
}

// passkeyIDLength is the maximum length of a passkey id in base64url. The id has at most 1023
// bytes (WebAuthn, section 4).
const passkeyIDLength = 1364

// passkeyIDPattern matches base64url without padding. The unused bits in the last character must
// be zero.
const passkeyIDPattern = `^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{4}|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]|[A-Za-z0-9_-][AQgw])$`

// passkeyIDValue is a path parameter with the id of a passkey.
type passkeyIDValue []byte

var _ = operation.SchemaOf[passkeyIDValue](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(passkeyIDLength), Pattern: passkeyIDPattern}
})

// SetParameter decodes the id from base64url.
func (v *passkeyIDValue) SetParameter(text string) (code, detail string) {
	id, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > passkeyIDLength || len(id) == 0 {
		return "format", "must be the ID of a passkey: base64url without padding"
	}
	*v = id
	return "", ""
}

// passkeyPath is the path parameter with the id of a passkey.
type passkeyPath struct {
	ID passkeyIDValue `path:"passkeyId" example:"AR2PEK-VQCj3H3lzcUp4IQ" doc:"ID of the passkey."`
}

type updatePasskeyBody struct {
	Name rolecall.Optional[string] `json:"name" minLength:"1" maxLength:"100" doc:"Name of the passkey, for its owner."`
}

var _ = operation.Component[updatePasskeyBody]("UpdatePasskey", "The members to change.")

type updatePasskeyRequest struct {
	passkeyPath
	Body updatePasskeyBody
}

func (s *Server) updatePasskey(ctx context.Context, c access.Caller, in *updatePasskeyRequest) (operation.Response[passkeyBody], error) {
	key, err := s.signin.UpdatePasskey(ctx, c, in.ID, in.Body.Name)
	return operation.Response[passkeyBody]{Body: newPasskey(&key)}, err
}

type deletePasskeyRequest struct {
	passkeyPath
}

func (s *Server) deletePasskey(ctx context.Context, c access.Caller, in *deletePasskeyRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.signin.RemovePasskey(ctx, c, in.ID)
}

// passkeyBody is a passkey.
type passkeyBody struct {
	ID         base64Text    `json:"id" doc:"ID of the passkey."`
	Name       string        `json:"name" doc:"Name of the passkey, for its owner."`
	CreatedAt  rolecall.Time `json:"createdAt" doc:"When the passkey was created."`
	LastUsedAt rolecall.Time `json:"lastUsedAt" nullable:"true" doc:"When the passkey was used last. Null for never."`
}

var _ = operation.Component[passkeyBody]("Passkey", "A passkey.")

func newPasskey(key *rolecall.Passkey) passkeyBody {
	return passkeyBody{key.ID, key.Name, key.CreatedAt, key.LastUsedAt}
}

// newPasskeyBody is a new passkey. Only the first response has the recovery codes. The response to
// a repeated request has secretWithheld instead.
type newPasskeyBody struct {
	passkeyBody
	SecretWithheld bool                  `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the recovery codes are therefore not shown again. Absent otherwise."`
	RecoveryCodes  []secret.RecoveryCode `json:"recoveryCodes,omitzero" doc:"Ten recovery codes. Each works once. Absent if the user had unused recovery codes. They are not returned again."`
}

var _ = operation.Component[newPasskeyBody]("CreatedPasskey", "A new passkey. Recovery codes are returned only once: the answer to a repeated request has secretWithheld instead.")

// base64Text are bytes. In JSON, they are base64url without padding.
type base64Text []byte

var _ = operation.SchemaOf[base64Text](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^[A-Za-z0-9_-]+$"}
})

// AppendJSON appends the bytes as text.
func (t base64Text) AppendJSON(b []byte) []byte {
	return append(base64.RawURLEncoding.AppendEncode(append(b, '"'), t), '"')
}
