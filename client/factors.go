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
	} `json:"totp"` // nil if the user has no authenticator app
	Passkeys      []Passkey `json:"passkeys"`
	RecoveryCodes int       `json:"recoveryCodes"` // number of unused codes
	Demanded      bool      `json:"demanded"`
}

// Passkey is a WebAuthn passkey of a user.
type Passkey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"` // nil if the passkey was never used
}

// NewPasskey is a created passkey. RecoveryCodes are set only if the passkey is the user's
// first factor. The service returns recovery codes only once.
type NewPasskey struct {
	Passkey
	RecoveryCodes []string `json:"recoveryCodes"`
}

// TOTPSecret is a secret for an authenticator app. Secret is in base32, and URI is an
// otpauth:// URI that contains the secret.
type TOTPSecret struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`
}

// Enrolment has the data that a user needs to set up a second factor during sign-in.
type Enrolment struct {
	TOTPSecret
	PublicKey json.RawMessage `json:"publicKey"` // options for navigator.credentials.create; nil if the service has no passkeys
}

// Proof proves that the user has a second factor. Set exactly one member.
type Proof struct {
	Code         string          `json:"code,omitempty"` // code from an authenticator app
	RecoveryCode string          `json:"recoveryCode,omitempty"`
	Passkey      json.RawMessage `json:"passkey,omitempty"` // the credential from the browser, converted with toJSON()
}

// CompleteLogin completes a sign-in that needs a second factor. Pass the Challenge of the
// Problem that Login returned, and a proof. If the code of that Problem is
// second-factor-enrolment-required, call BeginEnrolment first. The client keeps the session
// and sends it with each request. After an enrolment, the result has recovery codes, which
// the service returns only once. If the proof is wrong, CompleteLogin returns a Problem
// with the code wrong-code, and you can call CompleteLogin again.
func (c *Client) CompleteLogin(ctx context.Context, challenge string, p Proof) (in SignIn, err error) {
	body := struct {
		Challenge string `json:"challenge"`
		Proof
	}{challenge, p}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/login/second-factor", body: body, into: &in})
	return in, err
}

// BeginEnrolment returns the data to set up a second factor, for a sign-in that failed with
// the code second-factor-enrolment-required. Pass the Challenge of that Problem. Then call
// CompleteLogin with the first proof of the new factor.
func (c *Client) BeginEnrolment(ctx context.Context, challenge string) (e Enrolment, err error) {
	body := map[string]string{"challenge": challenge}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/login/enrolment", body: body, into: &e})
	return e, err
}

// PasskeySignInOptions returns options for navigator.credentials.get. The browser uses
// these options to sign the user in with a passkey instead of a password.
func (c *Client) PasskeySignInOptions(ctx context.Context) (publicKey json.RawMessage, err error) {
	return c.publicKey(ctx, "/auths/passkeys/sign-in-options")
}

// SignInByPasskey signs in with the credential that the browser returned for the options of
// PasskeySignInOptions.
func (c *Client) SignInByPasskey(ctx context.Context, passkey json.RawMessage) (in SignIn, err error) {
	body := map[string]any{"passkey": passkey, "transport": c.transport()}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/passkeys/sign-in", body: body, into: &in})
	return in, err
}

// Factors returns the second factors of the signed-in user.
func (c *Client) Factors(ctx context.Context) (f Factors, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "/auths/factors", into: &f})
	return f, err
}

// BeginTOTP returns a secret for an authenticator app. To make the app a second factor,
// call ConfirmTOTP with a code from the app.
func (c *Client) BeginTOTP(ctx context.Context) (s TOTPSecret, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/totp", into: &s})
	return s, err
}

// ConfirmTOTP verifies a code from the authenticator app, makes the app a second factor and
// ends all other sessions of the user. If the app is the user's first factor, ConfirmTOTP
// returns recovery codes, which the service returns only once.
func (c *Client) ConfirmTOTP(ctx context.Context, code string) ([]string, error) {
	return c.recoveryCodes(ctx, "/auths/totp/confirm", Proof{Code: code})
}

// RemoveTOTP removes the authenticator app of the signed-in user and ends all other
// sessions of the user.
func (c *Client) RemoveTOTP(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/auths/totp"})
	return err
}

// MakeRecoveryCodes replaces all recovery codes of the signed-in user and returns the new
// codes.
func (c *Client) MakeRecoveryCodes(ctx context.Context) ([]string, error) {
	return c.recoveryCodes(ctx, "/auths/recovery-codes", nil)
}

// PasskeyOptions returns the options for navigator.credentials.create. CreatePasskey stores
// the passkey that the browser creates from these options.
func (c *Client) PasskeyOptions(ctx context.Context) (publicKey json.RawMessage, err error) {
	return c.publicKey(ctx, "/auths/passkeys/options")
}

// CreatePasskey stores a passkey for the signed-in user and ends all other sessions of the
// user. passkey is the credential that the browser created from PasskeyOptions. A repeated
// call with the same key does not create a second passkey. If key is empty, the client makes one.
func (c *Client) CreatePasskey(ctx context.Context, key, name string, passkey json.RawMessage) (p NewPasskey, err error) {
	body := struct {
		Name    string          `json:"name"`
		Passkey json.RawMessage `json:"passkey"`
	}{name, passkey}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/passkeys", header: idempotent(key), body: body, into: &p})
	return p, err
}

// RenamePasskey renames a passkey of the signed-in user.
func (c *Client) RenamePasskey(ctx context.Context, id, name string) (p Passkey, err error) {
	_, err = c.do(ctx, call{method: http.MethodPatch, path: "/auths/passkeys/" + url.PathEscape(id), body: Patch{"name": name}, into: &p})
	return p, err
}

// RemovePasskey removes a passkey of the signed-in user and ends all other sessions of the
// user.
func (c *Client) RemovePasskey(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/auths/passkeys/" + url.PathEscape(id)})
	return err
}

// ResetFactors removes all second factors of a user, for example because the user has lost
// them.
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
