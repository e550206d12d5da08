package signin_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

func TestOlderRecoveryCodesWorkUntilTheyAreUsed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, _, codes := f.Protected("ada")
		if len(codes[0]) != len("0123-4567-89ab-cdef-ghjk-mnpq-r8") {
			t.Errorf("a new code is %s", codes[0])
		}
		const older = secret.RecoveryCode("0123-4567-89ab-cdef")
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.ReplaceRecoveryCodes(ada.ID, [][]byte{older.Hash()})
			return nil
		}))
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: "OI23 4567 89AB CDEF"})))
		f.Is(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: string(older)})), rolecall.ErrWrongCode)
	})
}

func TestTheSecondFactorIsRequiredAfterTheCorrectPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, app, _ := f.Protected("ada")
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("ada"), "wrong "+nodetest.Password)), rolecall.ErrWrongCredentials)
		asked := f.Challenge(f.Attempt(), "ada", rolecall.ErrSecondFactorRequired)
		if want := []rolecall.FactorMethod{rolecall.FactorTOTP, rolecall.FactorRecoveryCode}; !slices.Equal(asked.Methods, want) || asked.PublicKey != nil {
			t.Errorf("asked for %q, %s", asked.Methods, asked.PublicKey)
		}
		challenge := secret.Token(asked.Token)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Code()})), rolecall.ErrWrongCode) // the code that confirmed the secret
		code := app.Next()
		in, err := f.Answer(challenge, signin.Proof{Code: code})
		f.OK(err)
		if p := in.Principal; p.User.ID != user.ID || !p.Session.SecondFactor || in.Device == "" || in.RecoveryCodes != nil {
			t.Errorf("signed in as %+v", in)
		}
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Next()})), rolecall.ErrChallengeInvalid)
		f.Is(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: code})), rolecall.ErrWrongCode)
	})
}

func TestFiftyAnswersToOneChallenge(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, app, _ := f.Protected("ada")
		code, challenge := app.Next(), f.FactorChallenge("ada")
		results := f.InParallel(50, func(int) error { return nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: code})) })
		if n := results[nil]; n != 1 || results[rolecall.ErrTooManyAttempts] != 0 {
			t.Errorf("one right code signed in %d times: %v", n, results)
		}
		challenge = f.FactorChallenge("ada")
		results = f.InParallel(50, func(int) error { return nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: "000000"})) })
		if results[rolecall.ErrWrongCode] != 5 || results[rolecall.ErrChallengeInvalid] != 45 {
			t.Errorf("fifty wrong codes: %v", results)
		}
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Next()})), rolecall.ErrChallengeInvalid)
	})
}

func TestAFullChallengeIsInvalidEvenWhenCachesAreCleared(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.Protected("ada")
		challenge := f.FactorChallenge("ada")
		f.DB.Committed = func() { f.Access.Invalidation.Invalidate(rolecall.AnyID{}) }
		for range 5 {
			f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		}
		for range 2 {
			f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrChallengeInvalid)
		}
	})
}

func TestACodeIsAcceptedOnceForAllChallenges(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1000, Account: 1000, Source: 1000}, func(f *nodetest.Fixture) {
		user, app, codes := f.Protected("ada")
		for name, proof := range map[string]signin.Proof{"a code": {Code: app.Next()}, "a recovery code": {RecoveryCode: string(codes[3])}} {
			challenges := make([]secret.Token, 50)
			for i := range challenges {
				challenges[i] = f.FactorChallenge("ada")
			}
			results := f.InParallel(len(challenges), func(i int) error { return nodetest.ErrorOf(f.Answer(challenges[i], proof)) })
			if results[nil] != 1 || results[rolecall.ErrWrongCode] != 49 {
				t.Errorf("%s for fifty challenges: %v", name, results)
			}
		}
		if types := f.EventTypes(user.ID); !slices.Contains(types, rolecall.EventRecoveryUsed) {
			t.Errorf("the events are %q", types)
		}
	})
}

