package node_test

import (
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// app is a user's authenticator app.
type app struct {
	f      *fixture
	secret secret.TOTP
}

// code returns the current code.
func (a *app) code() string { return a.secret.Code(a.f.clock.Now().Std().Unix() / 30) }

// next advances the clock to an unused code, and returns it.
func (a *app) next() string {
	a.f.clock.advance(30 * time.Second)
	return a.code()
}

// appOf returns an app with the secret.
func (f *fixture) appOf(s signin.TOTPSecret) *app {
	f.Helper()
	raw, err := base32.StdEncoding.DecodeString(s.Secret)
	f.ok(err)
	return &app{f, raw}
}

// enrol registers an authenticator app for the caller, and returns the app with the
// recovery codes.
func (f *fixture) enrol(c access.Caller) (*app, []secret.RecoveryCode) {
	f.Helper()
	begun, err := f.SignIn.BeginTOTP(f.Context(), c)
	f.ok(err)
	a := f.appOf(begun)
	codes, err := f.SignIn.ConfirmTOTP(f.Context(), c, a.code())
	f.ok(err)
	return a, codes
}

// protected creates a user with an authenticator app.
func (f *fixture) protected(name string) (rolecall.User, *app, []secret.RecoveryCode) {
	f.Helper()
	user := f.member(name)
	a, codes := f.enrol(f.call(f.signIn(name)))
	return user, a, codes
}

// challenge signs in with the correct password and returns the challenge of the second
// factor.
func (f *fixture) challenge(a access.Anonymous, name string, wanted error) signin.Challenge {
	f.Helper()
	in, err := f.SignIn.Login(f.Context(), a, address(name), password)
	f.is(errorOf(in, err), wanted)
	if in.Challenge == nil || in.Principal != nil || in.Token != "" {
		f.Fatalf("%+v is no challenge alone", in)
	}
	return *in.Challenge
}

// factorChallenge is challenge for a user with a second factor.
func (f *fixture) factorChallenge(name string) secret.Token {
	f.Helper()
	return secret.Token(f.challenge(f.attempt(), name, rolecall.ErrSecondFactorRequired).Token)
}

func (f *fixture) answer(challenge secret.Token, p signin.Proof) (signin.SignIn, error) {
	return f.SignIn.CompleteSignIn(f.Context(), f.attempt(), challenge, p)
}

func TestTheSecondFactorIsRequiredAfterTheCorrectPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, app, _ := f.protected("ada")
		f.is(errorOf(f.SignIn.Login(f.Context(), f.attempt(), address("ada"), "wrong "+password)), rolecall.ErrWrongCredentials)
		asked := f.challenge(f.attempt(), "ada", rolecall.ErrSecondFactorRequired)
		if want := []rolecall.FactorMethod{rolecall.FactorTOTP, rolecall.FactorRecoveryCode}; !slices.Equal(asked.Methods, want) || asked.PublicKey != nil {
			t.Errorf("asked for %q, %s", asked.Methods, asked.PublicKey)
		}
		challenge := secret.Token(asked.Token)
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: app.code()})), rolecall.ErrWrongCode) // the code that confirmed the secret
		code := app.next()
		in, err := f.answer(challenge, signin.Proof{Code: code})
		f.ok(err)
		if p := in.Principal; p.User.ID != user.ID || !p.Session.SecondFactor || in.Device == "" || in.RecoveryCodes != nil {
			t.Errorf("signed in as %+v", in)
		}
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: app.next()})), rolecall.ErrChallengeInvalid)
		f.is(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{Code: code})), rolecall.ErrWrongCode)
	})
}

func TestFiftyAnswersToOneChallenge(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, app, _ := f.protected("ada")
		code, challenge := app.next(), f.factorChallenge("ada")
		results := f.inParallel(50, func(int) error { return errorOf(f.answer(challenge, signin.Proof{Code: code})) })
		if n := results[nil]; n != 1 || results[rolecall.ErrTooManyAttempts] != 0 {
			t.Errorf("one right code signed in %d times: %v", n, results)
		}
		challenge = f.factorChallenge("ada")
		results = f.inParallel(50, func(int) error { return errorOf(f.answer(challenge, signin.Proof{Code: "000000"})) })
		if results[rolecall.ErrWrongCode] != 5 || results[rolecall.ErrChallengeInvalid] != 45 {
			t.Errorf("fifty wrong codes: %v", results)
		}
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: app.next()})), rolecall.ErrChallengeInvalid)
	})
}

