package directory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// The random sequences of operations of a directory and of administrators.
const (
	provisioningSequences      = 400
	provisioningSequencesShort = 100
	provisioningSteps          = 20 // in a sequence
	provisioningSeed           = 20
)

// TestRandomProvisioning compares the service with modelTenant. To repeat one sequence, set sequence in the loop.
func TestRandomProvisioning(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := newProvider(f)
		local, owner := newGroup(f), f.OwnerRole()
		sequences := provisioningSequences
		if testing.Short() {
			sequences = provisioningSequencesShort
		}
		for sequence := range sequences {
			random := rand.New(rand.NewPCG(provisioningSeed, uint64(sequence)))
			var err error
			p.Directory, err = f.Directory.UpdateDirectory(f.Context(), f.Owner, p.Directory.ID, rolecall.DirectoryPatch{
				Matching:       rolecall.Some(pick(random, rolecall.MatchRefuse, rolecall.MatchEmail)),
				Deprovisioning: rolecall.Some(pick(random, rolecall.DeprovisionSuspend, rolecall.DeprovisionDelete)),
			}, nil)
			f.OK(err)
			m := &modelTenant{Fixture: f, random: random, provider: p, number: sequence, local: local.ID, owner: owner, groups: map[string]*modelGroup{}}
			for range provisioningSteps {
				f.Clock.Advance(time.Millisecond)
				m.step()
				if f.Failed() {
					break
				}
			}
			m.compare()
			if f.Failed() {
				f.Fatalf("sequence %d, matching %s, deprovisioning %s:\n%s", sequence, p.Directory.Matching, p.Directory.Deprovisioning, strings.Join(m.log, "\n"))
			}
			m.clean()
		}
	})
}

func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// newProvider creates a directory with a token, and returns it as the principal of requests.
func newProvider(f *nodetest.Fixture) directory.Provider {
	f.Helper()
	created, err := f.Directory.CreateDirectory(f.Context(), f.Owner, nodetest.NewKey(), rolecall.DirectoryDraft{Name: fmt.Sprintf("Directory %d", nodetest.Serial.Add(1))})
	f.OK(err)
	token, err := f.Directory.CreateDirectoryToken(f.Context(), f.Owner, nodetest.NewKey(), created.Value.ID, rolecall.DirectoryTokenDraft{Name: "Token", ExpiresAt: nodetest.NextWeek})
	f.OK(err)
	p, err := f.Directory.AuthenticateDirectory(f.Context(), f.Tenant, token.Value.Secret)
	f.OK(err)
	p.RequestID, p.Source = "request", "192.0.2.1"
	return p
}

// modelUsers is the number of addresses in a sequence.
const modelUsers = 3

// modelTenant is what a sequence of operations should lead to. It states the rules of the design a second time.
type modelTenant struct {
	*nodetest.Fixture
	random   *rand.Rand
	provider directory.Provider
	number   int // of the sequence
	serial   int // for names
	local    rolecall.GroupID
	owner    rolecall.RoleID
	users    [modelUsers]modelUser
	groups   map[string]*modelGroup // of the directory, by name
	log      []string
}

type modelGroup struct {
	id      rolecall.GroupID
	members map[int]bool
}

// modelUser is the user with one of the addresses.
type modelUser struct {
	id       rolecall.UserID
	exists   bool
	status   rolecall.UserStatus
	password bool
	owner    bool
	local    bool // is in the local group
	name     string

	managed      bool
	active       bool // the wish of the directory
	suspended    bool // by the directory
	removed      bool // by the directory
	buried       bool // the user was deleted, and can be restored
	buriedLocal  bool // was in the local group
	buriedOwner  bool
	buriedStatus rolecall.UserStatus
	buriedID     rolecall.UserID
	buriedName   string
}

func (m *modelTenant) address(i int) string {
	return fmt.Sprintf("user-%d-%d@example.com", m.number, i)
}

func (m *modelTenant) newName() string {
	m.serial++
	return fmt.Sprintf("Name %d", m.serial)
}