func TestOneChallengeStartsOneSession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, codes := f.Protected("ada")
		challenge := f.FactorChallenge("ada")
		results := f.InParallel(5, func(i int) error {
			return nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[i])}))
		})
		if results[nil] != 1 || results[rolecall.ErrChallengeInvalid] != 4 {
			t.Errorf("five right answers: %v", results)
		}
	})
}

func TestRecoveryCodes(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, codes := f.Protected("ada")
		if len(codes) != secret.RecoveryCodes {
			t.Fatalf("%d recovery codes", len(codes))
		}
		in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})
		f.OK(err)
		challenge := f.FactorChallenge("ada")
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})), rolecall.ErrWrongCode)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: "0000-0000-0000-0000"})), rolecall.ErrWrongCode)
		c := f.CallerOf(in)
		made, err := f.SignIn.MakeRecoveryCodes(f.Context(), c)
		f.OK(err)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[1])})), rolecall.ErrWrongCode)
		f.OK(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(made[1])})))
		own, err := f.SignIn.Factors(f.Context(), c)
		f.OK(err)
		if own.RecoveryCodes != 9 || own.Demanded {
			t.Errorf("%+v", own)
		}
		f.NewMember("grace")
		f.Is(nodetest.ErrorOf(f.SignIn.MakeRecoveryCodes(f.Context(), f.CallerOf(f.LogIn("grace")))), rolecall.ErrNoSecondFactor)
	})
}

func TestAnAppWorksAfterAKeyRotation(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		old, current := secret.NewKey(), secret.NewKey()
		serve := func(current []byte, previous ...[]byte) {
			f.Keys = secret.NewKeys(current, previous...)
			f.Node = f.NewNode()
		}
		serve(old)
		_, uses, _ := f.Protected("uses")
		_, waits, codes := f.Protected("waits")
		serve(current, old)
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("uses"), signin.Proof{Code: uses.Next()})))
		serve(current)
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("uses"), signin.Proof{Code: uses.Next()})))

		asked := f.Challenge(f.Attempt(), "waits", rolecall.ErrSecondFactorRequired)
		if !slices.Equal(asked.Methods, []rolecall.FactorMethod{rolecall.FactorRecoveryCode}) {
			t.Errorf("asked for %q of somebody whose app nobody can check", asked.Methods)
		}
		challenge := secret.Token(asked.Token)
		_, err := f.Answer(challenge, signin.Proof{Code: waits.Next()})
		f.Is(err, rolecall.ErrWrongCode)
		if e, _ := errors.AsType[*rolecall.Error](err); e == nil || !strings.Contains(e.Detail, "a recovery code or a passkey") {
			t.Errorf("a code that nobody can verify: %+v", err)
		}
		in, err := f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})
		f.OK(err)
		again, _ := f.Enrol(f.CallerOf(in))
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("waits"), signin.Proof{Code: again.Next()})))
	})
}

