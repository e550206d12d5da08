package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// secrets returns the texts about the two users, and about other objects, that the caller may not
// read.
func secrets(c access.Caller, shown, deleted *rolecall.User) (list []string) {
	sight := c.ReadableMembers(shown)
	for m, of := range map[rolecall.UserMember]func(*rolecall.User) string{
		rolecall.MemberName:       func(u *rolecall.User) string { return u.Name },
		rolecall.MemberEmail:      func(u *rolecall.User) string { return u.Email },
		rolecall.MemberDepartment: func(u *rolecall.User) string { return *u.Department },
		rolecall.MemberExternalID: func(u *rolecall.User) string { return *u.ExternalID },
	} {
		if !sight.Has(m) {
			list = append(list, of(shown))
		}
		if !sight.Has(m) || c.Reach(rolecall.UsersRestore).IsNowhere() {
			list = append(list, of(deleted))
		}
	}
	for word, permission := range map[string]rolecall.Permission{
		"Secret role": rolecall.RolesRead, "Secret group": rolecall.GroupsRead, "Secret account": rolecall.ServiceAccountsRead, "Secret sender": rolecall.TenantRead, "Secret reason": rolecall.EventsRead,
	} {
		if c.Reach(permission).IsNowhere() {
			list = append(list, word)
		}
	}
	return list
}

// pathsAbout returns the URL paths of all pages. Pages about a user are about u.
func (f *fixture) pathsAbout(u *rolecall.User, role rolecall.RoleID, account rolecall.ServiceAccountID, group rolecall.GroupID) (paths []string) {
	user := u.ID.String()
	names := strings.NewReplacer("{tenant}", "acme", "/roles/{id}", "/roles/"+role.String(), "/service-accounts/{id}", "/service-accounts/"+account.String(), "/groups/{id}", "/groups/"+group.String(), "{id}", user, "{userId}", user,
		"{roleId}", role.String(), "{tokenId}", user, "{sessionId}", user, "{passkeyId}", "eA", "{rest...}", "x")
	for _, page := range new(console).pages() {
		path := "/console" + names.Replace(page.path)
		if strings.Contains(path, "/selected/") {
			path += "?user=" + user
		}
		paths = append(paths, path)
	}
	return paths
}

func TestNoPageShowsWhatMayNotBeRead(t *testing.T) {
	if testing.Short() {
		t.Skip("reads every page with every permission")
	}
	f := newFixture(t)
	ctx, c := t.Context(), f.asOwner()
	var users []rolecall.User
	for _, word := range []string{"shown", "deleted"} {
		department, id, sender := "Department of the "+word, "id-of-the-"+word, "Secret sender"
		created, err := f.node.Directory.CreateUser(ctx, c, idempotency.Key{Text: word, Fingerprint: []byte(word)}, rolecall.UserDraft{
			Email: word + "@secret.example", Name: "Name of the " + word, Department: &department, ExternalID: &id, Invite: true,
		})
		if err == nil {
			_, err = f.node.Directory.SuspendUser(ctx, c, created.Value.ID, "Secret reason")
		}
		if err == nil {
			_, err = f.node.Directory.UpdateTenant(ctx, c, rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Texts: map[string]*string{"mailSenderName": &sender}}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, created.Value)
	}
	shown, deleted, role := &users[0], &users[1], f.makeRole("Secret role", "shop/invoices:read")
	account, err := f.node.Directory.CreateServiceAccount(ctx, c, idempotency.Key{Text: "a", Fingerprint: []byte("a")}, rolecall.ServiceAccountDraft{Name: "Secret account"})
	if err == nil {
		_, _, err = f.node.Directory.AssignRole(ctx, c, rolecall.HolderOf(deleted.ID), role.ID, rolecall.AssignmentDraft{})
	}
	group := f.makeGroup("Secret group")
	for _, u := range []*rolecall.User{shown, deleted} {
		if err == nil {
			err = f.node.Directory.AddMember(ctx, c, group.ID, u.ID)
		}
	}
	if err == nil {
		err = f.node.Directory.DeleteUser(ctx, c, deleted.ID, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	paths := append(f.pathsAbout(shown, role.ID, account.Value.ID, group.ID), f.pathsAbout(deleted, role.ID, account.Value.ID, group.ID)...)
	for _, permission := range rolecall.OwnPermissions() {
		for _, held := range [][]string{{permission.String()}, {permission.String(), rolecall.EventsRead.String()}} {
			if len(held) == 2 && held[0] == held[1] {
				continue
			}
			email := "reader" + strings.NewReplacer(":", "-").Replace(strings.Join(held, "-")) + "@example.com"
			f.hire(email, "Rita Reader", held)
			cookie := f.signIn("acme", email)
			signIn, err := f.node.SignIn.Login(ctx, access.Anonymous{Tenant: c.Tenant, TenantName: "acme"}, email, password)
			if err != nil {
				t.Fatal(err)
			}
			hidden := secrets(access.Caller{Principal: signIn.Principal}, shown, deleted)
			for _, path := range paths {
				a := f.get(path, cookie)
				if a.StatusCode >= http.StatusInternalServerError {
					t.Errorf("%v: %s: %d", held, path, a.StatusCode)
				}
				for _, word := range hidden {
					if strings.Contains(a.body, word) {
						t.Errorf("%v: %s shows %q", held, path, word)
					}
				}
			}
		}
	}
}
