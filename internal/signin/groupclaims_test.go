package signin_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// claimed is a fixture whose connection fills groups from the claim groups.
type claimed struct {
	*nodetest.Provided
	user rolecall.User
}

// claimGroups starts a provider at which the user ada has an identity.
func claimGroups(f *nodetest.Fixture, rules rolecall.ConnectionGroups) *claimed {
	f.Helper()
	if rules.MatchBy == "" {
		rules.MatchBy = rolecall.MatchName
	}
	rules.Claim, rules.Scopes = "groups", []string{"groups", "email"}
	c := &claimed{Provided: nodetest.Provide(f, func(c *rolecall.Connection) { c.Groups = &rules }), user: f.NewMember("ada")}
	c.Identity(c.user.ID, "ada")
	return c
}

// signIn signs ada in with the value of the claim, and returns the names of the groups of the session, sorted.
func (c *claimed) signIn(claim any) []string {
	c.Helper()
	person(c.Provided, "ada", map[string]any{"groups": claim})
	return c.again()
}

// again signs the person in, and returns the names of the groups of the session, sorted.
func (c *claimed) again() []string {
	c.Helper()
	in, err := signInWith(c.Provided, signin.ConnectionStart{})
	c.OK(err)
	names := []string{}
	for _, g := range in.Principal.Groups {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return names
}

// is fails the test unless the names are as wanted.
func (c *claimed) is(got []string, want ...string) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Errorf("the groups are %q, want %q", got, want)
	}
}

// filled stores a group whose source is the connection.
func (c *claimed) filled(name string, externalID *string) rolecall.Group {
	c.Helper()
	draft := rolecall.GroupDraft{Name: name, ExternalID: externalID, Source: rolecall.SourceOf(c.Connection.ID)}
	g := draft.Group(c.Clock.Now())
	c.OK(c.Store.Update(c.Context(), c.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertGroup(g)
		return nil
	}))
	return g
}

// local creates a group without a source.
func (c *claimed) local(name string) rolecall.Group {
	c.Helper()
	created, err := c.Directory.CreateGroup(c.Context(), c.Owner, nodetest.NewKey(), rolecall.GroupDraft{Name: name})
	c.OK(err)
	return created.Value
}

// events returns the events of the type, the oldest first.
func (c *claimed) events(kind rolecall.EventType) []rolecall.Event {
	c.Helper()
	var page rolecall.Page[rolecall.Event]
	c.OK(c.Store.View(c.Context(), c.Tenant.ID, func(tx *store.Tx) (err error) {
		page, err = tx.Events(rolecall.EventQuery{Type: kind, Limit: 100})
		return err
	}))
	slices.Reverse(page.Items)
	return page.Items
}

// skipped fails the test unless the reasons of the events of skipped claims are as wanted.
func (c *claimed) skipped(want ...string) {
	c.Helper()
	reasons := []string{}
	for _, e := range c.events(rolecall.EventGroupsSkipped) {
		reasons = append(reasons, e.Reason)
		if e.Actor.ID != c.user.ID || e.Subject != rolecall.About(c.Connection.ID) {
			c.Errorf("the event is %+v", e)
		}
	}
	if !slices.Equal(reasons, want) {
		c.Errorf("the reasons are %q, want %q", reasons, want)
	}
}