func TestChallengesAreInvalidated(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*nodetest.Fixture, rolecall.User, secret.RecoveryCode)
		want    error
	}{
		"nothing": {func(*nodetest.Fixture, rolecall.User, secret.RecoveryCode) {}, nil},
		"nearly five minutes": {func(f *nodetest.Fixture, _ rolecall.User, _ secret.RecoveryCode) {
			f.Clock.Advance(5*time.Minute - time.Microsecond)
		}, nil},
		"five minutes": {func(f *nodetest.Fixture, _ rolecall.User, _ secret.RecoveryCode) { f.Clock.Advance(5 * time.Minute) }, rolecall.ErrChallengeInvalid},
		"a password set by operators": {func(f *nodetest.Fixture, _ rolecall.User, _ secret.RecoveryCode) {
			f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), "another "+nodetest.Password))
		}, rolecall.ErrChallengeInvalid},
		"a password that was changed": {func(f *nodetest.Fixture, _ rolecall.User, code secret.RecoveryCode) {
			in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: string(code)})
			f.OK(err)
			f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.CallerOf(in), nodetest.Password, "another "+nodetest.Password)))
		}, rolecall.ErrChallengeInvalid},
		"a suspension": {func(f *nodetest.Fixture, u rolecall.User, _ secret.RecoveryCode) {
			f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, u.ID, "")))
		}, rolecall.ErrUserSuspended},
		"a deletion": {func(f *nodetest.Fixture, u rolecall.User, _ secret.RecoveryCode) {
			f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, u.ID, nil))
		}, rolecall.ErrChallengeInvalid},
		"a reset": {func(f *nodetest.Fixture, u rolecall.User, _ secret.RecoveryCode) {
			f.OK(f.SignIn.ResetFactors(f.Context(), f.Owner, u.ID))
		}, rolecall.ErrChallengeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				user, _, codes := f.Protected("ada")
				challenge := f.FactorChallenge("ada")
				test.happens(f, user, codes[0])
				f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[1])})), test.want)
			})
		})
	}
}

func TestAPasswordChangeDuringSignInPreventsTheSession(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1000, Account: 1000, Source: 1000}, func(f *nodetest.Fixture) {
		_, _, codes := f.Protected("ada")
		for _, code := range codes {
			challenge := f.FactorChallenge("ada")
			var in signin.SignIn
			f.InParallel(2, func(i int) (err error) {
				if i == 0 {
					return f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.Password)
				}
				in, err = f.Answer(challenge, signin.Proof{RecoveryCode: string(code)})
				return err
			})
			if in.Principal != nil {
				f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
			}
			f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(code)})), rolecall.ErrChallengeInvalid)
		}
	})
}

func TestFactorsOfAnotherTenantAreRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, codes := f.Protected("ada")
		challenge, home := f.FactorChallenge("ada"), f.Tenant
		f.Tenant = f.NewTenant("other")
		f.Owner = f.CallerOf(f.LogIn("owner"))
		_, app, _ := f.Protected("ada")
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})), rolecall.ErrChallengeInvalid)
		f.Is(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})), rolecall.ErrWrongCode)
		f.Tenant = home
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Next()})), rolecall.ErrWrongCode)
		nobody := access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}
		f.Is(nodetest.ErrorOf(f.SignIn.CompleteSignIn(f.Context(), nobody, challenge, signin.Proof{Code: app.Code()})), rolecall.ErrChallengeInvalid)
		f.OK(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})))
	})
}

func TestTenWrongCodesPerAccountAndHourAreAllowed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, app, codes := f.Protected("ada")
		in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})
		f.OK(err)
		known := f.Attempt()
		known.Devices = []string{in.Device}
		var challenge secret.Token
		for i := range 10 {
			if i%5 == 0 {
				challenge = f.FactorChallenge("ada")
			}
			elsewhere := f.Attempt()
			elsewhere.Source = "198.51.100." + string(rune('0'+i))
			f.Is(nodetest.ErrorOf(f.SignIn.CompleteSignIn(f.Context(), elsewhere, challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		}
		challenge = f.FactorChallenge("ada")
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Next()})), rolecall.ErrTooManyAttempts)
		f.OK(nodetest.ErrorOf(f.SignIn.CompleteSignIn(f.Context(), known, challenge, signin.Proof{Code: app.Code()})))
		f.Clock.Advance(time.Hour)
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: app.Next()})))
	})
}

