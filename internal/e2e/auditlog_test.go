package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

func testAuditLog(t *testing.T, p *program) {
	t.Run("proofs", func(t *testing.T) { testProofs(t, newWorld(t, p)) })
	t.Run("guide", func(t *testing.T) { testProofGuide(t, newWorld(t, p)) })
	t.Run("operators", func(t *testing.T) { testOperatorsLog(t, newWorld(t, p)) })
	t.Run("verify", func(t *testing.T) { testVerify(t, newWorld(t, p)) })
}

// signedLog is a checkpoint as in the answers.
type signedLog struct {
	Size              int64
	Root              tlog.Hash
	Note, VerifierKey string
}

// eventProof is the answer with a proof.
type eventProof struct {
	Index      int64
	Leaf       string
	Hashes     tlog.RecordProof
	Checkpoint signedLog
	Source     *struct {
		Salt []byte
		Data string
	}
}

// check returns the size and the root in the note of the checkpoint. It fails the test if the signature or
// another member is wrong.
func (c *signedLog) check(t *testing.T, w *world) {
	t.Helper()
	c.checkOrigin(t, "/tenants/"+w.name)
}

func (a *answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatal(err)
	}
}

// testProofs verifies proofs with the package tlog, without the code of the program.
func testProofs(t *testing.T, w *world) {
	var first, now signedLog
	w.owner.do(t, "GET /events/checkpoint", "").expect(t, 200).into(t, &first)
	first.check(t, w)
	id := w.user(t, "proved", "Sales")
	w.owner.do(t, "POST /users/"+id+"/suspend", `{"reason":"on leave"}`).expect(t, 200)
	w.owner.do(t, "GET /events/checkpoint", "").expect(t, 200).into(t, &now)
	now.check(t, w)
	if now.Size < first.Size+2 || now.VerifierKey != first.VerifierKey {
		t.Errorf("after two changes, the log has grown from %+v to %+v", first, now)
	}
	var grown struct {
		Hashes     tlog.TreeProof
		Checkpoint signedLog
	}
	w.owner.do(t, fmt.Sprintf("GET /events/consistency?from=%d", first.Size), "").expect(t, 200).into(t, &grown)
	if err := tlog.CheckTree(grown.Hashes, grown.Checkpoint.Size, grown.Checkpoint.Root, first.Size, first.Root); err != nil {
		t.Error(err)
	}
	prove := func(event string) (p eventProof) {
		w.owner.do(t, "GET /events/"+event+"/proof", "").expect(t, 200).into(t, &p)
		p.Checkpoint.check(t, w)
		if err := tlog.CheckRecord(p.Hashes, p.Checkpoint.Size, p.Checkpoint.Root, p.Index, tlog.RecordHash([]byte(p.Leaf))); err != nil {
			t.Errorf("%s: %v", event, err)
		}
		return p
	}
	events := w.owner.do(t, "GET /events?limit=200&subject="+id, "").expect(t, 200).texts("id")
	leaves := map[string]string{}
	for _, event := range events {
		p := prove(event)
		leaves[event] = p.Leaf
		if p.Source == nil || !strings.Contains(p.Leaf, `"source":"`+tlog.RecordHash(append(p.Source.Salt, p.Source.Data...)).String()+`"`) || p.Source.Data != w.source {
			t.Errorf("the leaf %s does not have the source %+v", p.Leaf, p.Source)
		}
	}
	w.owner.do(t, "POST /users/"+id+"/erase", `{"reason":"asked in a letter"}`).expect(t, 204)
	for _, event := range events { // erased events are proved by the same leaves
		if p := prove(event); p.Leaf != leaves[event] {
			t.Errorf("after the erasure, the leaf of %s is %s, not %s", event, p.Leaf, leaves[event])
		}
	}
	if got := w.owner.do(t, "GET /events?type=user.erased&subject="+id, "").expect(t, 200).text("/items/0/reason"); got != "asked in a letter" {
		t.Errorf("the reason of the erasure is %q", got)
	}
	play(t, []scenario{
		{name: "a size that the log does not have", as: w.owner, send: "GET /events/consistency?from=1000000", status: 409, code: "log-shorter"},
		{name: "no size", as: w.owner, send: "GET /events/consistency", status: 400, code: "malformed-request"},
		{name: "size zero", as: w.owner, send: "GET /events/consistency?from=0", status: 400, code: "malformed-request"},
		{name: "no number", as: w.owner, send: "GET /events/consistency?from=x", status: 400, code: "malformed-request"},
		{name: "a huge number", as: w.owner, send: "GET /events/consistency?from=99999999999999999999", status: 400, code: "malformed-request"},
		{name: "an unknown event", as: w.owner, send: "GET /events/" + never + "/proof", status: 404, code: "not-found"},
		{name: "no event", as: w.owner, send: "GET /events/x/proof", status: 400, code: "malformed-request"},
		{name: "a reason that is too long", as: w.owner, send: "POST /users/" + never + "/erase", body: `{"reason":"` + strings.Repeat("x", 501) + `"}`, status: 422, code: "validation"},
	})
}