func TestAFullChallengeIsInvalidEvenWhenCachesAreCleared(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.protected("ada")
		challenge := f.factorChallenge("ada")
		f.db.committed = func() { f.Access.Invalidation.Invalidate(rolecall.AnyID{}) }
		for range 5 {
			f.is(errorOf(f.answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		}
		for range 2 {
			f.is(errorOf(f.answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrChallengeInvalid)
		}
	})
}

func TestACodeIsAcceptedOnceForAllChallenges(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1000, Account: 1000, Source: 1000}, func(f *fixture) {
		user, app, codes := f.protected("ada")
		for name, proof := range map[string]signin.Proof{"a code": {Code: app.next()}, "a recovery code": {RecoveryCode: string(codes[3])}} {
			challenges := make([]secret.Token, 50)
			for i := range challenges {
				challenges[i] = f.factorChallenge("ada")
			}
			results := f.inParallel(len(challenges), func(i int) error { return errorOf(f.answer(challenges[i], proof)) })
			if results[nil] != 1 || results[rolecall.ErrWrongCode] != 49 {
				t.Errorf("%s for fifty challenges: %v", name, results)
			}
		}
		if types := f.eventTypes(user.ID); !slices.Contains(types, rolecall.EventRecoveryUsed) {
			t.Errorf("the events are %q", types)
		}
	})
}

func TestOneChallengeStartsOneSession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, codes := f.protected("ada")
		challenge := f.factorChallenge("ada")
		results := f.inParallel(5, func(i int) error {
			return errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[i])}))
		})
		if results[nil] != 1 || results[rolecall.ErrChallengeInvalid] != 4 {
			t.Errorf("five right answers: %v", results)
		}
	})
}

func TestRecoveryCodes(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, codes := f.protected("ada")
		if len(codes) != secret.RecoveryCodes {
			t.Fatalf("%d recovery codes", len(codes))
		}
		in, err := f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})
		f.ok(err)
		challenge := f.factorChallenge("ada")
		f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})), rolecall.ErrWrongCode)
		f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: "0000-0000-0000-0000"})), rolecall.ErrWrongCode)
		c := f.call(in)
		made, err := f.SignIn.MakeRecoveryCodes(f.Context(), c)
		f.ok(err)
		f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[1])})), rolecall.ErrWrongCode)
		f.ok(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(made[1])})))
		own, err := f.SignIn.Factors(f.Context(), c)
		f.ok(err)
		if own.RecoveryCodes != 9 || own.Demanded {
			t.Errorf("%+v", own)
		}
		f.member("grace")
		f.is(errorOf(f.SignIn.MakeRecoveryCodes(f.Context(), f.call(f.signIn("grace")))), rolecall.ErrNoSecondFactor)
	})
}

func TestAnAppWorksAfterAKeyRotation(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		old, current := secret.NewKey(), secret.NewKey()
		serve := func(current []byte, previous ...[]byte) {
			f.keys = secret.NewKeys(current, previous...)
			f.Node = f.node()
		}
		serve(old)
		_, uses, _ := f.protected("uses")
		_, waits, codes := f.protected("waits")
		serve(current, old)
		f.ok(errorOf(f.answer(f.factorChallenge("uses"), signin.Proof{Code: uses.next()})))
		serve(current)
		f.ok(errorOf(f.answer(f.factorChallenge("uses"), signin.Proof{Code: uses.next()})))

		asked := f.challenge(f.attempt(), "waits", rolecall.ErrSecondFactorRequired)
		if !slices.Equal(asked.Methods, []rolecall.FactorMethod{rolecall.FactorRecoveryCode}) {
			t.Errorf("asked for %q of somebody whose app nobody can check", asked.Methods)
		}
		challenge := secret.Token(asked.Token)
		_, err := f.answer(challenge, signin.Proof{Code: waits.next()})
		f.is(err, rolecall.ErrWrongCode)
		if e, _ := errors.AsType[*rolecall.Error](err); e == nil || !strings.Contains(e.Detail, "a recovery code or a passkey") {
			t.Errorf("a code that nobody can verify: %+v", err)
		}
		in, err := f.answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})
		f.ok(err)
		again, _ := f.enrol(f.call(in))
		f.ok(errorOf(f.answer(f.factorChallenge("waits"), signin.Proof{Code: again.next()})))
	})
}