// step runs a random operation, and compares its error with that of the model.
func (m *modelTenant) step() {
	steps := []func(int) (string, error, error){
		m.create, m.create, m.change, m.change, m.change, m.deprovision, m.createGroup, m.changeGroup, m.changeGroup, m.changeGroup, m.deleteGroup,
		m.localCreate, m.localSuspend, m.localResume, m.localDelete, m.localRestore, m.localRename, m.localMember, m.localOwner, m.localPassword, m.localGroup,
	}
	what, wanted, err := steps[m.random.IntN(len(steps))](m.random.IntN(modelUsers))
	m.log = append(m.log, fmt.Sprintf("%s: %v", what, err))
	if (wanted == nil) != (err == nil) || !errors.Is(err, wanted) {
		m.Errorf("%s: the error is %v, not %v", what, err, wanted)
	}
}

// wish returns a random value of active in a request: absent, true or false.
func (m *modelTenant) wish() rolecall.Optional[bool] {
	return pick(m.random, rolecall.Optional[bool]{}, rolecall.Some(true), rolecall.Some(false))
}

// sent returns the values of a user as the directory sends them.
func (m *modelTenant) sent(i int, name string, active rolecall.Optional[bool]) directory.Provisioned {
	attributes, err := json.Marshal(map[string]string{"userName": m.address(i), "displayName": name})
	m.OK(err)
	return directory.Provisioned{UserName: m.address(i), Email: m.address(i), WorkEmail: m.address(i), Name: name, Active: active, Attributes: string(attributes)}
}

// apply changes the model of a user as a request of the directory does. It returns ErrOwnerProtected and changes nothing if
// the user is an owner who would be taken over or suspended.
func (u *modelUser) apply(active rolecall.Optional[bool], name string) error {
	v := *u
	if !v.managed {
		v.active, v.suspended = true, false
	}
	if active.Set {
		v.active = active.Value
	}
	switch {
	case !v.active && v.status != rolecall.UserSuspended:
		v.status, v.suspended = rolecall.UserSuspended, true
	case v.active && v.suspended:
		v.status, v.suspended = v.afterSuspension(), false
	}
	if v.owner && (!u.managed || v.status == rolecall.UserSuspended && u.status != rolecall.UserSuspended) {
		return rolecall.ErrOwnerProtected
	}
	v.managed, v.removed = true, false
	if name != "" {
		v.name = name
	}
	*u = v
	return nil
}

func (u *modelUser) afterSuspension() rolecall.UserStatus {
	if u.password {
		return rolecall.UserActive
	}
	return rolecall.UserPending
}

// visible reports whether the directory can read and change the user.
func (m *modelTenant) visible(u *modelUser) bool {
	return u.exists && (u.managed && !u.removed || !u.managed && m.provider.Directory.Matching == rolecall.MatchEmail)
}

func (m *modelTenant) create(i int) (string, error, error) {
	u, name, active := &m.users[i], m.newName(), m.wish()
	wanted := error(nil)
	switch {
	case !u.exists:
		v := modelUser{exists: true, status: rolecall.UserPending, managed: true, active: !active.Set || active.Value, name: name}
		if !v.active {
			v.status, v.suspended = rolecall.UserSuspended, true
		}
		u.become(v)
	case u.managed && u.removed:
		if !active.Set {
			wanted = u.apply(rolecall.Some(true), name)
		} else {
			wanted = u.apply(active, name)
		}
	case u.managed || m.provider.Directory.Matching == rolecall.MatchRefuse:
		wanted = rolecall.ErrEmailTaken
	default:
		wanted = u.apply(active, name)
	}
	entry, err := m.Directory.ProvisionUser(m.Context(), m.provider, m.sent(i, name, active))
	if err == nil {
		u.id = entry.User.ID
		m.asRead(&entry)
	}
	return fmt.Sprintf("create %d, active %v", i, active), wanted, err
}

// become replaces the user by a new one, and keeps what can be restored.
func (u *modelUser) become(v modelUser) {
	v.buried, v.buriedLocal, v.buriedOwner, v.buriedStatus, v.buriedID, v.buriedName = u.buried, u.buriedLocal, u.buriedOwner, u.buriedStatus, u.buriedID, u.buriedName
	*u = v
}

