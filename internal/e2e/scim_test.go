package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// scimDirectory is a directory of a tenant. It sends SCIM requests with its token.
type scimDirectory struct {
	*world
	id      string
	tokenID string
	caller  *caller // with the token
}

// directory creates a directory with a token. settings are further members of the directory.
func (w *world) directory(t testing.TB, settings string) *scimDirectory {
	t.Helper()
	body := strings.TrimSuffix(directoryBody(newKey()), "}") + settings + "}"
	d := &scimDirectory{world: w, id: w.owner.do(t, "POST /directories", body).expect(t, 201).text("/id")}
	made := w.makeDirectoryToken(t, d.id)
	d.tokenID, d.caller = made.text("/id"), &caller{world: w, tenant: w.name, bearer: made.text("/token")}
	return d
}

const takesOver = `,"matching":"email"`

// send sends a request of SCIM. The path of the line follows the base URL of the directory.
func (d *scimDirectory) send(t testing.TB, line, body string, header ...string) *answer {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	usual := []string{"-x-tenant-schema"}
	if body != "" {
		usual = append(usual, "content-type: application/scim+json")
	}
	return d.caller.do(t, method+" /scim/v2/"+d.caller.tenant+path, body, append(usual, header...)...)
}

// refusedWith fails the test unless the response is an error of SCIM with the status and the scimType.
func (a *answer) refusedWith(t testing.TB, status int, scimType string) {
	t.Helper()
	if a.expect(t, status); a.text("/scimType") != scimType {
		t.Fatalf("%s was refused with %q, not %q: %s", a.line, a.text("/scimType"), scimType, a.body)
	}
}

// play runs the scenarios as subtests, in order. The paths follow the base URL of the directory.
func (d *scimDirectory) play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.check(t, d.send(t, s.send, s.body, s.header...)) })
	}
}

const enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"

// scimUser is the body of a user whose address is address(name), with further members.
func scimUser(name, more string) string {
	return fmt.Sprintf(`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":%[1]s,"name":{"givenName":"Ada","familyName":"Lovelace"},"emails":[{"value":%[1]s,"type":"work","primary":true}]%[2]s}`,
		quoted(address(name)), more)
}

// provision creates a user by SCIM, and returns the id.
func (d *scimDirectory) provision(t testing.TB, name string) string {
	t.Helper()
	return d.send(t, "POST /Users", scimUser(name, `,"active":true`)).expect(t, 201).text("/id")
}

// employee creates a user by SCIM and signs the user in.
func (d *scimDirectory) employee(t testing.TB, name string) *caller {
	t.Helper()
	id := d.provision(t, name)
	invited := d.program.operator.of(d.world).do(t, "POST /users/"+id+"/invitations", `{"delivery":"return"}`).expect(t, 201)
	return d.accept(t, address(name), id, invited.text("/token"))
}

// scimGroup is the body of a group with the members.
func scimGroup(name string, members ...string) string {
	return `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":` + quoted(name) + `,"members":` + memberList(members...) + `}`
}

// memberList is the value of members as Entra sends it.
func memberList(members ...string) string {
	parts := make([]string, len(members))
	for i, id := range members {
		parts[i] = `{"$ref":null,"value":` + quoted(id) + `}`
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// provisionGroup creates a group by SCIM, and returns the id.
func (d *scimDirectory) provisionGroup(t testing.TB, name string, members ...string) string {
	t.Helper()
	return d.send(t, "POST /Groups", scimGroup(name, members...)).expect(t, 201).text("/id")
}

// patchOp is the body of a PATCH with the operations.
func patchOp(operations ...string) string {
	return `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[` + strings.Join(operations, ",") + `]}`
}

// replace is an operation of Entra that replaces an attribute by a JSON value.
func replace(path, value string) string {
	return `{"op":"Replace","path":` + quoted(path) + `,"value":` + value + `}`
}

// The two ways to deactivate a user, and the way back.
var (
	deactivation = patchOp(replace("active", `"False"`))                    // of Entra
	oktaLeaves   = patchOp(`{"op":"replace","value":{"active":false}}`)     // of Okta
	activation   = patchOp(`{"op":"replace","path":"active","value":true}`) // of both
	renaming     = patchOp(replace("displayName", `"Renamed"`), replace("name", `{"formatted":"Renamed"}`))
)

// filtered is the path of a list with the filter.
func filtered(path, filter string) string {
	return "GET " + path + "?filter=" + url.QueryEscape(filter)
}

// resources returns the ids of the resources of a list.
func (a *answer) resources() []string {
	ids := []string{}
	for i := range a.list("/Resources") {
		ids = append(ids, a.text(fmt.Sprintf("/Resources/%d/id", i)))
	}
	return ids
}

// memberIDs returns the sorted ids of the members of a group.
func (a *answer) memberIDs() []string {
	ids := []string{}
	for i := range a.list("/members") {
		ids = append(ids, a.text(fmt.Sprintf("/members/%d/value", i)))
	}
	return sorted(ids)
}

// hasMembers fails the test unless the group has exactly these members, for the directory and for the owner.
func (d *scimDirectory) hasMembers(t testing.TB, group string, members ...string) {
	t.Helper()
	if got := d.send(t, "GET /Groups/"+group, "").expect(t, 200).memberIDs(); !slices.Equal(got, sorted(members)) {
		t.Errorf("the members are %q, not %q", got, sorted(members))
	}
	if got := sorted(d.owner.do(t, "GET /groups/"+group+"/users", "").expect(t, 200).texts("id")); !slices.Equal(got, sorted(members)) {
		t.Errorf("the owner sees the members %q, not %q", got, sorted(members))
	}
}

// userOf returns the user as the owner reads it.
func (w *world) userOf(t testing.TB, id string) *answer {
	t.Helper()
	return w.owner.do(t, "GET /users/"+id, "").expect(t, 200)
}

// isManagedBy fails the test unless the user has the directory. An empty directory means none.
func (w *world) isManagedBy(t testing.TB, id, directory string) {
	t.Helper()
	if got := w.userOf(t, id).text("/managedBy"); got != directory {
		t.Errorf("the user is managed by %q, not %q", got, directory)
	}
}

// hasStatus fails the test unless the user has the status.
func (w *world) hasStatus(t testing.TB, id, status string) {
	t.Helper()
	if got := w.userOf(t, id).text("/status"); got != status {
		t.Errorf("the user is %q, not %q", got, status)
	}
}
