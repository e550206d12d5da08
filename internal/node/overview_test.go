package node_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// obstacles returns the reasons that the owner sees why the user cannot sign in, each
// with the operation that fixes it.
func (f *fixture) obstacles(id rolecall.UserID) (reasons []string) {
	f.Helper()
	o, err := f.Directory.Overview(f.Context(), f.owner, id)
	f.ok(err)
	for _, r := range o.SignIn.Reasons {
		reason := r.Code + " " + r.Operation
		if r.Covers != "" {
			reason += fmt.Sprintf(" %s %s %s", r.Covers, r.Source, r.Until.Sub(f.clock.Now()))
		}
		reasons = append(reasons, reason)
	}
	if o.SignIn.CanSignIn != (reasons == nil) {
		f.Errorf("they can sign in: %v, and hindered by %q", o.SignIn.CanSignIn, reasons)
	}
	return reasons
}

// voidInvitation reports whether the owner sees that the user's invitation is void,
// because its author could no longer create it.
func (f *fixture) voidInvitation(id rolecall.UserID) bool {
	f.Helper()
	return slices.Contains(f.obstacles(id), "invitation-void UsersController_inviteUser")
}

func TestTheOverviewShowsWhyAUserCannotSignIn(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Account: 3}, func(f *fixture) {
		const invite, sendReset = "UsersController_inviteUser", "UsersController_sendPasswordReset"
		said := func(what string, id rolecall.UserID, want ...string) {
			t.Helper()
			if got := f.obstacles(id); !slices.Equal(got, want) {
				t.Errorf("%s: %q, not %q", what, got, want)
			}
		}
		ada := f.user("ada")
		said("never invited", ada.ID, "user-pending "+invite)
		f.invite(ada.ID)
		said("invited", ada.ID, "user-pending "+invite)
		f.clock.advance(rolecall.DefaultInvitation)
		f.owner.Principal = f.signIn("owner").Principal
		said("invited long ago", ada.ID, "user-pending "+invite, "invitation-expired "+invite)
		f.ok(f.Node.Purge(f.Context()))
		said("and after a purge", ada.ID, "user-pending "+invite, "invitation-expired "+invite)
		f.ok(errorOf(f.accept(f.invite(ada.ID), password)))
		said("accepted", ada.ID)

		for range 3 {
			f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		said("guessed at", ada.ID, "too-many-attempts "+sendReset+" unknown-browsers  1h0m0s")
		f.clock.advance(time.Hour)
		said("an hour later", ada.ID)

		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, ada.ID, "")))
		said("suspended", ada.ID, "user-suspended UsersController_resumeUser")
		f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, ada.ID, "")))

		bob, _ := f.person("")
		said("active without a password", bob.ID, "no-password "+sendReset)

		owners := *f.owner.Principal
		owners.Tenant.Settings.PasswordSignIn = rolecall.PasswordsOfOwners
		all := f.owner.Principal
		f.owner.Principal = &owners
		said("without an identity, and passwords are for owners", ada.ID, "no-identity ")
		said("an owner", f.owner.User.ID)
		p := provide(f, nil)
		p.identity(ada.ID, "ada-1")
		p.identity(bob.ID, "bob-1")
		said("with an identity", ada.ID)
		f.owner.Principal = all
		said("with an identity, but without a password", bob.ID)

		demanding := *f.owner.Principal
		demanding.Tenant.Settings.SecondFactor.Required = rolecall.SecondFactorOfAll
		f.owner.Principal = &demanding
		said("without the second factor that is demanded", ada.ID, "second-factor-enrolment-required AuthsController_beginEnrolment")
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.UpsertPendingTOTP(ada.ID, []byte("secret"))
			_, err := tx.ConfirmTOTP(ada.ID, []byte("secret"), 1, start)
			return err
		}))
		said("with it", ada.ID)
		demanding.Tenant.Status = rolecall.TenantSuspended
		said("in a suspended tenant", ada.ID, "tenant-suspended OperatorController_resumeTenant")
	})
}

