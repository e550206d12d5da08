package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// testOperatorsLog follows a tenant and an operator key through the operators' log, and verifies the log
// after the rows of the tenant were removed.
func testOperatorsLog(t *testing.T, w *world) {
	operator, name := w.program.operator.of(w), w.name+"-logged"
	var before signedLog
	operator.do(t, "GET /operator/events/checkpoint", "").expect(t, 200).into(t, &before)
	key := w.program.operatorKey(t, "--scope", "changes", "--tenant", w.name)
	w.program.run(t, "", "operator-key", "revoke", key.id)
	id := operator.do(t, "POST /operator/tenants", newTenant(name)).expect(t, 201).text("/tenant/id")
	operator.do(t, "POST /operator/tenants/"+name+"/suspend", `{"reason":"unpaid"}`).expect(t, 200)
	operator.do(t, "POST /operator/tenants/"+name+"/resume", "").expect(t, 200)
	operator.do(t, "DELETE /operator/tenants/"+name, "", "if-match: *").expect(t, 204)
	operator.do(t, "POST /operator/tenants/"+name+"/restore", "").expect(t, 200)
	operator.do(t, "DELETE /operator/tenants/"+name, "", "if-match: *").expect(t, 204)

	if got, want := operator.do(t, "GET /operator/events?subject="+key.id, "").expect(t, 200).texts("type"), []string{"operator_key.revoked", "operator_key.created"}; !slices.Equal(got, want) {
		t.Errorf("the events of the key are %q, not %q", got, want)
	}
	events := operator.do(t, "GET /operator/events?subject="+id, "").expect(t, 200)
	if got, want := events.texts("type"), []string{"tenant.deleted", "tenant.restored", "tenant.deleted", "tenant.resumed", "tenant.suspended", "tenant.created"}; !slices.Equal(got, want) {
		t.Errorf("the events of the tenant are %q, not %q", got, want)
	}
	if got := events.text("/items/0/before/name"); got != name {
		t.Errorf("the deleted tenant has the name %q", got)
	}
	if got := events.text("/items/0/actor/id"); got != w.program.operator.id {
		t.Errorf("the actor is %q, not the key %q", got, w.program.operator.id)
	}
	own := w.owner.do(t, "GET /events?limit=200", "").expect(t, 200).texts("type")
	if slices.ContainsFunc(own, func(kind string) bool { return strings.HasPrefix(kind, "operator_key.") }) {
		t.Errorf("a tenant has the events %q", own)
	}

	var p eventProof
	operator.do(t, "GET /operator/events/"+events.text("/items/0/id")+"/proof", "").expect(t, 200).into(t, &p)
	p.Checkpoint.checkOrigin(t, "/operators")
	if err := tlog.CheckRecord(p.Hashes, p.Checkpoint.Size, p.Checkpoint.Root, p.Index, tlog.RecordHash([]byte(p.Leaf))); err != nil {
		t.Error(err)
	}
	var grown struct {
		Hashes     tlog.TreeProof
		Checkpoint signedLog
	}
	operator.do(t, fmt.Sprintf("GET /operator/events/consistency?from=%d", before.Size), "").expect(t, 200).into(t, &grown)
	if err := tlog.CheckTree(grown.Hashes, grown.Checkpoint.Size, grown.Checkpoint.Root, before.Size, before.Root); err != nil {
		t.Error(err)
	}
	play(t, []scenario{
		{name: "an event of a tenant", as: operator, send: "GET /operator/events/" + w.owner.do(t, "GET /events?limit=1", "").expect(t, 200).text("/items/0/id") + "/proof", status: 404, code: "not-found"},
		{name: "an event of the operators in a tenant", as: w.owner, send: "GET /events/" + events.text("/items/0/id") + "/proof", status: 404, code: "not-found"},
		{name: "a size that the log does not have", as: operator, send: "GET /operator/events/consistency?from=100000000", status: 409, code: "log-shorter"},
		{name: "size zero", as: operator, send: "GET /operator/events/consistency?from=0", status: 400, code: "malformed-request"},
		{name: "an owner", as: w.owner, send: "GET /operator/events", status: 401, code: "unauthenticated"},
	})
	verifyOperatorsLog(t, w, operator, events.text("/items/0/id"))
}

// verifyOperatorsLog runs rolecall events verify --operators, also after an event was changed.
func verifyOperatorsLog(t *testing.T, w *world, operator *caller, event string) {
	checkpoint := operator.do(t, "GET /operator/events/checkpoint", "").expect(t, 200)
	file := filepath.Join(t.TempDir(), "checkpoint")
	if err := os.WriteFile(file, []byte(checkpoint.text("/note")), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func(code int, flags ...string) string {
		t.Helper()
		output, err := w.program.try(t, "", append([]string{"events", "verify"}, flags...)...)
		got := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != code {
			t.Errorf("events verify %v ended with %d, not %d: %s", flags, got, code, output)
		}
		return output
	}
	if output := verify(0, "--operators", "--checkpoint", file); !strings.Contains(output, "begins with the events of the checkpoint") {
		t.Errorf("the output is %s", output)
	}
	verify(1, "--tenant", w.name, "--checkpoint", file)
	w.program.execute(t, "update events set reason = 'because' where id = "+w.program.literal(event))
	if output := verify(3, "--operators"); !strings.Contains(output, "altered   number ") || !strings.Contains(output, event) {
		t.Errorf("the output is %s", output)
	}
	w.program.execute(t, "update events set reason = '' where id = "+w.program.literal(event))
	verify(0, "--operators")
}

// checkOrigin fails the test if the signature of the checkpoint is wrong, or its first line does not end
// with the path.
func (c *signedLog) checkOrigin(t *testing.T, path string) {
	t.Helper()
	verifier, err := note.NewVerifier(c.VerifierKey)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open([]byte(c.Note), note.VerifierList(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s%s\n%d\n%s\ntime ", strings.TrimPrefix(public, "http://"), path, c.Size, c.Root); !strings.HasPrefix(opened.Text, want) {
		t.Errorf("the note is %q, and does not begin with %q", opened.Text, want)
	}
}
