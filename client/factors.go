package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Factors are the second factors of the signed-in user.
type Factors struct {
	TOTP *struct {
		ConfirmedAt time.Time `json:"confirmedAt"`
	} `json:"totp"` // nil without an authenticator app
	Passkeys      []Passkey `json:"passkeys"`
	RecoveryCodes int       `json:"recoveryCodes"` // number of unused codes
	Demanded      bool      `json:"demanded"`
}

// Passkey is a WebAuthn passkey of a user.
type Passkey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"` // nil: never
}

// NewPasskey is a created passkey. RecoveryCodes are set if it is the user's first factor.
// The service returns them once.
type NewPasskey struct {
	Passkey
	RecoveryCodes []string `json:"recoveryCodes"`
}

// TOTPSecret is a secret for an authenticator app, in base32 and as otpauth://.
type TOTPSecret struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`
}

// Enrolment is the data for the enrolment of a second factor during sign-in.
type Enrolment struct {
	TOTPSecret
	PublicKey json.RawMessage `json:"publicKey"` // for navigator.credentials.create; nil if the service has no passkeys
}

// Proof is a second factor. Exactly one member is set.
type Proof struct {
	Code         string          `json:"code,omitempty"` // of an authenticator app
	RecoveryCode string          `json:"recoveryCode,omitempty"`
	Passkey      json.RawMessage `json:"passkey,omitempty"` // toJSON() of the browser's credential
}

// CompleteLogin completes a sign-in that failed with the code second-factor-required, or
// second-factor-enrolment-required after BeginEnrolment. It sends the Challenge of that
// Problem and a second factor. The client keeps the session and sends it with each request.
// After an enrolment, the result has recovery codes, which the service returns once. A wrong
// proof fails with the code wrong-code, and you can call CompleteLogin again.
func (c *Client) CompleteLogin(ctx context.Context, challenge string, p Proof) (in SignIn, err error) {
	body := struct {
		Challenge string `json:"challenge"`
		Proof
	}{challenge, p}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/login/second-factor", body: body, into: &in})
	return in, err
}

// BeginEnrolment returns the data to enrol a second factor, for the Challenge of a sign-in
// that failed with the code second-factor-enrolment-required. Call CompleteLogin with the
// first proof of the new factor.
func (c *Client) BeginEnrolment(ctx context.Context, challenge string) (e Enrolment, err error) {
	body := map[string]string{"challenge": challenge}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/login/enrolment", body: body, into: &e})
	return e, err
}

// PasskeySignInOptions returns the publicKey options of navigator.credentials.get,
// for a sign-in with a passkey and without a password.
func (c *Client) PasskeySignInOptions(ctx context.Context) (publicKey json.RawMessage, err error) {
	return c.publicKey(ctx, "/auths/passkeys/sign-in-options")
}

// SignInByPasskey signs in with the browser's response to PasskeySignInOptions.
func (c *Client) SignInByPasskey(ctx context.Context, passkey json.RawMessage) (in SignIn, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/passkeys/sign-in", body: Proof{Passkey: passkey}, into: &in})
	return in, err
}

// Factors returns the second factors of the signed-in user.
func (c *Client) Factors(ctx context.Context) (f Factors, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "/auths/factors", into: &f})
	return f, err
}

// BeginTOTP returns a secret for an authenticator app. The app becomes a second factor with
// ConfirmTOTP.
func (c *Client) BeginTOTP(ctx context.Context) (s TOTPSecret, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/totp", into: &s})
	return s, err
}

// ConfirmTOTP verifies a code of the authenticator app and makes the app a second factor. It ends
// all other sessions. If the app is the first factor of the user, ConfirmTOTP returns recovery
// codes, which the service returns only once.
func (c *Client) ConfirmTOTP(ctx context.Context, code string) ([]string, error) {
	return c.recoveryCodes(ctx, "/auths/totp/confirm", Proof{Code: code})
}

// RemoveTOTP removes the authenticator app of the signed-in user and ends all other
// sessions.
func (c *Client) RemoveTOTP(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/auths/totp"})
	return err
}

// MakeRecoveryCodes replaces all recovery codes and returns the new ones.
func (c *Client) MakeRecoveryCodes(ctx context.Context) ([]string, error) {
	return c.recoveryCodes(ctx, "/auths/recovery-codes", nil)
}

// PasskeyOptions returns the publicKey options of navigator.credentials.create.
func (c *Client) PasskeyOptions(ctx context.Context) (publicKey json.RawMessage, err error) {
	return c.publicKey(ctx, "/auths/passkeys/options")
}

// CreatePasskey stores the passkey that the browser has created with PasskeyOptions, and ends
// all other sessions. A repeated call with the same key creates no second passkey.
func (c *Client) CreatePasskey(ctx context.Context, key, name string, passkey json.RawMessage) (p NewPasskey, err error) {
	body := struct {
		Name    string          `json:"name"`
		Passkey json.RawMessage `json:"passkey"`
	}{name, passkey}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/passkeys", header: map[string]string{"Idempotency-Key": key}, body: body, into: &p})
	return p, err
}

// RenamePasskey renames a passkey of the signed-in user.
func (c *Client) RenamePasskey(ctx context.Context, id, name string) (p Passkey, err error) {
	_, err = c.do(ctx, call{method: http.MethodPatch, path: "/auths/passkeys/" + url.PathEscape(id), body: Patch{"name": name}, into: &p})
	return p, err
}

// RemovePasskey removes a passkey of the signed-in user and ends all other sessions.
func (c *Client) RemovePasskey(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/auths/passkeys/" + url.PathEscape(id)})
	return err
}

// ResetFactors removes all second factors of a user who has lost them.
func (c *Client) ResetFactors(ctx context.Context, user string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/users/" + url.PathEscape(user) + "/factors"})
	return err
}

func (c *Client) publicKey(ctx context.Context, path string) (json.RawMessage, error) {
	var options struct {
		PublicKey json.RawMessage `json:"publicKey"`
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: path, into: &options})
	return options.PublicKey, err
}

func (c *Client) recoveryCodes(ctx context.Context, path string, body any) ([]string, error) {
	var shown struct {
		RecoveryCodes []string `json:"recoveryCodes"`
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: path, body: body, into: &shown})
	return shown.RecoveryCodes, err
}