func TestAClaimDecidesTheGroupsOfItsConnection(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{})
		engineers, local := c.filled("Engineers", nil), c.local("Local")
		c.filled("/acme/ops", nil)
		role := f.NewRole("Reader", "users:read")
		f.OK(f.Store.Update(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(engineers.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: f.Clock.Now()})
			return nil
		}))
		f.OK(f.Directory.AddMember(t.Context(), f.Owner, local.ID, c.user.ID))
		person(c.Provided, "ada", map[string]any{"groups": []string{"Engineers", "Unknown", "ops", "Local", "Engineers "}})
		in, err := signInWith(c.Provided, signin.ConnectionStart{})
		f.OK(err)
		if !in.Principal.Reach(rolecall.UsersRead).IsEverywhere() {
			t.Error("the session does not have the role of the group")
		}
		if scopes := strings.Fields(c.Provider.Last(oidctest.PathAuthorization).Get("scope")); !slices.Equal(scopes, []string{"openid", "email", "profile", "groups"}) {
			t.Errorf("the requested scopes are %q", scopes)
		}
		added := c.events(rolecall.EventMemberAdded)
		if e := added[len(added)-1]; len(added) != 2 || e.Actor.ID != c.user.ID || e.Subject != rolecall.About(c.user.ID) || e.Reason != "claim of Acme SSO" ||
			!strings.Contains(string(e.Values.After), engineers.ID.String()) {
			t.Errorf("the events are %+v", added)
		}
		c.is(c.signIn([]string{"Engineers"}), "Engineers", "Local")
		if n := len(c.events(rolecall.EventMemberAdded)); n != 2 {
			t.Errorf("an unchanged claim wrote events: %d", n)
		}
		c.is(c.signIn("/acme/ops"), "/acme/ops", "Local") // a text is one value, with its slash
		if principal, err := f.Authenticate(f.Node, in.Token); err != nil || principal.Reach(rolecall.UsersRead).IsEverywhere() {
			t.Errorf("the first session still has the role of the group that was left: %v", err)
		}
		removed := c.events(rolecall.EventMemberRemoved)
		if e := removed[0]; len(removed) != 1 || e.Reason != "claim of Acme SSO" || !strings.Contains(string(e.Values.Before), engineers.ID.String()) {
			t.Errorf("the events are %+v", removed)
		}
		c.is(c.signIn([]string{"engineers", "Ｅngineers", "Engin\u00adeers"}), "Local") // other groups at the provider
		c.is(c.signIn([]string{}), "Local")
		c.skipped()
	})
}

func TestTheRemovalOfAnIdentityEndsItsMemberships(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{})
		c.filled("Engineers", nil)
		local := c.local("Local")
		f.OK(f.Directory.AddMember(t.Context(), f.Owner, local.ID, c.user.ID))
		c.is(c.signIn("Engineers"), "Engineers", "Local")
		all, err := f.SignIn.Identities(t.Context(), f.Owner, c.user.ID)
		f.OK(err)
		f.OK(f.SignIn.DeleteIdentity(t.Context(), f.Owner, c.user.ID, all[0].ID))
		page, err := f.Directory.UserGroups(t.Context(), f.Owner, c.user.ID, nil, 10)
		f.OK(err)
		if len(page.Items) != 1 || page.Items[0].Group.ID != local.ID {
			t.Errorf("the memberships are %+v", page.Items)
		}
		if removed := c.events(rolecall.EventMemberRemoved); len(removed) != 1 || removed[0].Reason != "identity removed" || removed[0].Actor.ID != f.Owner.User.ID {
			t.Errorf("the events are %+v", removed)
		}
	})
}

func TestAClaimThatCannotBeAppliedChangesNothing(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{})
		c.filled("Engineers", nil)
		c.is(c.signIn("Engineers"), "Engineers")
		many := make([]string, rolecall.GroupsOfUserMax+1)
		for i := range many {
			many[i] = fmt.Sprint("Group ", i)
		}
		var want []string
		for _, test := range []struct {
			claims map[string]any
			reason string
		}{
			{nil, "claim-absent"},
			{map[string]any{"groups": nil}, "claim-absent"},
			{map[string]any{"_claim_names": map[string]any{"groups": "src1"}, "_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://graph.example"}}}, "overage"},
			{map[string]any{"groups": map[string]any{"name": "Engineers"}}, "invalid-claim"},
			{map[string]any{"groups": []any{"Sales", 7}}, "invalid-claim"},
			{map[string]any{"groups": true}, "invalid-claim"},
			{map[string]any{"groups": many}, "too-many-groups"},
		} {
			person(c.Provided, "ada", test.claims)
			c.is(c.again(), "Engineers")
			want = append(want, test.reason)
		}
		c.skipped(want...)
		c.is(c.signIn(append(many[:rolecall.GroupsOfUserMax-1:rolecall.GroupsOfUserMax-1], "Engineers", "ENGINEERS", "\x00", strings.Repeat("a", 300))), "Engineers")
		c.skipped(want...)
	})
}

