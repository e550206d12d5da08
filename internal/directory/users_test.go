package directory_test

import (
	"errors"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
)

func TestThePermissionForAMemberComesBeforeItsValue(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		maker := f.NewRole("maker", "users:create", "users.name:update")
		made := f.NewMember("maker")
		f.Assign(made.ID, maker.ID, rolecall.AssignmentDraft{})
		c := f.CallerOf(f.LogIn("maker"))
		wrong := rolecall.Some(new("\x00"))
		for name, id := range map[string]rolecall.UserID{"oneself": made.ID, "somebody else": f.Owner.User.ID, "nobody": {15: 1}} {
			_, err := f.Directory.UpdateUser(f.Context(), c, id, rolecall.UserPatch{Department: wrong}, nil)
			if !errors.Is(err, rolecall.ErrPermissionDenied) {
				f.Errorf("of %s: %v", name, err)
			}
		}
		f.Is(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), c, made.ID, rolecall.UserPatch{Name: rolecall.Some("")}, nil)), rolecall.ErrValidation)
		f.Is(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), c, nodetest.NewKey(), rolecall.UserDraft{Invite: true})), rolecall.ErrPermissionDenied)
		f.Is(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), c, nodetest.NewKey(), rolecall.UserDraft{})), rolecall.ErrValidation)
	})
}