// asRead fails the test unless the entry is the stored one.
func (m *modelTenant) asRead(entry *rolecall.DirectoryEntry) {
	stored, _, err := m.Directory.ProvisionedUser(m.Context(), m.provider, entry.User.ID)
	if err != nil || stored.User.Version != entry.User.Version || stored.User.UpdatedAt != entry.User.UpdatedAt || stored.User.Status != entry.User.Status || stored.Of.Active != entry.Of.Active {
		m.Errorf("the result is %+v, and stored is %+v: %v", entry, stored, err)
	}
}

func (m *modelTenant) change(i int) (string, error, error) {
	u, name, active := &m.users[i], "", m.wish()
	if m.random.IntN(2) == 0 {
		name = m.newName()
	}
	var wanted error = rolecall.ErrNotFound
	if m.visible(u) {
		wanted = u.apply(active, name)
	}
	entry, _, err := m.Directory.ChangeProvisioned(m.Context(), m.provider, u.id, nil, func(e rolecall.DirectoryEntry) (directory.Provisioned, error) {
		if name == "" {
			return m.sent(i, e.User.Name, active), nil
		}
		return m.sent(i, name, active), nil
	})
	if err == nil {
		m.asRead(&entry)
		m.repeat(i, &entry)
	}
	return fmt.Sprintf("change %d, active %v, name %q", i, active, name), wanted, err
}

// repeat sends the values of the entry again, which must change nothing.
func (m *modelTenant) repeat(i int, entry *rolecall.DirectoryEntry) {
	again, _, err := m.Directory.ChangeProvisioned(m.Context(), m.provider, entry.User.ID, nil, func(e rolecall.DirectoryEntry) (directory.Provisioned, error) {
		return m.sent(i, e.User.Name, rolecall.Some(e.Of.Active)), nil
	})
	if err != nil || again.User.Version != entry.User.Version {
		m.Errorf("a repeat changes %+v to %+v: %v", entry, again, err)
	}
}

func (m *modelTenant) deprovision(i int) (string, error, error) {
	u := &m.users[i]
	var wanted error
	switch deletes := m.provider.Directory.Deprovisioning == rolecall.DeprovisionDelete; {
	case !m.visible(u):
		wanted = rolecall.ErrNotFound
	case u.owner:
		wanted = rolecall.ErrOwnerProtected
	case deletes:
		defer m.bury(i)
	default:
		u.suspended = u.managed && u.suspended || u.status != rolecall.UserSuspended
		u.managed, u.active, u.removed, u.status = true, false, true, rolecall.UserSuspended
	}
	return fmt.Sprintf("deprovision %d", i), wanted, m.Directory.Deprovision(m.Context(), m.provider, u.id, nil)
}

// bury marks the user as deleted.
func (m *modelTenant) bury(i int) {
	u := &m.users[i]
	status := u.status
	if status == rolecall.UserActive {
		status = rolecall.UserPending // without the password
	}
	*u = modelUser{buried: true, buriedLocal: u.local, buriedOwner: u.owner, buriedStatus: status, buriedID: u.id, buriedName: u.name}
	for _, g := range m.groups {
		delete(g.members, i)
	}
}

var modelGroupNames = []string{"Support", "Sales"}

// members returns random users, who can be unknown.
func (m *modelTenant) members() (indices []int, ids []rolecall.UserID) {
	for i := range modelUsers {
		if m.random.IntN(5) < 2 {
			indices, ids = append(indices, i), append(ids, m.idOf(i))
		}
	}
	return indices, ids
}

// idOf returns the id of the user, or one that no user has.
func (m *modelTenant) idOf(i int) rolecall.UserID {
	if id := m.users[i].id; !id.IsZero() {
		return id
	}
	return rolecall.NewID[rolecall.User](rolecall.Time(i + 1))
}