func TestChallengesAreInvalidated(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*fixture, rolecall.User, secret.RecoveryCode)
		want    error
	}{
		"nothing": {func(*fixture, rolecall.User, secret.RecoveryCode) {}, nil},
		"nearly five minutes": {func(f *fixture, _ rolecall.User, _ secret.RecoveryCode) {
			f.clock.advance(5*time.Minute - time.Microsecond)
		}, nil},
		"five minutes": {func(f *fixture, _ rolecall.User, _ secret.RecoveryCode) { f.clock.advance(5 * time.Minute) }, rolecall.ErrChallengeInvalid},
		"a password set by operators": {func(f *fixture, _ rolecall.User, _ secret.RecoveryCode) {
			f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), "another "+password))
		}, rolecall.ErrChallengeInvalid},
		"a password that was changed": {func(f *fixture, _ rolecall.User, code secret.RecoveryCode) {
			in, err := f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: string(code)})
			f.ok(err)
			f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), f.call(in), password, "another "+password)))
		}, rolecall.ErrChallengeInvalid},
		"a suspension": {func(f *fixture, u rolecall.User, _ secret.RecoveryCode) {
			f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, u.ID, "")))
		}, rolecall.ErrUserSuspended},
		"a deletion": {func(f *fixture, u rolecall.User, _ secret.RecoveryCode) {
			f.ok(f.Directory.DeleteUser(f.Context(), f.owner, u.ID, nil))
		}, rolecall.ErrChallengeInvalid},
		"a reset": {func(f *fixture, u rolecall.User, _ secret.RecoveryCode) {
			f.ok(f.SignIn.ResetFactors(f.Context(), f.owner, u.ID))
		}, rolecall.ErrChallengeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				user, _, codes := f.protected("ada")
				challenge := f.factorChallenge("ada")
				test.happens(f, user, codes[0])
				f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[1])})), test.want)
			})
		})
	}
}

func TestAPasswordChangeDuringSignInPreventsTheSession(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1000, Account: 1000, Source: 1000}, func(f *fixture) {
		_, _, codes := f.protected("ada")
		for _, code := range codes {
			challenge := f.factorChallenge("ada")
			var in signin.SignIn
			f.inParallel(2, func(i int) (err error) {
				if i == 0 {
					return f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), password)
				}
				in, err = f.answer(challenge, signin.Proof{RecoveryCode: string(code)})
				return err
			})
			if in.Principal != nil {
				f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
			}
			f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(code)})), rolecall.ErrChallengeInvalid)
		}
	})
}

func TestFactorsOfAnotherTenantAreRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, codes := f.protected("ada")
		challenge, home := f.factorChallenge("ada"), f.tenant
		f.tenant = f.newTenant("other")
		f.owner = f.call(f.signIn("owner"))
		_, app, _ := f.protected("ada")
		f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})), rolecall.ErrChallengeInvalid)
		f.is(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})), rolecall.ErrWrongCode)
		f.tenant = home
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: app.next()})), rolecall.ErrWrongCode)
		nobody := access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}
		f.is(errorOf(f.SignIn.CompleteSignIn(f.Context(), nobody, challenge, signin.Proof{Code: app.code()})), rolecall.ErrChallengeInvalid)
		f.ok(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})))
	})
}

func TestTenWrongCodesPerAccountAndHourAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, app, codes := f.protected("ada")
		in, err := f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})
		f.ok(err)
		known := f.attempt()
		known.Devices = []string{in.Device}
		var challenge secret.Token
		for i := range 10 {
			if i%5 == 0 {
				challenge = f.factorChallenge("ada")
			}
			elsewhere := f.attempt()
			elsewhere.Source = "198.51.100." + string(rune('0'+i))
			f.is(errorOf(f.SignIn.CompleteSignIn(f.Context(), elsewhere, challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		}
		challenge = f.factorChallenge("ada")
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: app.next()})), rolecall.ErrTooManyAttempts)
		f.ok(errorOf(f.SignIn.CompleteSignIn(f.Context(), known, challenge, signin.Proof{Code: app.code()})))
		f.clock.advance(time.Hour)
		f.ok(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{Code: app.next()})))
	})
}

