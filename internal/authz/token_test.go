package authz_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// ofToken returns two principals: that of an API token with the permissions, and that of a
// session of the token's holder.
func ofToken(permissions []rolecall.Permission, assignments []rolecall.Assignment) (token, session *authz.Principal) {
	state := rolecall.APITokenState{
		Token:  rolecall.APIToken{ID: rolecall.NewID[rolecall.APIToken](aMoment), UserID: myself.ID, Permissions: permissions, ExpiresAt: aMoment + 7},
		Holder: myself, Assignments: assignments,
	}
	return authz.NewTokenPrincipal(rolecall.Tenant{}, state, aMoment), authz.NewPrincipal(rolecall.Tenant{}, myself, rolecall.Session{}, assignments, aMoment)
}

// TestATokenIsRestrictedToItsPermissions checks that a token allows exactly the
// permissions that both the token and its holder have. The grants that Grants lists must
// be the same permissions.
func TestATokenIsRestrictedToItsPermissions(t *testing.T) {
	somePermissions := rapid.SliceOfN(anyPermission, 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		var assignments []rolecall.Assignment
		for range rapid.IntRange(0, 3).Draw(t, "assignments") {
			assignments = append(assignments, rolecall.Assignment{
				Role:  rolecall.Role{Permissions: somePermissions.Draw(t, "held"), Grants: somePermissions.Draw(t, "granted")},
				Reach: reaches.Draw(t, "where"), ExpiresAt: rolecall.Never,
			})
		}
		limits := somePermissions.Draw(t, "token")
		token, session := ofToken(limits, assignments)
		asked := anyPermission.Draw(t, "asked")

		reach := rolecall.Nowhere()
		if covered(limits, asked) {
			reach = session.Reach(asked)
		}
		if got := token.Reach(asked); !got.Covers(reach) || !reach.Covers(got) {
			t.Errorf("%s holds %s, want %s", asked, reachText(got), reachText(reach))
		}
		for _, grants := range []bool{false, true} {
			_, lacks := session.MissingFor([]rolecall.Permission{asked}, rolecall.Within("Sales"), aMoment, grants)
			if _, got := token.MissingFor([]rolecall.Permission{asked}, rolecall.Within("Sales"), aMoment, grants); got != (lacks || !covered(limits, asked)) {
				t.Errorf("%s is missing: %v, of the holder %v", asked, got, lacks)
			}
		}
		everywhere, _, _ := token.Grants()
		holds := slices.ContainsFunc(assignments, func(a rolecall.Assignment) bool {
			return a.Reach.IsEverywhere() && covered(a.Role.Permissions, asked)
		})
		if got, want := covered(everywhere, asked), holds && covered(limits, asked); got != want {
			t.Errorf("%s is shown to be held: %v, want %v", asked, got, want)
		}
	})
}

func TestATokenHasFewRightsOnItsUser(t *testing.T) {
	token, session := ofToken(permissions("shop/a:b"), []rolecall.Assignment{holds{permissions: "*:* */*:*"}.assignment()})
	if !session.IsSelf(myself.ID) || token.IsSelf(myself.ID) || !session.Interactive() || token.Interactive() {
		t.Error("a token passes for the person")
	}
	if !token.Sees(&myself) || token.ReadableMembers(&myself) != rolecall.AllUserMembers {
		t.Error("a token does not read the record of its user")
	}
	if token.ReadableListMembers(&myself) != 0 || !token.Visible().IsNowhere() || token.Sees(aUser("Legal")) {
		t.Error("a token sees others, or its user in a list")
	}
	if token.ValidUntil != aMoment+7 || session.ValidUntil != rolecall.Never {
		t.Errorf("valid until %v and %v", token.ValidUntil, session.ValidUntil)
	}
}

func TestActors(t *testing.T) {
	token, session := ofToken(permissions("shop/a:b"), nil)
	account := authz.NewTokenPrincipal(rolecall.Tenant{}, rolecall.APITokenState{
		Token: rolecall.APIToken{ID: rolecall.NewID[rolecall.APIToken](aMoment), ServiceAccountID: rolecall.NewID[rolecall.ServiceAccount](aMoment)}, Holder: myself,
	}, aMoment)
	for _, test := range []struct {
		p    *authz.Principal
		want rolecall.Actor
	}{
		{session, rolecall.Actor{Type: rolecall.ActorUser, ID: myself.ID, Via: "http"}},
		{token, rolecall.Actor{Type: rolecall.ActorUser, ID: myself.ID, Via: "token", Token: token.Token.ID}},
		{account, rolecall.Actor{Type: rolecall.ActorServiceAccount, ID: myself.ID, Via: "token", Token: account.Token.ID}},
		{&authz.Principal{Kind: authz.PrincipalOperator, User: myself, Operator: &rolecall.OperatorKey{}}, rolecall.Actor{Type: rolecall.ActorOperator, ID: myself.ID, Via: "http"}},
		{&authz.Principal{Kind: authz.PrincipalOperator}, rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}},
	} {
		if got := test.p.Actor(); got != test.want {
			t.Errorf("%+v, want %+v", got, test.want)
		}
	}
}

// The list of a token's permissions for display must have a maximum length, even for a
// token and a role that both have the maximum number of permissions.
func TestDisplayedPermissionsOfATokenAreBounded(t *testing.T) {
	var held, limits []string
	for i := range rolecall.RolePermissionsMax {
		held = append(held, "shop/*.f"+strings.Repeat("x", i%60)+string(rune('a'+i/60))+":*")
		limits = append(limits, "*/r"+strings.Repeat("x", i%60)+string(rune('a'+i/60))+":*")
	}
	token, _ := ofToken(permissions(limits...), []rolecall.Assignment{{Role: rolecall.Role{Permissions: permissions(held...)}, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never}})
	if everywhere, _, _ := token.Grants(); len(everywhere) != 1024 {
		t.Errorf("%d permissions are shown", len(everywhere))
	}
	if !token.Reach(permissions("shop/rxa.fxxa:read")[0]).IsEverywhere() {
		t.Error("what is not shown is not held")
	}
}

func TestAnOperatorHoldsEveryPermissionAndIsNoUser(t *testing.T) {
	key := (&rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: time.Hour}).OperatorKey(aMoment)
	p := authz.NewOperatorPrincipal(rolecall.Tenant{Name: "acme"}, &key, aMoment)
	if p.Kind != authz.PrincipalOperator || p.Interactive() || p.Operator != &key || p.Tenant.Name != "acme" || p.ValidUntil != rolecall.Never {
		t.Errorf("the principal is %+v", p)
	}
	if missing, ok := p.MissingFor(permissions("*:*", "*/*:*"), rolecall.Everywhere(), rolecall.Never, false); ok {
		t.Errorf("an operator lacks %s", missing)
	}
	if u := aUser("Sales"); !p.Sees(u) || p.ReadableMembers(u) != rolecall.AllUserMembers {
		t.Error("an operator does not see everybody")
	}
}
