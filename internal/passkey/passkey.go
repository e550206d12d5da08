// Package passkey implements the server side of WebAuthn (Level 3). It creates the
// options for browsers and verifies the responses of authenticators. It stores nothing,
// and does not check when challenges expire. Its callers do both.
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

// ErrRefused is the error for a response of an authenticator that is not valid, for
// example because of a wrong signature, challenge, domain or origin. Its text is for
// logs.
var ErrRefused = errors.New("response of an authenticator refused")

// The errors of a valid response of a passkey that is refused. They are ErrRefused too.
var (
	ErrCounter = fmt.Errorf("%w: its counter went back, so there may be a copy of it", ErrRefused)
	ErrBackup  = fmt.Errorf("%w: whether it can be synced has changed since it was created", ErrRefused)
)

// shortestID is the minimum length of a credential id in bytes (WebAuthn, section 4).
const shortestID = 16

// RelyingParty is the WebAuthn relying party. It has the domain to which passkeys are
// bound, and the origins of the pages that may use them.
type RelyingParty struct {
	webauthn *webauthn.WebAuthn
}

// New returns the relying party with the domain and the origins. It returns an error if
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
		// Password managers send results of extensions that the options did not request.
		// These results are ignored.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys of %s: %w", domain, err)
	}
	return &RelyingParty{w}, nil
}

// User is a user of Rolecall as WebAuthn sees them, with their passkeys.
type User struct {
	User     *rolecall.User
	Tenant   string // display name of the tenant
	Passkeys []rolecall.Passkey
}

// WebAuthnID returns the user handle of WebAuthn. It is the id of the user, which
// contains no personal data.
func (o *User) WebAuthnID() []byte { return o.User.ID[:] }

// WebAuthnName returns the name under which an authenticator lists the passkey. It
// contains the name of the tenant, because the passkeys of all tenants have the same
// domain.
func (o *User) WebAuthnName() string { return o.User.Email + " (" + o.Tenant + ")" }

// WebAuthnDisplayName returns the name of the user.
func (o *User) WebAuthnDisplayName() string { return o.User.Name }

// WebAuthnCredentials returns the credentials of the user's passkeys. It leaves out
// passkeys whose stored credential cannot be decoded.
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

// CreationOptions returns the options with which a browser creates a passkey for the
// user: the member publicKey of the argument of navigator.credentials.create, as JSON
// (PublicKeyCredentialCreationOptionsJSON).
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

// Create verifies the response to CreationOptions and returns the new passkey. The
// passkey has an id, a user and a credential, and no name or times. Create returns
// ErrRefused if the response is not valid.
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
	credential.Attestation = webauthn.CredentialAttestation{} // the options request no attestation, so it is not stored
	encoded, err := json.Marshal(credential)
	return rolecall.Passkey{ID: credential.ID, UserID: o.User.ID, Credential: encoded}, err
}

// RequestOptions returns the options with which a browser signs in with a passkey: the
// member publicKey of the argument of navigator.credentials.get, as JSON
// (PublicKeyCredentialRequestOptionsJSON). They allow the passkeys of the user o. If o is
// nil, they allow every passkey of the domain, and require that the authenticator
// verifies the user.
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

// Verify verifies the response to RequestOptions. It returns the user's passkey with its
// updated credential. If passwordless is true, the authenticator must have verified the
// user, for example with a PIN, because the passkey replaces the password. Verify returns
// ErrRefused if the response is not valid, and ErrCounter or ErrBackup if only the counter or a flag of the passkey is
// wrong.
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
	case err != nil && p.isValidWithFlag(o, session, parsed):
		return rolecall.Passkey{}, ErrBackup
	case err != nil:
		return rolecall.Passkey{}, refused(err)
	case credential.Authenticator.CloneWarning:
		return rolecall.Passkey{}, ErrCounter
	}
	for _, key := range o.Passkeys {
		if string(key.ID) == string(credential.ID) {
			key.Credential, err = json.Marshal(credential)
			return key, err
		}
	}
	return rolecall.Passkey{}, refused(errors.New("not one of the owner's"))
}

// isValidWithFlag reports whether the response would be valid if the passkey had been created with the flag "backup
// eligible" of the response. So its signature is right, and only the flag is wrong.
func (p *RelyingParty) isValidWithFlag(o *User, session webauthn.SessionData, parsed *protocol.ParsedCredentialAssertionData) bool {
	changed := flagged{User: o, eligible: parsed.Response.AuthenticatorData.Flags.HasBackupEligible()}
	_, err := p.webauthn.ValidateLogin(&changed, session, parsed)
	return err == nil
}

// flagged is a User whose passkeys have another flag "backup eligible".
type flagged struct {
	*User
	eligible bool
}

// WebAuthnCredentials returns the credentials with the other flag.
func (f *flagged) WebAuthnCredentials() []webauthn.Credential {
	credentials := f.User.WebAuthnCredentials()
	for i := range credentials {
		credentials[i].Flags.BackupEligible = f.eligible
	}
	return credentials
}

func refused(err error) error { return fmt.Errorf("%w: %w", ErrRefused, err) }