// TestEveryWayToAChallengeHasTheSameLimit guesses codes between new passwords and other
// actions that make a browser a known device.
func TestEveryWayToAChallengeHasTheSameLimit(t *testing.T) {
	for what, next := range map[string]func(f *nodetest.Fixture, id rolecall.UserID, c access.Caller, round int) (device, password string){
		"links for a new password": func(f *nodetest.Fixture, id rolecall.UserID, _ access.Caller, round int) (string, string) {
			f.Clock.Advance(time.Minute)
			chosen := fmt.Sprintf("%s %d", nodetest.AnotherPassword, round)
			f.OK(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), id)))
			f.OK(f.ResetPassword(f.LastToken(rolecall.MailPasswordReset, "ada"), chosen))
			return "", chosen
		},
		"changes of the password": func(f *nodetest.Fixture, _ rolecall.UserID, c access.Caller, round int) (string, string) {
			was, chosen := fmt.Sprintf("%s %d", nodetest.AnotherPassword, round-1), fmt.Sprintf("%s %d", nodetest.AnotherPassword, round)
			if round == 0 {
				was = nodetest.Password
			}
			device, err := f.SignIn.ChangePassword(f.Context(), c, was, chosen)
			f.OK(err)
			return device, chosen
		},
	} {
		t.Run(what, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				ada, _, codes := f.Protected("ada")
				in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{RecoveryCode: string(codes[0])})
				f.OK(err)
				evaluated := 0
				for round := range 4 {
					device, chosen := next(f, ada.ID, f.CallerOf(in), round)
					a := f.Attempt()
					a.Devices = []string{device}
					asked, err := f.SignIn.Login(f.Context(), a, nodetest.Address("ada"), chosen)
					f.Is(nodetest.ErrorOf(asked, err), rolecall.ErrSecondFactorRequired)
					for range 5 {
						_, err := f.SignIn.CompleteSignIn(f.Context(), a, secret.Token(asked.Challenge.Token), signin.Proof{Code: "000000"})
						if errors.Is(err, rolecall.ErrWrongCode) {
							evaluated++
						} else {
							f.Is(err, rolecall.ErrTooManyAttempts)
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
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Account: 1000, Source: 1000}, func(f *nodetest.Fixture) {
		f.Protected("ada")
		from := func(i int) access.Anonymous {
			a := f.Attempt()
			a.Source = fmt.Sprintf("198.51.100.%d", i)
			return a
		}
		challenges := make([]secret.Token, 25)
		for i := range challenges {
			challenges[i] = secret.Token(f.Challenge(from(i), "ada", rolecall.ErrSecondFactorRequired).Token)
		}
		results := f.InParallel(100, func(i int) error {
			return nodetest.ErrorOf(f.SignIn.CompleteSignIn(f.Context(), from(i), challenges[i%len(challenges)], signin.Proof{Code: "000000"}))
		})
		if results[rolecall.ErrWrongCode] != 10 || results[rolecall.ErrTooManyAttempts] != 90 {
			t.Errorf("a hundred guesses at once: %v", results)
		}
	})
}

func TestACorrectPasswordAloneDoesNotResetTheCount(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, app, _ := f.Protected("ada")
		for range 9 {
			f.FactorChallenge("ada")
		}
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: app.Next()})))
		for range 10 {
			f.FactorChallenge("ada")
		}
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("ada"), nodetest.Password)), rolecall.ErrTooManyAttempts)
	})
}

func TestAnInvitationDoesNotBypassTheSecondFactor(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, app, _ := f.Protected("ada")
		asked, err := f.AcceptInvitation(f.Invite(user.ID), "another "+nodetest.Password)
		f.Is(nodetest.ErrorOf(asked, err), rolecall.ErrSecondFactorRequired)
		f.OK(nodetest.ErrorOf(f.Answer(secret.Token(asked.Challenge.Token), signin.Proof{Code: app.Next()})))
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("ada"), nodetest.Password)), rolecall.ErrWrongCredentials)
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("ada"), "another "+nodetest.Password)), rolecall.ErrSecondFactorRequired)
	})
}

