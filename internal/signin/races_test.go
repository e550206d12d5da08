package signin_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// interrupted is a store that calls a function once, after the next read.
type interrupted struct {
	store.Database
	meanwhile func()
}

// View reads. After the first read, it also calls the function of the field.
func (s *interrupted) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	err := s.Database.View(ctx, tenant, fn)
	if happen := s.meanwhile; happen != nil {
		s.meanwhile = nil
		happen()
	}
	return err
}

// signInAcross signs ada in on a node on which every password hash is too weak, so that
// the node replaces it. It calls happen between the read of her hash and the insertion of
// the session.
func signInAcross(f *nodetest.Fixture, happen func()) error {
	f.Helper()
	peer := node.New(&interrupted{f.DB, happen}, access.Options{
		Clock: f.Clock.Now, Passwords: secret.NewPasswords(secret.Parameters{Time: 2, MemoryKiB: 64, Threads: 1}, 4, 1000),
		Keys: f.Keys, Logger: slog.New(slog.DiscardHandler), Limits: f.Limits,
	})
	return nodetest.ErrorOf(peer.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("ada"), nodetest.Password))
}

func TestASignInDoesNotRestoreAReplacedPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		const replacement = "brand new " + nodetest.Password
		f.Is(signInAcross(f, func() {
			f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), replacement))
		}), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.1", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.1", "ada", replacement))
	})
}

func TestASuspensionOrDeletionDuringSignInLeavesNoSession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		f.Is(signInAcross(f, func() { f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, ada.ID, ""))) }), rolecall.ErrUserSuspended)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, ada.ID, "")))
		if got := f.EventTypes(ada.ID); slices.Contains(got, rolecall.EventSignedIn) {
			t.Errorf("a session outlives the suspension: %v", got)
		}
		f.Is(signInAcross(f, func() { f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, ada.ID, nil)) }), rolecall.ErrWrongCredentials)
	})
}
