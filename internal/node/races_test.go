package node_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
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
func (f *fixture) signInAcross(happen func()) error {
	f.Helper()
	peer := node.New(&interrupted{f.db, happen}, access.Options{
		Clock: f.clock.Now, Passwords: secret.NewPasswords(secret.Parameters{Time: 2, MemoryKiB: 64, Threads: 1}, 4, 1000),
		Keys: f.keys, Logger: slog.New(slog.DiscardHandler), Limits: f.limits,
	})
	return errorOf(peer.SignIn.Login(f.Context(), f.attempt(), address("ada"), password))
}

func TestASignInDoesNotRestoreAReplacedPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		const replacement = "brand new " + password
		f.is(f.signInAcross(func() {
			f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), replacement))
		}), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.1", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.1", "ada", replacement))
	})
}

func TestASuspensionOrDeletionDuringSignInLeavesNoSession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		f.is(f.signInAcross(func() { f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, ada.ID, ""))) }), rolecall.ErrUserSuspended)
		f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, ada.ID, "")))
		if got := f.eventTypes(ada.ID); slices.Contains(got, rolecall.EventSignedIn) {
			t.Errorf("a session outlives the suspension: %v", got)
		}
		f.is(f.signInAcross(func() { f.ok(f.Directory.DeleteUser(f.Context(), f.owner, ada.ID, nil)) }), rolecall.ErrWrongCredentials)
	})
}

// TestARoleIsNotDeletedDuringItsAssignment deletes a role without force while it is
// assigned to a user. One of the two requests is rejected, so that no acknowledged
// assignment is lost.
func TestARoleIsNotDeletedDuringItsAssignment(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, peer := f.user("ada"), f.node()
		for range 60 {
			role := f.insertRole(approver)
			var deleted, assigned error
			var running sync.WaitGroup
			running.Go(func() { deleted = f.Directory.DeleteRole(f.Context(), f.owner, role.ID, false, nil) })
			running.Go(func() {
				assigned = errorOf3(peer.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(ada.ID), role.ID, rolecall.AssignmentDraft{}))
			})
			running.Wait()
			first := deleted == nil && errors.Is(assigned, rolecall.ErrNotFound)
			second := assigned == nil && errors.Is(deleted, rolecall.ErrRoleInUse)
			if !first && !second {
				t.Errorf("deleted: %v; assigned: %v", deleted, assigned)
			}
		}
	})
}