func TestTheOverviewShowsTheSourceOfRefusedSignIns(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		for range 9 {
			f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("198.51.100.1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		if got := f.obstacles(ada.ID); got != nil {
			t.Errorf("before the limit: %q", got)
		}
		f.clock.advance(2 * time.Second)
		f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		for range 10 {
			f.is(f.guess("2001:db8::1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.ok(f.Access.Refusals.Flush(f.Context()))
		f.clock.advance(2 * time.Second)
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrTooManyAttempts)
		f.is(f.guess("198.51.100.1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		const refused = "too-many-attempts UsersController_sendPasswordReset source "
		if got := f.obstacles(ada.ID); !slices.Contains(got, refused+"192.0.2.7 14m56s") {
			t.Errorf("%q", got)
		}
		reader := f.caller(holding("users:read"))
		o, err := f.Directory.Overview(f.Context(), reader, ada.ID)
		f.ok(err)
		if o.SignIn.CanSignIn || len(o.SignIn.Reasons) == 0 || slices.ContainsFunc(o.SignIn.Reasons, func(r directory.SignInReason) bool { return r.Source != "" || r.Until == 0 }) {
			t.Errorf("without events:read: %+v", o.SignIn)
		}
		f.clock.advance(15 * time.Minute)
		if got := f.obstacles(ada.ID); got != nil {
			t.Errorf("when the time has passed: %q", got)
		}
	})
}

func TestTheOverviewShowsGuessedCodes(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, _, _ := f.protected("ada")
		for range 2 {
			challenge := f.factorChallenge("ada")
			for range 5 {
				f.is(errorOf(f.answer(challenge, signin.Proof{RecoveryCode: "AAAA-AAAA-AAAA-AAAA"})), rolecall.ErrWrongCode)
			}
		}
		want := []string{"too-many-attempts  second-factor  1h0m0s"}
		if got := f.obstacles(ada.ID); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		f.ok(f.reset(f.resetLink("ada"), anotherPassword))
		if got := f.obstacles(ada.ID); !slices.Equal(got, want) {
			t.Errorf("after a new password: %q", got)
		}
		f.is(f.guess("192.0.2.7", "ada", anotherPassword), rolecall.ErrSecondFactorRequired)
	})
}

func TestTheOverviewExplainsPasskeysWithoutADomain(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, _ := f.withPasskey("ada")
		f.passkeys = nil
		f.Node = f.node()
		if got := f.obstacles(ada.ID); got != nil {
			t.Errorf("with recovery codes: %q", got)
		}
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.ReplaceRecoveryCodes(ada.ID, nil)
			return nil
		}))
		if got := f.obstacles(ada.ID); !slices.Equal(got, []string{"second-factor-unusable UsersController_resetFactors"}) {
			t.Errorf("without: %q", got)
		}
	})
}

func TestSignInDetailsInTheOverviewAreAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, _ := f.person("Sales")
		f.invite(ada.ID)
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.ReplaceRecoveryCodes(ada.ID, [][]byte{{1}, {2}})
			tx.InsertAPIToken(rolecall.APIToken{ID: rolecall.NewID[rolecall.APIToken](start), UserID: ada.ID, Name: "A token", CreatedAt: start, ExpiresAt: start + 1}, []byte{1})
			return nil
		}))
		for _, c := range []struct {
			caller access.Caller
			want   string // invitation, tokens, factors
		}{
			{f.owner, "true 1 2"},
			{f.callBy(ada, nil), "true 1 2"},
			{f.caller(holding("users:read")), "true 0 0"},
			{f.caller(holding("users.name:read"), holding("sessions:read").within("Sales")), "false 1 0"},
			{f.caller(holding("users:reset-factors").within("Sales")), "false 0 2"},
			{f.caller(holding("users.name:read"), holding("users:reset-factors", "sessions:read").within("Ops")), "false 0 0"},
		} {
			o, err := f.Directory.Overview(f.Context(), c.caller, ada.ID)
			f.ok(err)
			if got := fmt.Sprint(o.Invitation.ExpiresAt != 0, o.Tokens, o.Factors.RecoveryCodes); got != c.want {
				t.Errorf("%v is told %s, not %s", c.caller.Assignments, got, c.want)
			}
		}
	})
}