// takeOver returns the error of adding the users to a group, and the users after it.
func (m *modelTenant) takeOver(indices []int) (after [modelUsers]modelUser, err error) {
	after = m.users
	for _, i := range indices {
		if u := &after[i]; u.exists && u.managed && !u.removed {
			continue
		} else if !m.visible(u) {
			return after, rolecall.ErrUnknownMember
		} else if err := u.apply(rolecall.Optional[bool]{}, ""); err != nil {
			return after, err
		}
	}
	return after, nil
}

func (m *modelTenant) createGroup(int) (string, error, error) {
	name := pick(m.random, modelGroupNames...)
	indices, ids := m.members()
	after, wanted := m.takeOver(indices)
	isTaken := m.groups[name] != nil
	g, err := m.Directory.ProvisionGroup(m.Context(), m.provider, rolecall.GroupDraft{Name: name}, ids)
	if isTaken && wanted == nil {
		wanted = rolecall.ErrGroupNameTaken
	} else if isTaken && errors.Is(err, rolecall.ErrGroupNameTaken) {
		wanted = rolecall.ErrGroupNameTaken // which of both is reported depends on the store
	}
	if wanted == nil {
		m.users = after
		m.groups[name] = &modelGroup{g.ID, map[int]bool{}}
		for _, i := range indices {
			m.groups[name].members[i] = true
		}
	}
	if err == nil {
		m.groupAsRead(&g)
	}
	return fmt.Sprintf("create the group %s with %v", name, indices), wanted, err
}

// groupAsRead fails the test unless the group is the stored one.
func (m *modelTenant) groupAsRead(g *directory.ProvisionedGroup) {
	stored, err := m.Directory.ProvisionedGroup(m.Context(), m.provider, g.ID, true)
	if err != nil || stored.Version != g.Version || stored.UpdatedAt != g.UpdatedAt || stored.Name != g.Name || !slices.Equal(stored.Members, g.Members) {
		m.Errorf("the result is %+v, and stored is %+v: %v", g, stored, err)
	}
}

func (m *modelTenant) changeGroup(int) (string, error, error) {
	name := pick(m.random, modelGroupNames...)
	g := m.groups[name]
	if g == nil {
		_, err := m.Directory.ChangeProvisionedGroup(m.Context(), m.provider, rolecall.NewID[rolecall.Group](1), nil, directory.GroupChange{})
		return "change an unknown group", rolecall.ErrNotFound, err
	}
	indices, ids := m.members()
	c := directory.MemberChange{Users: ids, Removes: m.random.IntN(3) == 0, Others: m.random.IntN(2) == 0}
	after, wanted := m.takeOver(indices)
	if c.Removes {
		after, wanted, c.Others = m.users, nil, false
	}
	changed, err := m.Directory.ChangeProvisionedGroup(m.Context(), m.provider, g.id, nil, directory.GroupChange{Members: []directory.MemberChange{c}})
	if wanted == nil {
		m.users = after
		if c.Others {
			maps.DeleteFunc(g.members, func(i int, _ bool) bool { return !m.users[i].removed }) // the directory does not see the others
		}
		for _, i := range indices {
			if g.members[i] = !c.Removes; c.Removes {
				delete(g.members, i)
			}
		}
	}
	if err == nil {
		m.groupAsRead(&changed)
		again, err := m.Directory.ChangeProvisionedGroup(m.Context(), m.provider, g.id, nil, directory.GroupChange{Name: rolecall.Some(name), Members: []directory.MemberChange{c}})
		if err != nil || again.Version != changed.Version {
			m.Errorf("a repeat changes %+v to %+v: %v", changed, again, err)
		}
	}
	return fmt.Sprintf("change the group %s: %v, removes %t, others %t", name, indices, c.Removes, c.Others), wanted, err
}

func (m *modelTenant) deleteGroup(int) (string, error, error) {
	name := pick(m.random, modelGroupNames...)
	g := m.groups[name]
	if g == nil {
		return "delete an unknown group", rolecall.ErrNotFound, m.Directory.DeprovisionGroup(m.Context(), m.provider, rolecall.NewID[rolecall.Group](1), nil)
	}
	delete(m.groups, name)
	return "delete the group " + name, nil, m.Directory.DeprovisionGroup(m.Context(), m.provider, g.id, nil)
}
