package seed

import (
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

func TestMadeUpPeopleCouldBeReal(t *testing.T) {
	c := &Options{Users: 2000, Departments: 7, Roles: 30, Holders: 150, Assignments: 12, Passwords: 3, Seed: 1}
	p := newPeople(c, "load", rolecall.NewID[rolecall.User](rolecall.TimeOf(time.Now())))
	ids, emails := map[rolecall.UserID]bool{}, map[string]bool{}
	holders, others, statuses := 0, 0, map[rolecall.UserStatus]int{}
	for i := range c.Users {
		u, held := p.person(i)
		pairs, err := u.Metadata.Pairs()
		if err != nil {
			t.Fatal(err)
		}
		draft := rolecall.UserDraft{Email: u.Email, Name: u.Name, Department: u.Department, ExternalID: u.ExternalID, Metadata: pairs}
		if err := draft.Check(rolecall.DefaultNameMin).Err(); err != nil {
			t.Fatalf("%+v: %v", u, err)
		}
		if u.ID.CreatedAt() != u.CreatedAt {
			t.Fatalf("the id of %+v is of another moment: %v", u, u.ID.CreatedAt())
		}
		ids[u.ID], emails[u.EmailKey()] = true, true
		statuses[u.Status]++
		if i == 0 && len(held) != c.Assignments {
			t.Errorf("the first user holds %d roles, want %d", len(held), c.Assignments)
		}
		for _, a := range held {
			switch {
			case a.Role.ID == p.roles[0].ID:
				holders++
			case i > 0:
				others++
			}
		}
	}
	if len(ids) != c.Users || len(emails) != c.Users {
		t.Errorf("%d ids and %d addresses of %d users", len(ids), len(emails), c.Users)
	}
	if holders != c.Holders || others != c.Users/10 {
		t.Errorf("%d hold the first role and %d another, want %d and %d", holders, others, c.Holders, c.Users/10)
	}
	if statuses[rolecall.UserPending] < 100 || statuses[rolecall.UserSuspended] < 10 || statuses[rolecall.UserActive] < 1500 {
		t.Errorf("the users are %v", statuses)
	}
	for i, role := range p.roles {
		permissions := []string{role.Permissions[0].String(), role.Permissions[1].String()}
		if _, faults := (&rolecall.RoleDraft{Key: role.Key, Name: role.Name, Permissions: permissions}).Role(rolecall.TimeOf(time.Now()), rolecall.DefaultNameMin); faults != nil {
			t.Errorf("role %d: %v", i, faults.Err())
		}
	}
}

func TestTheSameSeedMakesTheSamePeople(t *testing.T) {
	owner := rolecall.NewID[rolecall.User](rolecall.TimeOf(time.Now()))
	one := func(seed uint64, tenant string) any {
		u, held := newPeople(&Options{Users: 10, Departments: 2, Roles: 3, Holders: 9, Seed: seed}, tenant, owner).person(5)
		return []any{u, held}
	}
	if !reflect.DeepEqual(one(1, "load"), one(1, "load")) {
		t.Error("the same seed made another person")
	}
	if reflect.DeepEqual(one(1, "load"), one(2, "load")) || reflect.DeepEqual(one(1, "load"), one(1, "other")) {
		t.Error("another seed or tenant made the same person")
	}
}

// The service lists the users of a filled tenant, and users with a password can sign in.
func TestASeededTenantServes(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "rolecall.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	options := access.Options{
		Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, 1, 0), Keys: secret.NewKeys(secret.NewKey()),
	}
	const password = "correct horse battery"
	hash, err := options.Passwords.Hash(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Name: "load", Tenants: 1, Users: 2*chunk + 1, Departments: 4, Roles: 3, Holders: chunk + 2, Passwords: chunk + 1, Seed: 1}
	if err := Fill(t.Context(), db, options, o, hash, nil, io.Discard); err != nil {
		t.Fatal(err)
	}
	s := node.New(db, options)
	tenant, err := s.Directory.Tenant(t.Context(), "load")
	if err != nil {
		t.Fatal(err)
	}
	people := newPeople(o, "load", rolecall.UserID{})
	for number, ok := range map[int]bool{0: true, chunk: true, chunk + 1: false} {
		user, _ := people.person(number)
		attempt := access.Anonymous{Tenant: tenant, TenantName: "load", Source: "192.0.2.1"}
		if _, err := s.SignIn.Login(t.Context(), attempt, user.Email, password); (err == nil) != ok {
			t.Errorf("user %d: %v, want them signed in: %v", number, err, ok)
		}
	}
	signedIn, err := s.SignIn.Login(t.Context(), access.Anonymous{Tenant: tenant, TenantName: "load", Source: "192.0.2.1"}, Owner, password)
	if err != nil {
		t.Fatal(err)
	}
	call := access.Caller{Principal: signedIn.Principal, Source: "192.0.2.1"}
	for _, filter := range []struct {
		listing directory.UserListing
		want    int
	}{
		{directory.UserListing{Limit: 1, Count: true}, o.Users + 1},
		{directory.UserListing{Limit: 1, Count: true, Role: people.roles[0].ID}, o.Holders},
	} {
		page, err := s.Directory.Users(t.Context(), call, filter.listing)
		if err != nil {
			t.Fatal(err)
		}
		if page.Total.Count != filter.want {
			t.Errorf("%d users, want %d", page.Total.Count, filter.want)
		}
	}
}