func TestAClaimIsReadFromUserInfoIfTheIDTokenLacksIt(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{})
		c.filled("Engineers", nil)
		c.filled("Sales", nil)
		set := func(claims, info map[string]any) {
			c.Provider.Set(func(s *oidctest.Settings) {
				s.Person = oidctest.Person{Subject: "ada", Claims: claims, UserInfo: info}
			})
		}
		set(map[string]any{"email": "ada@acme.example"}, map[string]any{"groups": []string{"Engineers"}, "email": "other@acme.example"})
		c.is(c.again(), "Engineers")
		var identity rolecall.Identity
		f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
			identity, err = tx.Identity(c.Connection.Issuer, "ada")
			return err
		}))
		if identity.Email != "ada@acme.example" {
			t.Errorf("the address of the ID token was replaced: %s", identity.Email)
		}
		set(map[string]any{"groups": "Sales"}, map[string]any{"groups": "Engineers"}) // the ID token decides
		before := c.Provider.Requests(oidctest.PathUserInfo)
		c.is(c.again(), "Sales")
		if n := c.Provider.Requests(oidctest.PathUserInfo); n != before {
			t.Error("the userinfo endpoint was asked for a claim that the ID token has")
		}
		set(nil, map[string]any{"groups": []string{"Engineers"}})
		userInfoFails(c.Provided, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		c.is(c.again(), "Sales")
		userInfoFails(c.Provided, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
		c.is(c.again(), "Sales")
		c.skipped("claim-unavailable", "claim-unavailable")
	})
}

func TestAClaimCreatesGroups(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{Create: true})
		c.local("Sales") // another one, without a source
		c.is(c.signIn([]string{"/Sales/EMEA", "Sales", " sales", "line\nbreak", ""}), "/Sales/EMEA", "Sales")
		created := c.events(rolecall.EventGroupCreated)
		e := created[len(created)-1]
		if len(created) != 3 || e.Actor.ID != c.user.ID || e.Reason != "claim of Acme SSO" || !strings.Contains(string(e.Values.After), c.Connection.ID.String()) {
			t.Errorf("the events are %+v", created)
		}
		c.skipped("invalid-value")
		f.OK(f.Store.Update(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			page, err := tx.Groups(rolecall.GroupQuery{Limit: 1, Count: true})
			for i := range rolecall.GroupsMax - page.Total.Count {
				draft := rolecall.GroupDraft{Name: fmt.Sprint("Group ", i)}
				tx.InsertGroup(draft.Group(f.Clock.Now()))
			}
			return err
		}))
		c.is(c.signIn([]string{"One more"}), "/Sales/EMEA", "Sales")
		c.is(c.signIn([]string{"Sales"}), "Sales")
		c.skipped("invalid-value", "too-many-groups")
	})
}

func TestAClaimNamesGroupsByExternalID(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{MatchBy: rolecall.MatchExternalID, Create: true})
		c.filled("Engineers", new("b1f2"))
		c.filled("7c7c", new("other"))
		c.is(c.signIn([]string{"b1f2", "B1F2", "b1f2", "a0a0", "7C7C"}), "B1F2", "Engineers", "a0a0")
		c.skipped("name-taken")
		c.is(c.signIn([]string{"a0a0"}), "a0a0")
	})
}

func TestAClaimCountsTheOtherGroupsOfTheUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{})
		c.filled("Engineers", nil)
		c.filled("Sales", nil)
		f.OK(f.Store.Update(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			var all []rolecall.Membership
			for i := range rolecall.GroupsOfUserMax - 1 {
				draft := rolecall.GroupDraft{Name: fmt.Sprintf("Local %03d", i)}
				g := draft.Group(f.Clock.Now())
				tx.InsertGroup(g)
				all = append(all, rolecall.Membership{Group: rolecall.GroupName{ID: g.ID}, User: c.user.ID, AddedAt: f.Clock.Now()})
			}
			tx.JoinGroups(all)
			return nil
		}))
		ours := func(claim ...string) []string {
			return slices.DeleteFunc(c.signIn(claim), func(name string) bool { return strings.HasPrefix(name, "Local ") })
		}
		c.is(ours("Sales"), "Sales")
		c.is(ours("Sales", "Engineers"), "Sales")
		c.is(ours("Engineers"), "Engineers")
		c.skipped("too-many-groups")
	})
}