func TestARequiredFactorIsEnrolledAtSignIn(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		before := f.LogIn("ada")
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, before.Token)), rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.SignIn.Refresh(f.Context(), f.Attempt(before.Token))), rolecall.ErrUnauthenticated)

		asked := f.Challenge(f.Attempt(), "ada", rolecall.ErrEnrolmentRequired)
		challenge := secret.Token(asked.Token)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		e, err := f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), challenge)
		f.OK(err)
		app := f.AppOf(e.TOTPSecret)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: "0000-0000-0000-0000"})), rolecall.ErrWrongCode)
		in, err := f.Answer(challenge, signin.Proof{Code: app.Code()})
		f.OK(err)
		if len(in.RecoveryCodes) != secret.RecoveryCodes || !in.Principal.Session.SecondFactor {
			t.Errorf("enrolled with %+v", in)
		}
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.Is(nodetest.ErrorOf(f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), challenge)), rolecall.ErrChallengeInvalid)

		other := f.FactorChallenge("ada")
		f.Is(nodetest.ErrorOf(f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), other)), rolecall.ErrChallengeInvalid)
		f.Is(f.SignIn.RemoveTOTP(f.Context(), f.CallerOf(in)), rolecall.ErrFactorDemanded)
		f.Is(f.SignIn.ResetFactors(f.Context(), f.CallerOf(in), in.Principal.User.ID), rolecall.ErrPermissionDenied)

		passkeys := f.Challenge(f.Attempt(), "owner", rolecall.ErrEnrolmentRequired)
		e, err = f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), secret.Token(passkeys.Token))
		f.OK(err)
		phone := passkeytest.New(nodetest.Origin)
		in, err = f.Answer(secret.Token(passkeys.Token), signin.Proof{Passkey: phone.Create(t, e.PublicKey)})
		f.OK(err)
		if len(in.RecoveryCodes) != secret.RecoveryCodes {
			t.Errorf("enrolled with %+v", in)
		}
		f.Is(f.SignIn.ResetFactors(f.Context(), f.CallerOf(in), in.Principal.User.ID), rolecall.ErrFactorDemanded)
	})
}

func TestOneOfTwoConcurrentEnrolmentsSucceeds(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		answers := make([]func() error, 5)
		for i := range answers {
			challenge := secret.Token(f.Challenge(f.Attempt(), "ada", rolecall.ErrEnrolmentRequired).Token)
			e, err := f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), challenge)
			f.OK(err)
			key := passkeytest.New(nodetest.Origin).Create(t, e.PublicKey)
			answers[i] = func() error { return nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Passkey: key})) }
		}
		results := f.InParallel(len(answers), func(i int) error { return answers[i]() })
		if results[nil] != 1 || results[rolecall.ErrChallengeInvalid] != len(answers)-1 {
			t.Errorf("%v", results)
		}
	})
}

func TestARoleCanRequireAFactorOfItsHolders(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		f.NewMember("grace")
		role := f.NewRole("Support", "users:read")
		f.Assign(ada.ID, role.ID, rolecall.AssignmentDraft{ExpiresAt: new(nodetest.Start.Add(24 * time.Hour))})
		in, other := f.LogIn("ada"), f.LogIn("grace")
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role.ID}}})
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, other.Token)))
		f.Challenge(f.Attempt(), "ada", rolecall.ErrEnrolmentRequired)
		f.Assign(f.LogIn("grace").Principal.User.ID, role.ID, rolecall.AssignmentDraft{})
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, other.Token)), rolecall.ErrUnauthenticated)
		f.Clock.Advance(24 * time.Hour)
		f.LogIn("ada")
	})
}