// TestEveryWayToAChallengeHasTheSameLimit guesses codes between new passwords and other
// actions that make a browser a known device.
func TestEveryWayToAChallengeHasTheSameLimit(t *testing.T) {
	for what, next := range map[string]func(f *fixture, id rolecall.UserID, c access.Caller, round int) (device, password string){
		"links for a new password": func(f *fixture, id rolecall.UserID, _ access.Caller, round int) (string, string) {
			f.clock.advance(time.Minute)
			chosen := fmt.Sprintf("%s %d", anotherPassword, round)
			f.ok(errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), id)))
			f.ok(f.reset(f.lastToken(rolecall.MailPasswordReset, "ada"), chosen))
			return "", chosen
		},
		"changes of the password": func(f *fixture, _ rolecall.UserID, c access.Caller, round int) (string, string) {
			was, chosen := fmt.Sprintf("%s %d", anotherPassword, round-1), fmt.Sprintf("%s %d", anotherPassword, round)
			if round == 0 {
				was = password
			}
			device, err := f.SignIn.ChangePassword(f.Context(), c, was, chosen)
			f.ok(err)
			return device, chosen
		},
	} {
		t.Run(what, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				ada, _, codes := f.protected("ada")
				in, err := f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})
				f.ok(err)
				evaluated := 0
				for round := range 4 {
					device, chosen := next(f, ada.ID, f.call(in), round)
					a := f.attempt()
					a.Devices = []string{device}
					asked, err := f.SignIn.Login(f.Context(), a, address("ada"), chosen)
					f.is(errorOf(asked, err), rolecall.ErrSecondFactorRequired)
					for range 5 {
						_, err := f.SignIn.CompleteSignIn(f.Context(), a, secret.Token(asked.Challenge.Token), signin.Proof{Code: "000000"})
						if errors.Is(err, rolecall.ErrWrongCode) {
							evaluated++
						} else {
							f.is(err, rolecall.ErrTooManyAttempts)
						}
					}
				}
				if evaluated != 10 {
					t.Errorf("%d codes were evaluated", evaluated)
				}
			})
		})
	}
}

func TestManyChallengesShareTheLimitOfCodes(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Account: 1000, Source: 1000}, func(f *fixture) {
		f.protected("ada")
		from := func(i int) access.Anonymous {
			a := f.attempt()
			a.Source = fmt.Sprintf("198.51.100.%d", i)
			return a
		}
		challenges := make([]secret.Token, 25)
		for i := range challenges {
			challenges[i] = secret.Token(f.challenge(from(i), "ada", rolecall.ErrSecondFactorRequired).Token)
		}
		results := f.inParallel(100, func(i int) error {
			return errorOf(f.SignIn.CompleteSignIn(f.Context(), from(i), challenges[i%len(challenges)], signin.Proof{Code: "000000"}))
		})
		if results[rolecall.ErrWrongCode] != 10 || results[rolecall.ErrTooManyAttempts] != 90 {
			t.Errorf("a hundred guesses at once: %v", results)
		}
	})
}

func TestACorrectPasswordAloneDoesNotResetTheCount(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, app, _ := f.protected("ada")
		for range 9 {
			f.factorChallenge("ada")
		}
		f.ok(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{Code: app.next()})))
		for range 10 {
			f.factorChallenge("ada")
		}
		f.is(errorOf(f.SignIn.Login(f.Context(), f.attempt(), address("ada"), password)), rolecall.ErrTooManyAttempts)
	})
}

func TestAnInvitationDoesNotBypassTheSecondFactor(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, app, _ := f.protected("ada")
		asked, err := f.accept(f.invite(user.ID), "another "+password)
		f.is(errorOf(asked, err), rolecall.ErrSecondFactorRequired)
		f.ok(errorOf(f.answer(secret.Token(asked.Challenge.Token), signin.Proof{Code: app.next()})))
		f.is(errorOf(f.SignIn.Login(f.Context(), f.attempt(), address("ada"), password)), rolecall.ErrWrongCredentials)
		f.is(errorOf(f.SignIn.Login(f.Context(), f.attempt(), address("ada"), "another "+password)), rolecall.ErrSecondFactorRequired)
	})
}

