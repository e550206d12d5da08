package directory_test

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// missing returns ErrNotFound if the user does not exist, and otherwise the error.
func (u *modelUser) missing(otherwise error) error {
	if !u.exists {
		return rolecall.ErrNotFound
	}
	return otherwise
}

func (m *modelTenant) localCreate(i int) (string, error, error) {
	u, wanted := &m.users[i], error(nil)
	created, err := m.Directory.CreateUser(m.Context(), m.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: m.address(i), Name: "Local"})
	if u.exists {
		wanted = rolecall.ErrEmailTaken
	} else {
		u.become(modelUser{id: created.Value.ID, exists: true, status: rolecall.UserPending, name: "Local"})
	}
	return fmt.Sprintf("an administrator creates %d", i), wanted, err
}

func (m *modelTenant) localSuspend(i int) (string, error, error) {
	u := &m.users[i]
	_, err := m.Directory.SuspendUser(m.Context(), m.Owner, m.idOf(i), "")
	if u.exists {
		u.status, u.suspended = rolecall.UserSuspended, u.suspended && u.status != rolecall.UserSuspended
	}
	return fmt.Sprintf("an administrator suspends %d", i), u.missing(nil), err
}

func (m *modelTenant) localResume(i int) (string, error, error) {
	u, wanted := &m.users[i], error(nil)
	switch {
	case !u.exists || u.status != rolecall.UserSuspended:
	case u.managed && !u.active:
		wanted = rolecall.ErrManagedByDirectory
	default:
		u.status = u.afterSuspension()
	}
	_, err := m.Directory.ResumeUser(m.Context(), m.Owner, m.idOf(i), "")
	return fmt.Sprintf("an administrator resumes %d", i), u.missing(wanted), err
}

func (m *modelTenant) localDelete(i int) (string, error, error) {
	wanted := m.users[i].missing(nil)
	err := m.Directory.DeleteUser(m.Context(), m.Owner, m.idOf(i), nil)
	if wanted == nil {
		m.bury(i)
	}
	return fmt.Sprintf("an administrator deletes %d", i), wanted, err
}

// localRestore restores the last deleted user. The user has no directory then, and is in no group of it.
func (m *modelTenant) localRestore(i int) (string, error, error) {
	u, wanted := &m.users[i], error(nil)
	id := u.buriedID
	switch {
	case !u.buried:
		wanted, id = rolecall.ErrNotFound, rolecall.NewID[rolecall.User](1)
	case u.exists:
		wanted = rolecall.ErrEmailTaken
	default:
		*u = modelUser{id: id, exists: true, status: u.buriedStatus, owner: u.buriedOwner, local: u.buriedLocal, name: u.buriedName}
	}
	_, err := m.Directory.RestoreUser(m.Context(), m.Owner, id)
	return fmt.Sprintf("an administrator restores %d", i), wanted, err
}

func (m *modelTenant) localRename(i int) (string, error, error) {
	u, name, wanted := &m.users[i], m.newName(), error(nil)
	_, err := m.Directory.UpdateUser(m.Context(), m.Owner, m.idOf(i), rolecall.UserPatch{Name: rolecall.Some(name)}, nil)
	if u.managed {
		wanted = rolecall.ErrManagedByDirectory
	} else {
		u.name = name
	}
	return fmt.Sprintf("an administrator renames %d", i), u.missing(wanted), err
}

// localMember adds the user to the local group, or removes the user.
func (m *modelTenant) localMember(i int) (string, error, error) {
	u, wanted := &m.users[i], error(nil)
	var err error
	if joins := m.random.IntN(2) == 0; joins {
		err = m.Directory.AddMember(m.Context(), m.Owner, m.local, m.idOf(i))
		u.local = u.exists
	} else {
		err = m.Directory.RemoveMember(m.Context(), m.Owner, m.local, m.idOf(i))
		if !u.local {
			wanted = rolecall.ErrNotFound
		}
		u.local = false
	}
	return fmt.Sprintf("an administrator changes the local group of %d", i), u.missing(wanted), err
}

// localOwner makes the user an owner, or takes the role.
func (m *modelTenant) localOwner(i int) (string, error, error) {
	u, wanted := &m.users[i], error(nil)
	var err error
	if m.random.IntN(2) == 0 {
		_, _, err = m.Directory.AssignRole(m.Context(), m.Owner, rolecall.HolderOf(m.idOf(i)), m.owner, rolecall.AssignmentDraft{})
		u.owner = u.exists
	} else {
		err = m.Directory.UnassignRole(m.Context(), m.Owner, rolecall.HolderOf(m.idOf(i)), m.owner)
		if !u.owner {
			wanted = rolecall.ErrNotFound
		}
		u.owner = false
	}
	return fmt.Sprintf("an administrator changes the role of %d", i), u.missing(wanted), err
}