func TestAClaimFillsGroupsOfNewUsersButNotOfSuspendedOnes(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{Create: true})
		f.OK(nodetest.ErrorOf(f.SignIn.UpdateConnection(t.Context(), f.Owner, c.Connection.ID, rolecall.ConnectionPatch{
			Provisioning: rolecall.Some(&rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}}),
		}, nil)))
		claims := verified(nodetest.Address("new"))
		claims["groups"] = []string{"Engineers"}
		person(c.Provided, "new", claims)
		c.is(c.again(), "Engineers")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(t.Context(), f.Owner, c.user.ID, "")))
		person(c.Provided, "ada", map[string]any{"groups": []string{"Engineers"}})
		_, err := signInWith(c.Provided, signin.ConnectionStart{})
		refused(c.Provided, err, signin.CodeRefused, "the user is suspended")
		if n := len(c.events(rolecall.EventMemberAdded)); n != 1 {
			t.Errorf("%d users were added", n)
		}
	})
}

func TestConcurrentSignInsCreateEachGroupOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{Create: true})
		c.Provider.Set(func(s *oidctest.Settings) {
			s.Person = oidctest.Person{Subject: "ada", Claims: map[string]any{"groups": []string{"Engineers", "Sales"}}}
		})
		const parallel = 8
		errs := make(chan error, parallel)
		for range parallel {
			cookie, query := begin(c.Provided, f.Attempt(), signin.ConnectionStart{})
			go func() { errs <- nodetest.ErrorOf(complete(c.Provided, f.Attempt(), cookie, query)) }()
		}
		for range parallel {
			f.OK(<-errs)
		}
		if created, added := len(c.events(rolecall.EventGroupCreated)), len(c.events(rolecall.EventMemberAdded)); created != 2 || added != 2 {
			t.Errorf("%d groups were created, and %d memberships", created, added)
		}
		c.is(c.again(), "Engineers", "Sales")
	})
}

func TestTheGroupsOfADeletedConnectionRemain(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := claimGroups(f, rolecall.ConnectionGroups{})
		engineers, sales := c.filled("Engineers", new("1")), c.filled("Sales", new("2"))
		c.local("Sales")
		c.local("sales (Acme SSO)")
		f.OK(nodetest.ErrorOf(f.Directory.CreateGroup(t.Context(), f.Owner, nodetest.NewKey(), rolecall.GroupDraft{Name: "Other", ExternalID: new("2")})))
		c.is(c.signIn([]string{"Engineers", "Sales"}), "Engineers", "Sales")
		f.OK(f.SignIn.DeleteConnection(t.Context(), f.Owner, c.Connection.ID, true, nil))
		one, err := f.Directory.Group(t.Context(), f.Owner, engineers.ID)
		f.OK(err)
		other, err := f.Directory.Group(t.Context(), f.Owner, sales.ID)
		f.OK(err)
		if one.Name != "Engineers" || one.ExternalID == nil || one.Source != (rolecall.MemberSource{}) || other.Name != "Sales (Acme SSO 2)" || other.ExternalID != nil {
			t.Errorf("the groups are %+v and %+v", one, other)
		}
		page, err := f.Directory.UserGroups(t.Context(), f.Owner, c.user.ID, nil, 10)
		f.OK(err)
		if len(page.Items) != 2 {
			t.Errorf("the memberships are %+v", page.Items)
		}
		updated := c.events(rolecall.EventGroupUpdated)
		if len(updated) != 2 || !slices.Equal(updated[0].Members, []string{"source"}) || !slices.Equal(updated[1].Members, []string{"name", "externalId", "source"}) ||
			updated[0].Reason != "connection deleted" {
			t.Errorf("the events are %+v", updated)
		}
		f.OK(f.Directory.RemoveMember(t.Context(), f.Owner, engineers.ID, c.user.ID))
	})
}
