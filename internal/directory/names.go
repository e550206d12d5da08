package directory

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// Named is the name of a user, role, group or service account.
type Named struct {
	Name    string // empty if the caller may not read the name
	Deleted bool   // the id is of a deleted role, group or service account, or of a deleted user who can be restored
	Program bool   // the id is of a service account
}

// Names returns the names of the users, roles, groups and service accounts with the ids. It omits
// ids of objects that do not exist or are not visible to the caller. Deleted users are
// included if the caller may restore them. Deleted roles, groups and service accounts are included as long as
// the event of the deletion is kept, if the caller may read this event with its values. Names uses one
// statement for each kind of object.
func (s *Service) Names(ctx context.Context, c access.Caller, ids []rolecall.AnyID) (map[rolecall.AnyID]Named, error) {
	named := map[rolecall.AnyID]Named{}
	err := s.access.View(ctx, c, func(tx *store.Tx) error {
		clear(named)
		if err := namesOfUsers(tx, c, ids, named); err != nil {
			return err
		}
		if err := s.namesOfDeleted(tx, c, ids, named); err != nil {
			return err
		}
		if err := namesOfOthers(tx, c, ids, named); err != nil {
			return err
		}
		return namesOfDeletedOthers(tx, c, ids, named)
	})
	return named, err
}

func namesOfUsers(tx *store.Tx, c access.Caller, ids []rolecall.AnyID, named map[rolecall.AnyID]Named) error {
	users, err := tx.UsersByID(idsOf[rolecall.UserID](ids))
	for i := range users {
		if u := &users[i]; c.Sees(u) {
			named[rolecall.AnyID(u.ID)] = Named{Name: readableName(c, u)}
		}
	}
	return err
}

func (s *Service) namesOfDeleted(tx *store.Tx, c access.Caller, ids []rolecall.AnyID, named map[rolecall.AnyID]Named) error {
	restores := c.Reach(rolecall.UsersRestore)
	if restores.IsNowhere() {
		return nil
	}
	tombstones, err := tx.TombstonesByUser(idsOf[rolecall.UserID](ids), s.restorable())
	for i := range tombstones {
		if u := &tombstones[i].User; restores.Includes(u.Department) {
			named[rolecall.AnyID(u.ID)] = Named{Name: readableName(c, u), Deleted: true}
		}
	}
	return err
}

func namesOfOthers(tx *store.Tx, c access.Caller, ids []rolecall.AnyID, named map[rolecall.AnyID]Named) error {
	if authz.ReadRoles.Authorize(c.Principal) == nil {
		roles, err := tx.RolesByID(idsOf[rolecall.RoleID](ids))
		if err != nil {
			return err
		}
		for i := range roles {
			named[rolecall.AnyID(roles[i].ID)] = Named{Name: roles[i].Name}
		}
	}
	if authz.ReadGroups.Authorize(c.Principal) == nil {
		groups, err := tx.GroupsByID(idsOf[rolecall.GroupID](ids))
		if err != nil {
			return err
		}
		for i := range groups {
			named[rolecall.AnyID(groups[i].ID)] = Named{Name: groups[i].Name}
		}
	}
	if authz.ReadServiceAccounts.Authorize(c.Principal) == nil {
		accounts, err := tx.ServiceAccountsByID(idsOf[rolecall.ServiceAccountID](ids))
		if err != nil {
			return err
		}
		for i := range accounts {
			named[rolecall.AnyID(accounts[i].ID)] = Named{Name: accounts[i].Name, Program: true}
		}
	}
	return nil
}

// namesOfDeletedOthers adds the names of deleted roles, groups and service accounts, from the events of their
// deletion.
func namesOfDeletedOthers(tx *store.Tx, c access.Caller, ids []rolecall.AnyID, named map[rolecall.AnyID]Named) error {
	readable := map[rolecall.SubjectType]bool{
		rolecall.SubjectRole:           authz.ReadRoles.Authorize(c.Principal) == nil,
		rolecall.SubjectGroup:          authz.ReadGroups.Authorize(c.Principal) == nil,
		rolecall.SubjectServiceAccount: authz.ReadServiceAccounts.Authorize(c.Principal) == nil,
	}
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id rolecall.AnyID) bool {
		_, known := named[id]
		return known
	})
	if len(unknown) == 0 || authz.ReadEvents.Authorize(c.Principal) != nil {
		return nil
	}
	deletions, err := tx.Deletions(unknown)
	if err != nil {
		return err
	}
	for _, d := range deletions {
		var object struct {
			Name string `json:"name"`
		}
		if !readable[d.Subject.Type] || d.Before == nil {
			continue
		}
		if err := json.Unmarshal(d.Before, &object); err != nil {
			return err
		}
		named[d.Subject.ID] = Named{Name: object.Name, Deleted: true, Program: d.Subject.Type == rolecall.SubjectServiceAccount}
	}
	return nil
}

// readableName returns the user's name, or an empty text if the caller may not read the
// name.
func readableName(c access.Caller, u *rolecall.User) string {
	if c.ReadableMembers(u).Has(rolecall.MemberName) {
		return u.Name
	}
	return ""
}

// idsOf returns the ids, converted to the id type T.
func idsOf[T ~[16]byte](ids []rolecall.AnyID) []T {
	list := make([]T, len(ids))
	for i, id := range ids {
		list[i] = T(id)
	}
	return list
}