// localPassword gives a pending user a password, so that the user becomes active.
func (m *modelTenant) localPassword(i int) (string, error, error) {
	u := &m.users[i]
	if !u.exists || u.status != rolecall.UserPending {
		return "nothing", nil, nil
	}
	u.password, u.status = true, rolecall.UserActive
	return fmt.Sprintf("%d gets a password", i), nil, m.SignIn.SetPassword(m.Context(), m.Tenant.Name, m.address(i), nodetest.Password)
}

// localGroup sends changes of a group of the directory, which are all refused.
func (m *modelTenant) localGroup(i int) (string, error, error) {
	g := m.groups[pick(m.random, modelGroupNames...)]
	if g == nil {
		return "nothing", nil, nil
	}
	u, wanted := &m.users[i], rolecall.ErrManagedByDirectory
	switch m.random.IntN(4) {
	case 0:
		_, err := m.Directory.UpdateGroup(m.Context(), m.Owner, g.id, rolecall.GroupPatch{Name: rolecall.Some("Local")}, nil)
		return "an administrator renames a group of the directory", wanted, err
	case 1:
		return "an administrator deletes a group of the directory", wanted, m.Directory.DeleteGroup(m.Context(), m.Owner, g.id, true, nil)
	case 2:
		return "an administrator adds a member", u.missing(wanted), m.Directory.AddMember(m.Context(), m.Owner, g.id, m.idOf(i))
	default:
		return "an administrator removes a member", u.missing(wanted), m.Directory.RemoveMember(m.Context(), m.Owner, g.id, m.idOf(i))
	}
}

// compare compares the state of the tenant with the model.
func (m *modelTenant) compare() {
	m.Helper()
	for i := range m.users {
		m.compareUser(i)
	}
	for name, g := range m.groups {
		stored, err := m.Directory.ProvisionedGroup(m.Context(), m.provider, g.id, true)
		m.OK(err)
		var wanted []rolecall.UserID
		for i := range g.members {
			if !m.users[i].removed {
				wanted = append(wanted, m.users[i].id)
			}
		}
		slices.SortFunc(wanted, func(a, b rolecall.UserID) int { return slices.Compare(a[:], b[:]) })
		if stored.Name != name || !slices.Equal(stored.Members, wanted) {
			m.Errorf("the group is %+v, and the members are %v", stored, wanted)
		}
	}
}

func (m *modelTenant) compareUser(i int) {
	m.Helper()
	u := &m.users[i]
	user, err := m.Directory.User(m.Context(), m.Owner, m.idOf(i))
	there, err := access.Found(err)
	m.OK(err)
	if there != u.exists || there && (user.Status != u.status || (user.ManagedBy != nil) != u.managed || user.Name != u.name) {
		m.Errorf("user %d is %+v, not %+v", i, user, *u)
	}
	m.compareVisibility(i)
	if !there {
		return
	}
	groups, err := m.Directory.UserGroups(m.Context(), m.Owner, u.id, nil, rolecall.MaxLimit)
	m.OK(err)
	wanted := map[rolecall.GroupID]bool{}
	for _, g := range m.groups {
		if g.members[i] {
			wanted[g.id] = true
		}
	}
	if u.local {
		wanted[m.local] = true
	}
	for _, membership := range groups.Items {
		if !wanted[membership.Group.ID] {
			m.Errorf("user %d is in the group %s", i, membership.Group.Name)
		}
	}
	if len(groups.Items) != len(wanted) {
		m.Errorf("user %d is in %d groups, not %d", i, len(groups.Items), len(wanted))
	}
}

// compareVisibility compares what the directory sees of the user: by id, and by the userName.
func (m *modelTenant) compareVisibility(i int) {
	m.Helper()
	u := &m.users[i]
	entry, _, err := m.Directory.ProvisionedUser(m.Context(), m.provider, m.idOf(i))
	sees, err := access.Found(err)
	m.OK(err)
	if sees != m.visible(u) || sees && u.managed && entry.Of.Active != u.active {
		m.Errorf("the directory sees user %d: %t, as %+v, not as %+v", i, sees, entry.Of, *u)
	}
	found, total, err := m.Directory.ProvisionedUsers(m.Context(), m.provider, rolecall.DirectoryUserQuery{UserName: m.address(i), Limit: 10})
	m.OK(err)
	if isFound := total == 1 && len(found) == 1 && found[0].User.ID == u.id; isFound != m.visible(u) || !isFound && total+len(found) > 0 {
		m.Errorf("the directory finds user %d: %d, %+v", i, total, found)
	}
}

// clean deletes the groups and the users of the sequence.
func (m *modelTenant) clean() {
	m.Helper()
	for _, g := range m.groups {
		m.OK(m.Directory.DeprovisionGroup(m.Context(), m.provider, g.id, nil))
	}
	for i := range m.users {
		if m.users[i].exists {
			m.DeleteUser(m.users[i].id)
		}
	}
}