// testVerify changes the database behind the back of the program, and runs rolecall events verify.
func testVerify(t *testing.T, w *world) {
	verify := func(code int, flags ...string) string {
		t.Helper()
		output, err := w.program.try(t, "", append([]string{"events", "verify", "--tenant", w.name}, flags...)...)
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
	for i := range 3 {
		w.user(t, fmt.Sprintf("logged-%d", i), "")
	}
	checkpoint := w.owner.do(t, "GET /events/checkpoint", "").expect(t, 200)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	signed, answer := file("note", checkpoint.text("/note")), file("answer", string(checkpoint.body))
	if output := verify(0); !strings.Contains(output, "The log verifies.") {
		t.Errorf("the output is %s", output)
	}
	for _, path := range []string{signed, answer} {
		if output := verify(0, "--checkpoint", path); !strings.Contains(output, "begins with the events of the checkpoint") {
			t.Errorf("the output is %s", output)
		}
	}
	for name, content := range map[string]string{"empty": "", "text": "x", "object": "{}", "changed": strings.Replace(checkpoint.text("/note"), "\n", "1\n", 1)} {
		verify(1, "--checkpoint", file(name, content))
	}
	verify(1, "--checkpoint", filepath.Join(folder, "nothing"))
	event := w.owner.do(t, "GET /events?type=user.created&limit=1", "").expect(t, 200).text("/items/0/id")
	w.program.execute(t, "update events set reason = 'because' where id = "+w.program.literal(event))
	if output := verify(3, "--checkpoint", signed); !strings.Contains(output, "altered   number ") || !strings.Contains(output, event) || !strings.Contains(output, "Problems: 1.") {
		t.Errorf("the output is %s", output)
	}
	var report struct {
		Verified bool
		Problems []struct{ Kind, Event string }
	}
	output := verify(3, "--json")
	if err := json.Unmarshal([]byte(output), &report); err != nil || report.Verified || len(report.Problems) != 1 || report.Problems[0].Event != event || report.Problems[0].Kind != "altered" {
		t.Errorf("the report is %s (%v)", output, err)
	}
	w.program.execute(t, "update events set reason = '' where id = "+w.program.literal(event))
	verify(0, "--checkpoint", signed, "--checkpoint", answer, "--kept", "90d")
}

// literal returns the id as a literal of the database.
func (p *program) literal(id string) string {
	if strings.HasPrefix(p.Database, "postgres") {
		return "'" + id + "'"
	}
	return "x'" + strings.ReplaceAll(id, "-", "") + "'"
}

// execute runs a statement in the database of the program.
func (p *program) execute(t *testing.T, statement string) {
	t.Helper()
	if strings.HasPrefix(p.Database, "postgres") {
		executePostgres(t, p.Database, statement)
		return
	}
	if output, err := exec.CommandContext(t.Context(), tool(t, "sqlite3"), p.Database, ".timeout 10000", statement).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}
