package signin

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// The purposes of challenges that contain their own MAC, and so are not stored when they
// are created.
const (
	passkeyCreation = "passkey creation"
	passkeySignIn   = "passkey sign-in"
	passkeyProof    = "passkey proof"
)

// defaultPasskeyName is the name of a passkey that a user enrolls during sign-in.
const defaultPasskeyName = "Passkey"

// PasskeyCreationOptions returns the options with which a browser creates a passkey for the
// caller: the member publicKey of the argument of navigator.credentials.create, as JSON.
// PasskeyCreationOptions can fail with ErrPasskeysUnavailable or ErrTooManyPasskeys.
func (s *Service) PasskeyCreationOptions(ctx context.Context, c access.Caller) ([]byte, error) {
	if s.passkeys == nil {
		return nil, rolecall.ErrPasskeysUnavailable
	}
	own, err := s.Factors(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(own.Passkeys) >= rolecall.PasskeysMax {
		return nil, rolecall.ErrTooManyPasskeys
	}
	return s.passkeys.CreationOptions(s.challenge(passkeyCreation, c), webauthnUser(c, &own.Factors))
}

func webauthnUser(c access.Caller, f *rolecall.Factors) *passkey.User {
	return &passkey.User{User: &c.User, Tenant: c.Tenant.DisplayName, Passkeys: f.Passkeys}
}

// challenge returns a WebAuthn challenge that is valid only for the caller and the
// purpose.
func (s *Service) challenge(purpose string, c access.Caller) secret.Token {
	return s.keys.Challenge(purpose, s.now().Add(challengeLifetime), c.Tenant.ID.String(), c.User.ID.String())
}

// NewPasskey is a created passkey. If the user had no recovery codes, it also has new
// recovery codes. The user sees these codes only once.
type NewPasskey struct {
	rolecall.Passkey
	RecoveryCodes []secret.RecoveryCode
}

// passkeyValue is the form in which idempotency keys and events store a passkey. In
// events, only the user of the passkey can read it.
type passkeyValue struct {
	Passkey rolecall.Passkey `json:"passkey"`
}

// AddPasskey stores the passkey that an authenticator has created from
// PasskeyCreationOptions, once for each idempotency key. The argument document is the
// response of the authenticator. If the request repeats an earlier one, the result has no
// recovery codes. AddPasskey returns ErrValidation, ErrPasskeysUnavailable,
// ErrTooManyPasskeys, ErrPasskeyTaken, and the errors of idempotency keys.
func (s *Service) AddPasskey(ctx context.Context, c access.Caller, key idempotency.Key, name string, document []byte) (created idempotency.Created[NewPasskey], err error) {
	faults := checkPasskeyName(name)
	response, ok := passkey.ReadResponse(document)
	if !ok {
		faults = append(faults, refusedPasskey)
	}
	if err := faults.Err(); err != nil {
		return created, err
	}
	if s.passkeys == nil {
		return created, rolecall.ErrPasskeysUnavailable
	}
	made := rolecall.Passkey{ID: response.ID, Name: rolecall.TrimName(name), CreatedAt: s.now()}
	var codes []secret.RecoveryCode
	event := s.factorEvent(c, rolecall.EventFactorAdded, rolecall.FactorPasskey)
	// Without OnlyID, a repeated request gets ErrNotFound after the passkey was erased with its user, and the
	// user was restored without it.
	stored, err := access.Create(ctx, s.access, c, key, idempotency.Creation[passkeyValue]{
		Operation: "addPasskey", ID: rolecall.AnyID(c.User.ID), Value: passkeyValue{made}, Event: event,
		Insert: func(tx *store.Tx) error {
			own, err := s.ownFactors(tx, c) // this call comes first, so that a claimed idempotency key is reported before other errors
			if err != nil {
				return err
			}
			if err := s.insertPasskey(tx, c, &own, made, response); err != nil {
				return err
			}
			codes, err = s.factorAdded(tx, c, event, own.RecoveryCodes)
			return err
		},
	})
	if err != nil {
		return created, err
	}
	created.Value.Passkey, created.Replayed = stored.Value.Passkey, stored.Replayed
	created.Value.ID = response.ID // the id is not stored, but the repeated request contains it
	if !stored.Replayed {
		created.Value.RecoveryCodes = codes
	}
	return created, nil
}

func checkPasskeyName(name string) (faults rolecall.FieldErrors) {
	faults.Name("/name", name, 1, rolecall.PasskeyNameMax)
	return faults
}

var refusedPasskey = rolecall.FieldError{Pointer: "/passkey", Code: "refused", Detail: "must be the response of an authenticator to options that are less than five minutes old"}

// insertPasskey verifies the response and stores its passkey, with the name and the
// creation time of made. The argument own has the second factors of the caller.
func (s *Service) insertPasskey(tx *store.Tx, c access.Caller, own *rolecall.Factors, made rolecall.Passkey, response passkey.Response) error {
	if len(own.Passkeys) >= rolecall.PasskeysMax {
		return rolecall.ErrTooManyPasskeys
	}
	if !s.isChallenge(passkeyCreation, c, response.Challenge) {
		return rolecall.FieldErrors{refusedPasskey}.Err()
	}
	key, err := s.registeredPasskey(webauthnUser(c, own), response, response.Challenge)
	if errors.Is(err, rolecall.ErrWrongCode) {
		err = rolecall.FieldErrors{refusedPasskey}.Err()
	}
	if err == nil {
		key.Name, key.CreatedAt = made.Name, made.CreatedAt
		tx.InsertPasskey(key)
	}
	return err
}

// UpdatePasskey renames a passkey of the caller and returns the renamed passkey. If name
// is not set, UpdatePasskey changes nothing. It returns ErrValidation for an invalid
// name, and ErrNotFound if the caller has no passkey with this id.
func (s *Service) UpdatePasskey(ctx context.Context, c access.Caller, id []byte, name rolecall.Optional[string]) (key rolecall.Passkey, err error) {
	if name.Set {
		name.Value = rolecall.TrimName(name.Value)
		if err := checkPasskeyName(name.Value).Err(); err != nil {
			return key, err
		}
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if key, err = tx.PasskeyByID(id); err != nil {
			return nil, err
		}
		if key.UserID != c.User.ID {
			return nil, rolecall.ErrNotFound
		}
		if !name.Set || name.Value == key.Name {
			return nil, nil
		}
		before := passkeyValue{key}
		key.Name = name.Value
		if ok, err := tx.RenamePasskey(key); err != nil {
			return nil, err
		} else if !ok { // removed at the same time
			return nil, rolecall.ErrNotFound
		}
		event := s.factorEvent(c, rolecall.EventFactorRenamed, rolecall.FactorPasskey)
		event.Values, err = access.EventValues(before, passkeyValue{key})
		return event, err
	})
	return key, err
}

