package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/client"
)

func TestCoversAnswersEveryPublishedCase(t *testing.T) {
	page, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (yes|no) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 46 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		want := row[3] == "yes"
		caller := &client.Principal{Permissions: []string{row[1]}}
		if client.Covers(row[1], row[2]) != want || client.Can(caller, row[2], "") != want {
			t.Errorf("%s covers %s: %v", row[1], row[2], !want)
		}
	}
}

func TestCanAgreesWithTheService(t *testing.T) {
	d := newDemo(t)
	owner, ctx := d.signedIn(t), t.Context()
	for _, reach := range []*client.Reach{nil, {Departments: []string{"Sales", "Ops"}}} {
		c := d.person(t, owner, reach, "shop/invoices:*", "shop/orders.total:read", "*/carts:read", "store/*:read")
		caller, err := c.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		one := func(of ...string) string { return of[random.IntN(len(of))] }
		checks := make([]client.PermissionCheck, 200)
		for i := range checks {
			checks[i].Permission = one("shop/", "store/", "other/") + one("invoices", "orders", "carts") + one("", ".total") + one(":read", ":approve")
			if where := one("", "Sales", "Ops", "Board"); where != "" {
				checks[i].Department = &where
			}
		}
		allowed, err := c.CheckPermissions(ctx, checks...)
		if err != nil {
			t.Fatal(err)
		}
		for i, check := range checks {
			where := ""
			if check.Department != nil {
				where = *check.Department
			}
			if got := client.Can(&caller, check.Permission, where); got != allowed[i] {
				t.Errorf("%s in %q: %v", check.Permission, where, got)
			}
		}
	}
}

// password is the password of the persons.
const password = "a long enough password of theirs"

// person returns a client of a new user with a role that has the permissions.
func (d demo) person(t *testing.T, owner *client.Client, reach *client.Reach, permissions ...string) *client.Client {
	t.Helper()
	ctx, name := t.Context(), fmt.Sprintf("Person %d", rand.Uint64())
	email := strings.ReplaceAll(strings.ToLower(name), " ", "") + "@demo.example"
	role, err := owner.CreateRole(ctx, "", client.NewRole{Name: name, Permissions: permissions})
	if err != nil {
		t.Fatal(err)
	}
	user, err := owner.CreateUser(ctx, "", client.NewUser{Email: email, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.AssignRole(ctx, user.ID, role.ID, reach, nil); err != nil {
		t.Fatal(err)
	}
	d.command(t, password, "user", "set-password", "--tenant", d.Tenant, "--email", email, "--password-stdin")
	c := d.client()
	if _, err := c.Login(ctx, email, password); err != nil {
		t.Fatal(err)
	}
	return c
}
