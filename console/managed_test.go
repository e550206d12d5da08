package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// manage makes a directory the one of the user, and returns the id of the directory.
func (f *fixture) manage(user rolecall.UserID) rolecall.DirectoryID {
	f.t.Helper()
	directory := rolecall.NewID[rolecall.Directory](f.node.Access.Now())
	if err := f.node.Access.Store.Update(f.t.Context(), f.asOwner().Tenant.ID, func(tx *store.Tx) error {
		old, err := tx.UserByID(user)
		if err != nil {
			return err
		}
		managed := old
		managed.ManagedBy, managed.Version = &directory, old.Version+1
		_, err = tx.UpdateUser(old, managed)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	return directory
}

func TestOnlyTheDirectoryOfAUserChangesTheNameAndTheAddress(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	cookie, page := f.signIn("acme", ownerEmail), "/console/acme/users/"+user.ID.String()
	owner := "/console/acme/users/" + f.asOwner().User.ID.String()
	controls := map[string][]string{
		page: {page + "/email"}, page + "/edit": {`name="name"`, `name="department"`}, "/console/acme/account": {owner + "/edit", owner + "/email"},
	}
	shown := func(path string) string {
		t.Helper()
		a := f.get(path, cookie)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.StatusCode, a.body)
		}
		return a.body
	}
	for path, parts := range controls {
		for _, part := range parts {
			if !strings.Contains(shown(path), part) {
				t.Errorf("%s lacks %s", path, part)
			}
		}
	}
	directory := f.manage(user.ID)
	f.manage(f.asOwner().User.ID)
	for path, parts := range controls {
		for _, part := range parts {
			if strings.Contains(shown(path), part) {
				t.Errorf("%s has %s, of a user of a directory", path, part)
			}
		}
	}
	if body := shown(page); !strings.Contains(body, "<dt>Managed by</dt>") || !strings.Contains(body, "<code>"+directory.String()+"</code>") {
		t.Errorf("the page of the user does not show the directory: %s", body)
	}
	if body := shown(page + "/edit"); !strings.Contains(body, "A directory manages this user.") || !strings.Contains(body, `name="externalId"`) {
		t.Errorf("the form does not say who manages the user: %s", body)
	}
}