func TestARequiredFactorIsEnrolledAtSignIn(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		before := f.signIn("ada")
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		f.is(errorOf(f.authenticate(f.Node, before.Token)), rolecall.ErrUnauthenticated)
		f.is(errorOf(f.SignIn.Refresh(f.Context(), f.attempt(before.Token))), rolecall.ErrUnauthenticated)

		asked := f.challenge(f.attempt(), "ada", rolecall.ErrEnrolmentRequired)
		challenge := secret.Token(asked.Token)
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		e, err := f.SignIn.BeginEnrolment(f.Context(), f.attempt(), challenge)
		f.ok(err)
		app := f.appOf(e.TOTPSecret)
		f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: "0000-0000-0000-0000"})), rolecall.ErrWrongCode)
		in, err := f.answer(challenge, signin.Proof{Code: app.code()})
		f.ok(err)
		if len(in.RecoveryCodes) != secret.RecoveryCodes || !in.Principal.Session.SecondFactor {
			t.Errorf("enrolled with %+v", in)
		}
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.is(errorOf(f.SignIn.BeginEnrolment(f.Context(), f.attempt(), challenge)), rolecall.ErrChallengeInvalid)

		other := f.factorChallenge("ada")
		f.is(errorOf(f.SignIn.BeginEnrolment(f.Context(), f.attempt(), other)), rolecall.ErrChallengeInvalid)
		f.is(f.SignIn.RemoveTOTP(f.Context(), f.call(in)), rolecall.ErrFactorDemanded)
		f.is(f.SignIn.ResetFactors(f.Context(), f.call(in), in.Principal.User.ID), rolecall.ErrPermissionDenied)

		passkeys := f.challenge(f.attempt(), "owner", rolecall.ErrEnrolmentRequired)
		e, err = f.SignIn.BeginEnrolment(f.Context(), f.attempt(), secret.Token(passkeys.Token))
		f.ok(err)
		phone := passkeytest.New(origin)
		in, err = f.answer(secret.Token(passkeys.Token), signin.Proof{Passkey: phone.Create(t, e.PublicKey)})
		f.ok(err)
		if len(in.RecoveryCodes) != secret.RecoveryCodes {
			t.Errorf("enrolled with %+v", in)
		}
		f.is(f.SignIn.ResetFactors(f.Context(), f.call(in), in.Principal.User.ID), rolecall.ErrFactorDemanded)
	})
}

func TestOneOfTwoConcurrentEnrolmentsSucceeds(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		answers := make([]func() error, 5)
		for i := range answers {
			challenge := secret.Token(f.challenge(f.attempt(), "ada", rolecall.ErrEnrolmentRequired).Token)
			e, err := f.SignIn.BeginEnrolment(f.Context(), f.attempt(), challenge)
			f.ok(err)
			key := passkeytest.New(origin).Create(t, e.PublicKey)
			answers[i] = func() error { return errorOf(f.answer(challenge, signin.Proof{Passkey: key})) }
		}
		results := f.inParallel(len(answers), func(i int) error { return answers[i]() })
		if results[nil] != 1 || results[rolecall.ErrChallengeInvalid] != len(answers)-1 {
			t.Errorf("%v", results)
		}
	})
}

func TestARoleCanRequireAFactorOfItsHolders(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		f.member("grace")
		role := f.role("Support", "users:read")
		f.assign(ada.ID, role.ID, rolecall.AssignmentDraft{ExpiresAt: new(start.Add(24 * time.Hour))})
		in, other := f.signIn("ada"), f.signIn("grace")
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role.ID}}})
		f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		f.ok(errorOf(f.authenticate(f.Node, other.Token)))
		f.challenge(f.attempt(), "ada", rolecall.ErrEnrolmentRequired)
		f.assign(f.signIn("grace").Principal.User.ID, role.ID, rolecall.AssignmentDraft{})
		f.is(errorOf(f.authenticate(f.Node, other.Token)), rolecall.ErrUnauthenticated)
		f.clock.advance(24 * time.Hour)
		f.signIn("ada")
	})
}

