package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/client"
)

func TestFollowChanges(t *testing.T) {
	d := newDemo(t)
	c, ctx := d.signedIn(t), t.Context()
	cursor, err := c.ChangesNow(ctx, client.ChangeFilter{})
	if err != nil || cursor == "" {
		t.Fatalf("ChangesNow = %q, %v", cursor, err)
	}
	created, err := c.CreateUser(ctx, "key-1", client.NewUser{Email: "new@demo.example", Name: "New Person"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateUser(ctx, created.ID, created.ETag, client.Patch{"name": "Renamed Person"}); err != nil {
		t.Fatal(err)
	}
	updated := ""
	var read []client.Change
	for page, err := range c.FollowChanges(ctx, cursor, client.ChangeFilter{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		read, cursor = append(read, page.Items...), page.Cursor
		if len(page.Items) > 1 {
			t.Errorf("a page has %d items", len(page.Items))
		}
		if len(read) == 2 && updated == "" { // the follower is waiting
			updated = created.ID
			go func() {
				if err := c.DeleteUser(context.WithoutCancel(ctx), created.ID); err != nil {
					t.Error(err)
				}
			}()
		}
		if len(read) == 3 {
			break
		}
	}
	var kinds []string
	for _, change := range read {
		kinds = append(kinds, change.Type)
		if change.Subject != "user/"+created.ID || change.Data.Subject.ID != created.ID || change.Data.Tenant != d.Tenant || change.Data.Actor.Type != "user" || change.Time.IsZero() || change.ID == "" || change.Source == "" || change.Data.RequestID == "" {
			t.Errorf("read %+v", change)
		}
	}
	if !slices.Equal(kinds, []string{"user.created", "user.updated", "user.deleted"}) || string(read[1].Data.After["name"]) != `"Renamed Person"` || string(read[1].Data.Before["name"]) != `"New Person"` {
		t.Errorf("read %q: %+v", kinds, read)
	}
	for page, err := range c.FollowChanges(ctx, "", client.ChangeFilter{Type: "user.deleted"}) {
		if err != nil || len(page.Items) > 0 && page.Items[0].Type != "user.deleted" {
			t.Errorf("of one type: %+v, %v", page, err)
		}
		if len(page.Items) > 0 {
			break
		}
	}
	for _, err := range c.FollowChanges(ctx, cursor, client.ChangeFilter{Type: "user.deleted"}) {
		if !is(err, "malformed-request") {
			t.Errorf("with the cursor of another filter: %v", err)
		}
	}
}

func TestFollowTheChangesOfAllTenants(t *testing.T) {
	d := newDemo(t)
	command := exec.Command(programFile(t), "operator-key", "create", "Follower", "--scope", "changes", "--json", "--database", "rolecall-data/demo.db")
	command.Dir = d.folder
	output, err := command.Output()
	var key struct{ Key string }
	if err := errors.Join(err, json.Unmarshal(output, &key)); err != nil {
		t.Fatal(err)
	}
	operator, filter := client.NewWithToken(d.Address, "", key.Key, nil), client.ChangeFilter{AllTenants: true, Type: "user.created"}
	cursor, err := operator.ChangesNow(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	created, err := d.signedIn(t).CreateUser(t.Context(), "key-1", client.NewUser{Email: "new@demo.example", Name: "New Person"})
	if err != nil {
		t.Fatal(err)
	}
	for page, err := range operator.FollowChanges(t.Context(), cursor, filter) {
		if err != nil {
			t.Fatal(err)
		}
		// Events of the demo's users come first if they had no place in the feed of all tenants yet.
		at := slices.IndexFunc(page.Items, func(c client.Change) bool { return c.Subject == "user/"+created.ID })
		if at < 0 {
			continue
		}
		if page.Items[at].Data.Tenant != d.Tenant {
			t.Errorf("read %+v", page.Items[at])
		}
		break
	}
	if _, err := operator.ChangesNow(t.Context(), client.ChangeFilter{}); !is(err, "malformed-request") {
		t.Errorf("without a tenant: %v", err)
	}
}
