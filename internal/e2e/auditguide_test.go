package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// proofChecker checks each proof of its standard input with the code of docs/guides/audit-log.md, which
// replaces %s. It prints true for a valid proof and false for another one.
const proofChecker = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

%s

func main() {
	decoder := json.NewDecoder(os.Stdin)
	for decoder.More() {
		var line struct {
			Key   string
			Proof proof
		}
		if err := decoder.Decode(&line); err != nil {
			panic(err)
		}
		fmt.Println(check(&line.Proof, line.Key) == nil)
	}
}
`

// testProofGuide runs the code of the guide with a proof, and with proofs in which one member is wrong.
func testProofGuide(t *testing.T, w *world) {
	w.user(t, "proved", "")
	var first, second signedLog
	w.owner.do(t, "GET /events/checkpoint", "").expect(t, 200).into(t, &first)
	w.user(t, "proved-later", "")
	w.owner.do(t, "GET /events/checkpoint", "").expect(t, 200).into(t, &second)
	other := newWorld(t, w.program)
	var foreign signedLog
	other.owner.do(t, "GET /events/checkpoint", "").expect(t, 200).into(t, &foreign)
	event := w.owner.do(t, "GET /events?type=user.created&limit=1", "").expect(t, 200).text("/items/0/id")
	response := string(w.owner.do(t, "GET /events/"+event+"/proof", "").expect(t, 200).body)
	var p eventProof
	if err := json.Unmarshal([]byte(response), &p); err != nil {
		t.Fatal(err)
	}
	replaced := func(old, new string) string {
		changed := strings.Replace(response, old, new, 1)
		if changed == response {
			t.Fatalf("the response has no %s", old)
		}
		return changed
	}
	lines := []struct {
		name, key, proof string
		valid            bool
	}{
		{"the proof", second.VerifierKey, response, true},
		{"the same key from an earlier checkpoint", first.VerifierKey, response, true},
		{"the key of another log", foreign.VerifierKey, response, false},
		{"no key", "", response, false},
		{"another index", second.VerifierKey, replaced(fmt.Sprintf(`"index":%d`, p.Index), fmt.Sprintf(`"index":%d`, p.Index-1)), false},
		{"another leaf", second.VerifierKey, replaced(`user.created`, `user.deleted`), false},
		{"another size", second.VerifierKey, replaced(fmt.Sprintf(`\n%d\n`, p.Checkpoint.Size), fmt.Sprintf(`\n%d\n`, p.Checkpoint.Size+1)), false},
		{"no hashes", second.VerifierKey, replaced(`"hashes":["`+p.Hashes[0].String()+`"`, `"hashes":["`+p.Checkpoint.Root.String()+`"`), false},
	}
	command, input, output := w.startGuide(t, "audit-log", proofChecker, strings.NewReplacer(), "")
	go func() {
		defer input.Close()
		for _, line := range lines {
			if _, err := fmt.Fprintf(input, `{"key":%s,"proof":%s}`+"\n", quoted(line.key), line.proof); err != nil {
				t.Error(err)
			}
		}
	}()
	printed, err := io.ReadAll(output)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	results := strings.Fields(string(printed))
	if len(results) != len(lines) {
		t.Fatalf("the program printed %q", printed)
	}
	for i, line := range lines {
		if results[i] != fmt.Sprint(line.valid) {
			t.Errorf("%s: %s", line.name, results[i])
		}
	}
}