func TestTheLastRequiredFactorCannotBeRemoved(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, app, _ := f.protected("ada")
		in, err := f.answer(f.factorChallenge("ada"), signin.Proof{Code: app.next()})
		f.ok(err)
		c := f.call(in)
		key := f.passkey(c, passkeytest.New(origin))
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		demanded := *c.Principal
		demanded.Tenant = f.tenant
		c.Principal = &demanded
		removals := []func() error{
			func() error { return f.SignIn.RemoveTOTP(f.Context(), c) },
			func() error { return f.SignIn.RemovePasskey(f.Context(), c, key.ID) },
		}
		results := f.inParallel(2, func(i int) error { return removals[i]() })
		if results[nil] != 1 || results[rolecall.ErrFactorDemanded] != 1 {
			t.Errorf("two removals in parallel: %v", results)
		}
	})
}

func TestLifetimesFollowTheRolesOfAUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.role("Board", "users:read")
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role.ID}}})
		ada, app, _ := f.protected("ada")
		f.protected("grace")
		plain := f.signIn("owner")
		owner := f.call(plain)
		signIn := func() signin.SignIn {
			in, err := f.answer(f.factorChallenge("ada"), signin.Proof{Code: app.next()})
			f.ok(err)
			return in
		}
		lives := func(in signin.SignIn) (idle, absolute time.Duration) {
			p, err := f.authenticate(f.Node, in.Token)
			f.ok(err)
			session, settings := p.Session, p.Settings()
			return session.IdleExpiresAt(settings).Sub(session.LastUsedAt), session.EndsAt(settings).Sub(session.AuthenticatedAt)
		}
		old := signIn()
		if idle, absolute := lives(old); idle != 12*time.Hour || absolute != 7*aDay {
			t.Errorf("without the role a session lives for %v and %v", idle, absolute)
		}
		f.assign(ada.ID, role.ID, rolecall.AssignmentDraft{})
		for _, in := range []signin.SignIn{old, signIn()} {
			if idle, absolute := lives(in); idle != time.Hour || absolute != aDay {
				t.Errorf("with the role a session lives for %v and %v", idle, absolute)
			}
		}
		if idle, absolute := lives(plain); idle != 12*time.Hour || absolute != 7*aDay {
			t.Errorf("the session of another user lives for %v and %v", idle, absolute)
		}
		page, err := f.SignIn.UserSessions(f.Context(), owner, ada.ID, nil, 10)
		if f.ok(err); len(page.Items) != 3 || page.Items[1].ExpiresAt != page.Items[1].AuthenticatedAt.Add(aDay) {
			t.Errorf("listed are %+v", page.Items)
		}
		f.clock.advance(time.Hour)
		for _, node := range []*node.Node{f.Node, f.node()} {
			f.is(errorOf(f.authenticate(node, old.Token)), rolecall.ErrUnauthenticated)
		}
		page, err = f.SignIn.UserSessions(f.Context(), owner, ada.ID, nil, 10)
		if f.ok(err); len(page.Items) != 0 {
			t.Errorf("listed are %+v", page.Items)
		}
		f.is(f.SignIn.EndUserSession(f.Context(), owner, ada.ID, old.Principal.Session.ID), rolecall.ErrNotFound)
		f.ok(errorOf(f.authenticate(f.Node, plain.Token)))

		in := signIn()
		for range 24 {
			f.ok(errorOf(f.authenticate(f.Node, in.Token)))
			f.clock.advance(time.Hour - time.Second)
		}
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.clock.advance(24 * time.Second)
		f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)

		in = signIn()
		f.ok(f.Directory.UnassignRole(f.Context(), owner, rolecall.HolderOf(ada.ID), role.ID))
		if idle, absolute := lives(in); idle != 12*time.Hour || absolute != aDay {
			t.Errorf("after the role was taken a session lives for %v and %v", idle, absolute)
		}
		f.settings(rolecall.TenantSettings{SessionIdle: new(int64(7200)), SessionAbsolute: new(int64(36000)), SecondFactor: f.tenant.Settings.SecondFactor})
		f.assign(ada.ID, role.ID, rolecall.AssignmentDraft{})
		if idle, absolute := lives(signIn()); idle != 2*time.Hour || absolute != 10*time.Hour {
			t.Errorf("with lifetimes that the tenant sets a session lives for %v and %v", idle, absolute)
		}
	})
}
