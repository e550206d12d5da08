// Package passkey implements the server side of WebAuthn (Level 3): it creates the
// options for browsers and verifies the responses of authenticators. It stores
// nothing and reads no clock.
package passkey

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// ErrRefused is the error of a response with a wrong key, challenge, domain or
// origin. Its text is for logs.
var ErrRefused = errors.New("response of an authenticator refused")

// shortestID is the minimum length of a credential id in bytes (WebAuthn, 4).
const shortestID = 16

// RelyingParty is the WebAuthn relying party: the domain to which passkeys are bound, and
// the origins whose pages may use them.
type RelyingParty struct {
	webauthn *webauthn.WebAuthn
}

// New returns the relying party of the domain and the origins, or an error if
// browsers would reject the domain.
func New(domain string, origins []string) (*RelyingParty, error) {
	if domain == "" {
		return nil, errors.New("passkeys need a domain")
	}
	w, err := webauthn.New(&webauthn.Config{
		RPID: domain, RPDisplayName: domain, RPOrigins: origins,
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey:      protocol.ResidentKeyRequirementPreferred,
			UserVerification: protocol.VerificationPreferred,
		},
		// Password managers send extension results without a request. They are
		// ignored.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys of %s: %w", domain, err)
	}
	return &RelyingParty{w}, nil
}

// User is the WebAuthn user: the user of a passkey.
type User struct {
	User     *rolecall.User
	Tenant   string // display name
	Passkeys []rolecall.Passkey
}

// WebAuthnID returns the user handle: the id, which contains no personal data.
func (o *User) WebAuthnID() []byte { return o.User.ID[:] }

// WebAuthnName returns the name under which an authenticator lists the passkey. It
// contains the tenant, because the passkeys of all tenants have the same domain.
func (o *User) WebAuthnName() string { return o.User.Email + " (" + o.Tenant + ")" }

// WebAuthnDisplayName returns the name of the user.
func (o *User) WebAuthnDisplayName() string { return o.User.Name }

// WebAuthnCredentials returns the credentials of the passkeys. It leaves out passkeys that cannot
// be decoded.
func (o *User) WebAuthnCredentials() []webauthn.Credential {
	var credentials []webauthn.Credential
	for _, key := range o.Passkeys {
		var credential webauthn.Credential
		if json.Unmarshal(key.Credential, &credential) == nil {
			credentials = append(credentials, credential)
		}
	}
	return credentials
}

// CreationOptions returns the publicKey options of navigator.credentials.create, as
// JSON (PublicKeyCredentialCreationOptionsJSON).
func (p *RelyingParty) CreationOptions(challenge secret.Token, o *User) ([]byte, error) {
	creation, _, err := p.webauthn.BeginRegistration(o,
		webauthn.WithExclusions(webauthn.Credentials(o.WebAuthnCredentials()).CredentialDescriptors()),
		func(options *protocol.PublicKeyCredentialCreationOptions) (err error) {
			options.Challenge, err = base64.RawURLEncoding.DecodeString(string(challenge))
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("options for a new passkey: %w", err)
	}
	return json.Marshal(creation.Response)
}

// Create verifies the response to CreationOptions and returns the new passkey with
// its id and credential, or ErrRefused.
func (p *RelyingParty) Create(r Response, challenge secret.Token, o *User) (rolecall.Passkey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(r.raw)
	if err != nil {
		return rolecall.Passkey{}, refused(err)
	}
	credential, err := p.webauthn.CreateCredential(o, webauthn.SessionData{
		Challenge: string(challenge), UserID: o.WebAuthnID(), CredParams: webauthn.CredentialParametersDefault(),
	}, parsed)
	if err != nil {
		return rolecall.Passkey{}, refused(err)
	}
	if len(credential.ID) < shortestID {
		return rolecall.Passkey{}, refused(errors.New("its id is too short to be unique"))
	}
	credential.Attestation = webauthn.CredentialAttestation{} // no attestation is requested, so it need not be stored
	encoded, err := json.Marshal(credential)
	return rolecall.Passkey{ID: credential.ID, UserID: o.User.ID, Credential: encoded}, err
}

// RequestOptions returns the publicKey options of navigator.credentials.get, as JSON
// (PublicKeyCredentialRequestOptionsJSON). They ask for a passkey of the user.
// Without a user, they ask for any passkey, with user verification by the
// authenticator.
func (p *RelyingParty) RequestOptions(challenge secret.Token, o *User) ([]byte, error) {
	withChallenge := func(options *protocol.PublicKeyCredentialRequestOptions) (err error) {
		options.Challenge, err = base64.RawURLEncoding.DecodeString(string(challenge))
		return err
	}
	var assertion *protocol.CredentialAssertion
	var err error
	if o == nil {
		assertion, _, err = p.webauthn.BeginDiscoverableLogin(withChallenge, webauthn.WithUserVerification(protocol.VerificationRequired))
	} else {
		assertion, _, err = p.webauthn.BeginLogin(o, withChallenge)
	}
	if err != nil {
		return nil, fmt.Errorf("options for a passkey: %w", err)
	}
	return json.Marshal(assertion.Response)
}

// Verify verifies the response to RequestOptions. It returns the user's passkey
// with its updated credential, or ErrRefused. With passwordless, the authenticator must
// have verified the user, because the passkey replaces the password.
func (p *RelyingParty) Verify(r Response, challenge secret.Token, o *User, passwordless bool) (rolecall.Passkey, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(r.raw)
	if err != nil {
		return rolecall.Passkey{}, refused(err)
	}
	session := webauthn.SessionData{Challenge: string(challenge), UserID: o.WebAuthnID(), UserVerification: protocol.VerificationPreferred}
	if passwordless {
		session.UserVerification = protocol.VerificationRequired
	}
	credential, err := p.webauthn.ValidateLogin(o, session, parsed)
	switch {
	case err != nil:
		return rolecall.Passkey{}, refused(err)
	case credential.Authenticator.CloneWarning:
		return rolecall.Passkey{}, fmt.Errorf("%w: its counter went back, so there may be a copy of it", ErrRefused)
	}
	for _, key := range o.Passkeys {
		if string(key.ID) == string(credential.ID) {
			key.Credential, err = json.Marshal(credential)
			return key, err
		}
	}
	return rolecall.Passkey{}, refused(errors.New("not one of the owner's"))
}

func refused(err error) error { return fmt.Errorf("%w: %w", ErrRefused, err) }
