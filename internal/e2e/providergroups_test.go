package e2e

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// testGroupsFromClaims fills groups with the claim of a provider.
func testGroupsFromClaims(t *testing.T, w *providerWorld) {
	w.change(t, `{"provisioning":{"roleIds":[]},"groups":{"claim":"groups","create":true,"scopes":["groups"]}}`)
	if c := w.owner.do(t, "GET /connections/"+w.connection, "").expect(t, 200); c.text("/groups/matchBy") != "name" || c.text("/groups/scopes/0") != "groups" {
		t.Errorf("the connection is %s", c.body)
	}
	w.owner.do(t, "PATCH /connections/"+w.connection, `{"groups":{"claim":"groups","matchBy":"email","scopes":["a b"]}}`).refused(t, 422, "validation")
	source := `{"type":"connection","id":"` + w.connection + `"}`
	w.owner.do(t, "POST /groups", `{"name":"Engineers","source":{"type":"directory","id":"`+w.connection+`"}}`).refused(t, 422, "validation")
	created := w.owner.do(t, "POST /groups", `{"name":"/engineers","source":`+source+`}`).expect(t, 201)
	group := created.text("/id")
	if created.text("/source/id") != w.connection {
		t.Errorf("the group is %s", created.body)
	}
	role := w.role(t, "Reader", "users:read")
	w.owner.do(t, "PUT /groups/"+group+"/roles/"+role, "").expect(t, 201)

	signsIn := func(claim any) *caller {
		person(w.provider, "ada")
		w.provider.Set(func(s *oidctest.Settings) { s.Person.Claims["groups"] = claim })
		return w.signsIn(t)
	}
	ada := signsIn([]string{"/engineers", "/sales"})
	ada.do(t, "GET /users", "").expect(t, 200)
	if names := w.owner.do(t, "GET /users/"+ada.id+"/groups", "").expect(t, 200); !slices.Equal(names.texts("group/name"), []string{"/engineers", "/sales"}) || names.value("/items/0/addedBy") != nil {
		t.Errorf("the groups are %s", names.body)
	}
	if events := w.owner.do(t, "GET /events?type=group.member_added", "").expect(t, 200); events.text("/items/0/reason") != "claim of Acme SSO" || events.text("/items/0/actor/id") != ada.id {
		t.Errorf("the events are %s", events.body)
	}
	for line, body := range map[string]string{
		"PUT /groups/" + group + "/users/" + w.owner.id: "",
		"DELETE /groups/" + group + "/users/" + ada.id:  "",
		"DELETE /groups/" + group + "?force=true":       "",
		"PATCH /groups/" + group:                        `{"name":"Others"}`,
	} {
		w.owner.do(t, line, body).refused(t, 409, "managed-by-directory")
	}
	w.owner.do(t, "PATCH /groups/"+group, `{"description":"They build."}`).expect(t, 200)

	signsIn(nil)
	ada.do(t, "GET /users", "").expect(t, 200) // an absent claim changes nothing
	if events := w.owner.do(t, "GET /events?type=connection.groups_skipped", "").expect(t, 200); events.text("/items/0/reason") != "claim-absent" || events.text("/items/0/subject/id") != w.connection {
		t.Errorf("the events are %s", events.body)
	}
	signsIn("/sales")
	ada.do(t, "GET /users", "").refused(t, 403, "permission-denied")

	w.owner.do(t, "DELETE /connections/"+w.connection+"?force=true", "").expect(t, 204)
	left := w.owner.do(t, "GET /groups/"+group, "").expect(t, 200)
	if left.value("/source") != nil || left.text("/name") != "/engineers" {
		t.Errorf("the group is %s", left.body)
	}
	if names := w.owner.do(t, "GET /users/"+ada.id+"/groups", "").expect(t, 200); !slices.Equal(names.texts("group/name"), []string{"/sales"}) {
		t.Errorf("the groups are %s", names.body)
	}
	w.owner.do(t, "DELETE /groups/"+group+"?force=true", "").expect(t, 204)
}
