package directory_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

func TestTheOverviewShowsWhyAUserCannotSignIn(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Account: 3}, func(f *nodetest.Fixture) {
		const invite, sendReset = "UsersController_inviteUser", "UsersController_sendPasswordReset"
		said := func(what string, id rolecall.UserID, want ...string) {
			t.Helper()
			if got := f.Obstacles(id); !slices.Equal(got, want) {
				t.Errorf("%s: %q, not %q", what, got, want)
			}
		}
		ada := f.NewUser("ada")
		said("never invited", ada.ID, "user-pending "+invite)
		f.Invite(ada.ID)
		said("invited", ada.ID, "user-pending "+invite)
		f.Clock.Advance(rolecall.DefaultInvitation)
		f.Owner.Principal = f.LogIn("owner").Principal
		said("invited long ago", ada.ID, "user-pending "+invite, "invitation-expired "+invite)
		f.OK(f.Node.Purge(f.Context()))
		said("and after a purge", ada.ID, "user-pending "+invite, "invitation-expired "+invite)
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(f.Invite(ada.ID), nodetest.Password)))
		said("accepted", ada.ID)

		for range 3 {
			f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		said("guessed at", ada.ID, "too-many-attempts "+sendReset+" unknown-browsers  1h0m0s")
		f.Clock.Advance(time.Hour)
		said("an hour later", ada.ID)

		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, ada.ID, "")))
		said("suspended", ada.ID, "user-suspended UsersController_resumeUser")
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, ada.ID, "")))

		bob, _ := f.Person("")
		said("active without a password", bob.ID, "no-password "+sendReset)

		owners := *f.Owner.Principal
		owners.Tenant.Settings.PasswordSignIn = rolecall.PasswordsOfOwners
		all := f.Owner.Principal
		f.Owner.Principal = &owners
		said("without an identity, and passwords are for owners", ada.ID, "no-identity ")
		said("an owner", f.Owner.User.ID)
		p := nodetest.Provide(f, nil)
		p.Identity(ada.ID, "ada-1")
		p.Identity(bob.ID, "bob-1")
		said("with an identity", ada.ID)
		f.Owner.Principal = all
		said("with an identity, but without a password", bob.ID)

		demanding := *f.Owner.Principal
		demanding.Tenant.Settings.SecondFactor.Required = rolecall.SecondFactorOfAll
		f.Owner.Principal = &demanding
		said("without the second factor that is demanded", ada.ID, "second-factor-enrolment-required AuthsController_beginEnrolment")
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.UpsertPendingTOTP(ada.ID, []byte("secret"))
			_, err := tx.ConfirmTOTP(ada.ID, []byte("secret"), 1, nodetest.Start)
			return err
		}))
		said("with it", ada.ID)
		demanding.Tenant.Status = rolecall.TenantSuspended
		said("in a suspended tenant", ada.ID, "tenant-suspended OperatorController_resumeTenant")
	})
}

func TestTheOverviewShowsTheSourceOfRefusedSignIns(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		for range 9 {
			f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("198.51.100.1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		if got := f.Obstacles(ada.ID); got != nil {
			t.Errorf("before the limit: %q", got)
		}
		f.Clock.Advance(2 * time.Second)
		f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		for range 10 {
			f.Is(f.Guess("2001:db8::1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.OK(f.Access.Refusals.Flush(f.Context()))
		f.Clock.Advance(2 * time.Second)
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrTooManyAttempts)
		f.Is(f.Guess("198.51.100.1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		const refused = "too-many-attempts UsersController_sendPasswordReset source "
		if got := f.Obstacles(ada.ID); !slices.Contains(got, refused+"192.0.2.7 14m56s") {
			t.Errorf("%q", got)
		}
		reader := f.CallerWith(nodetest.Holding("users:read"))
		o, err := f.Directory.Overview(f.Context(), reader, ada.ID)
		f.OK(err)
		if o.SignIn.CanSignIn || len(o.SignIn.Reasons) == 0 || slices.ContainsFunc(o.SignIn.Reasons, func(r directory.SignInReason) bool { return r.Source != "" || r.Until == 0 }) {
			t.Errorf("without events:read: %+v", o.SignIn)
		}
		f.Clock.Advance(15 * time.Minute)
		if got := f.Obstacles(ada.ID); got != nil {
			t.Errorf("when the time has passed: %q", got)
		}
	})
}

func TestTheOverviewShowsGuessedCodes(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, _, _ := f.Protected("ada")
		for range 2 {
			challenge := f.FactorChallenge("ada")
			for range 5 {
				f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{RecoveryCode: "AAAA-AAAA-AAAA-AAAA"})), rolecall.ErrWrongCode)
			}
		}
		want := []string{"too-many-attempts  second-factor  1h0m0s"}
		if got := f.Obstacles(ada.ID); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		f.OK(f.ResetPassword(f.ResetLink("ada"), nodetest.AnotherPassword))
		if got := f.Obstacles(ada.ID); !slices.Equal(got, want) {
			t.Errorf("after a new password: %q", got)
		}
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword), rolecall.ErrSecondFactorRequired)
	})
}

func TestTheOverviewExplainsPasskeysWithoutADomain(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, _ := f.WithPasskey("ada")
		f.Passkeys = nil
		f.Node = f.NewNode()
		if got := f.Obstacles(ada.ID); got != nil {
			t.Errorf("with recovery codes: %q", got)
		}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.ReplaceRecoveryCodes(ada.ID, nil)
			return nil
		}))
		if got := f.Obstacles(ada.ID); !slices.Equal(got, []string{"second-factor-unusable UsersController_resetFactors"}) {
			t.Errorf("without: %q", got)
		}
	})
}

func TestSignInDetailsInTheOverviewAreAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, _ := f.Person("Sales")
		f.Invite(ada.ID)
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.ReplaceRecoveryCodes(ada.ID, [][]byte{{1}, {2}})
			tx.InsertAPIToken(rolecall.APIToken{ID: rolecall.NewID[rolecall.APIToken](nodetest.Start), UserID: ada.ID, Name: "A token", CreatedAt: nodetest.Start, ExpiresAt: nodetest.Start + 1}, []byte{1})
			return nil
		}))
		for _, c := range []struct {
			caller access.Caller
			want   string // invitation, tokens, factors
		}{
			{f.Owner, "true 1 2"},
			{f.CallerAs(ada, nil), "true 1 2"},
			{f.CallerWith(nodetest.Holding("users:read")), "true 0 0"},
			{f.CallerWith(nodetest.Holding("users.name:read"), nodetest.Holding("sessions:read").Within("Sales")), "false 1 0"},
			{f.CallerWith(nodetest.Holding("users:reset-factors").Within("Sales")), "false 0 2"},
			{f.CallerWith(nodetest.Holding("users.name:read"), nodetest.Holding("users:reset-factors", "sessions:read").Within("Ops")), "false 0 0"},
		} {
			o, err := f.Directory.Overview(f.Context(), c.caller, ada.ID)
			f.OK(err)
			if got := fmt.Sprint(o.Invitation.ExpiresAt != 0, o.Tokens, o.Factors.RecoveryCodes); got != c.want {
				t.Errorf("%v is told %s, not %s", c.caller.Assignments, got, c.want)
			}
		}
	})
}