func TestTheLastRequiredFactorCannotBeRemoved(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, app, _ := f.Protected("ada")
		in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: app.Next()})
		f.OK(err)
		c := f.CallerOf(in)
		key := f.Passkey(c, passkeytest.New(nodetest.Origin))
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		demanded := *c.Principal
		demanded.Tenant = f.Tenant
		c.Principal = &demanded
		removals := []func() error{
			func() error { return f.SignIn.RemoveTOTP(f.Context(), c) },
			func() error { return f.SignIn.RemovePasskey(f.Context(), c, key.ID) },
		}
		results := f.InParallel(2, func(i int) error { return removals[i]() })
		if results[nil] != 1 || results[rolecall.ErrFactorDemanded] != 1 {
			t.Errorf("two removals in parallel: %v", results)
		}
	})
}

func TestLifetimesFollowTheRolesOfAUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Board", "users:read")
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role.ID}}})
		ada, app, _ := f.Protected("ada")
		f.Protected("grace")
		plain := f.LogIn("owner")
		owner := f.CallerOf(plain)
		signIn := func() signin.SignIn {
			in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: app.Next()})
			f.OK(err)
			return in
		}
		lives := func(in signin.SignIn) (idle, absolute time.Duration) {
			p, err := f.Authenticate(f.Node, in.Token)
			f.OK(err)
			session, settings := p.Session, p.Settings()
			return session.IdleExpiresAt(settings).Sub(session.LastUsedAt), session.EndsAt(settings).Sub(session.AuthenticatedAt)
		}
		old := signIn()
		if idle, absolute := lives(old); idle != 12*time.Hour || absolute != 7*nodetest.Day {
			t.Errorf("without the role a session lives for %v and %v", idle, absolute)
		}
		f.Assign(ada.ID, role.ID, rolecall.AssignmentDraft{})
		for _, in := range []signin.SignIn{old, signIn()} {
			if idle, absolute := lives(in); idle != time.Hour || absolute != nodetest.Day {
				t.Errorf("with the role a session lives for %v and %v", idle, absolute)
			}
		}
		if idle, absolute := lives(plain); idle != 12*time.Hour || absolute != 7*nodetest.Day {
			t.Errorf("the session of another user lives for %v and %v", idle, absolute)
		}
		page, err := f.SignIn.UserSessions(f.Context(), owner, ada.ID, nil, 10)
		if f.OK(err); len(page.Items) != 3 || page.Items[1].ExpiresAt != page.Items[1].AuthenticatedAt.Add(nodetest.Day) {
			t.Errorf("listed are %+v", page.Items)
		}
		f.Clock.Advance(time.Hour)
		for _, node := range []*node.Node{f.Node, f.NewNode()} {
			f.Is(nodetest.ErrorOf(f.Authenticate(node, old.Token)), rolecall.ErrUnauthenticated)
		}
		page, err = f.SignIn.UserSessions(f.Context(), owner, ada.ID, nil, 10)
		if f.OK(err); len(page.Items) != 0 {
			t.Errorf("listed are %+v", page.Items)
		}
		f.Is(f.SignIn.EndUserSession(f.Context(), owner, ada.ID, old.Principal.Session.ID), rolecall.ErrNotFound)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, plain.Token)))

		in := signIn()
		for range 24 {
			f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
			f.Clock.Advance(time.Hour - time.Second)
		}
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.Clock.Advance(24 * time.Second)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)

		in = signIn()
		f.OK(f.Directory.UnassignRole(f.Context(), owner, rolecall.HolderOf(ada.ID), role.ID))
		if idle, absolute := lives(in); idle != 12*time.Hour || absolute != nodetest.Day {
			t.Errorf("after the role was taken a session lives for %v and %v", idle, absolute)
		}
		f.SetSettings(rolecall.TenantSettings{SessionIdle: new(int64(7200)), SessionAbsolute: new(int64(36000)), SecondFactor: f.Tenant.Settings.SecondFactor})
		f.Assign(ada.ID, role.ID, rolecall.AssignmentDraft{})
		if idle, absolute := lives(signIn()); idle != 2*time.Hour || absolute != 10*time.Hour {
			t.Errorf("with lifetimes that the tenant sets a session lives for %v and %v", idle, absolute)
		}
	})
}