// isChallenge reports whether the method challenge has returned this token for the caller
// and the purpose, and the token has not expired.
func (s *Service) isChallenge(purpose string, c access.Caller, token secret.Token) bool {
	return s.keys.VerifyChallenge(purpose, token, s.now(), c.Tenant.ID.String(), c.User.ID.String())
}

// PasskeySignInOptions returns the options with which a user signs in with a passkey
// instead of a password: the member publicKey of the argument of navigator.credentials.get,
// as JSON. It stores nothing, and works in the same way for unknown tenants.
// PasskeySignInOptions can fail with ErrPasskeysUnavailable.
func (s *Service) PasskeySignInOptions(a access.Anonymous) ([]byte, error) {
	if s.passkeys == nil {
		return nil, rolecall.ErrPasskeysUnavailable
	}
	return s.passkeys.RequestOptions(s.keys.Challenge(passkeySignIn, s.now().Add(challengeLifetime), a.TenantName), nil)
}

// PasskeySignIn signs a user in with a passkey alone. The passkey replaces the password
// and the second factor, because the authenticator has verified the user, for example
// with a PIN. PasskeySignIn returns ErrPasskeyRefused if the passkey is not valid, or if the
// tenant allows this user only connections to identity providers. For a valid passkey, it can return ErrUserSuspended and ErrTenantSuspended.
func (s *Service) PasskeySignIn(ctx context.Context, a access.Anonymous, document []byte) (SignIn, error) {
	response, ok := passkey.ReadResponse(document)
	if !ok || !s.keys.VerifyChallenge(passkeySignIn, response.Challenge, s.now(), a.TenantName) {
		return SignIn{}, rolecall.ErrPasskeyRefused
	}
	var key rolecall.Passkey
	var user rolecall.User
	var hash string
	var allowed bool
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		if key, err = tx.PasskeyByID(response.ID); err != nil {
			return err
		}
		if user, err = tx.UserByID(key.UserID); err != nil {
			return err
		}
		if hash, err = tx.PasswordHash(user.ID); err != nil {
			return err
		}
		allowed, err = s.allowsPassword(tx, &a.Tenant, user.ID)
		return err
	})
	if ok, err := access.Found(err); err != nil {
		return SignIn{}, err
	} else if !ok || response.User != user.ID {
		return SignIn{}, rolecall.ErrPasskeyRefused
	}
	owner := &passkey.User{User: &user, Passkeys: []rolecall.Passkey{key}}
	old, used, err := s.assertedPasskey(owner, response, response.Challenge, rolecall.ErrPasskeyRefused, true)
	switch {
	case errors.Is(err, rolecall.ErrPasskeyRefused):
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, user.ID, reasonOf(err, rolecall.ErrPasskeyRefused), a.Source)
		return SignIn{}, err
	case err != nil:
		return SignIn{}, err
	case !allowed:
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, user.ID, rolecall.ErrPasswordsOff.Code, a.Source)
		return SignIn{}, rolecall.ErrPasskeyRefused
	case a.Tenant.Status == rolecall.TenantSuspended:
		return SignIn{}, rolecall.ErrTenantSuspended
	case user.Status != rolecall.UserActive:
		return SignIn{}, rolecall.ErrUserSuspended
	}
	isNewBrowser := s.currentDevice(&a, user.Email, hash) == nil
	return s.startSession(ctx, &a, entry{user: user.ID, password: hash, secondFactor: true, isNewBrowser: isNewBrowser, prepare: func(tx *store.Tx) (rolecall.User, error) {
		if err := admit(tx, user.ID); errors.Is(err, rolecall.ErrWrongCredentials) {
			return user, rolecall.ErrPasskeyRefused
		} else if err != nil {
			return user, err
		}
		fresh, err := s.consumeChallenge(tx, response.Challenge)
		if fresh && err == nil {
			fresh, err = tx.UsePasskey(old, used)
		}
		if err == nil && !fresh {
			err = rolecall.ErrPasskeyRefused
		}
		return user, err
	}})
}

// consumeChallenge stores the challenge as used, and reports whether it was unused
// before. The stored row has no user, so that deleting the tokens of a user does not
// delete the row and make the challenge usable again.
func (s *Service) consumeChallenge(tx *store.Tx, challenge secret.Token) (bool, error) {
	now := s.now()
	return tx.ConsumeOneTimeToken(rolecall.OneTimeToken{
		Purpose: rolecall.TokenPasskey, CreatedAt: now, ExpiresAt: now.Add(challengeLifetime),
	}, challenge.Hash())
}
