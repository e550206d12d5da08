package webhooks_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// signedDelivery is a delivery in the form in which programs verify it.
type signedDelivery struct {
	Secret    string `json:"secret"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Signature string `json:"signature"`
	Body      string `json:"body"`
}

// goVerifier and jsVerifier verify each delivery of their standard input with the code of
// docs/guides/webhooks.md, which replaces CODE. They fail if a delivery is not valid, or is valid after one
// of its bytes was changed. They print how many changed deliveries they have refused.
const (
	goVerifier = `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

CODE

type delivery struct{ Secret, ID, Timestamp, Signature, Body string }

func (d delivery) check() error {
	header := http.Header{"Webhook-Id": {d.ID}, "Webhook-Timestamp": {d.Timestamp}, "Webhook-Signature": {d.Signature}}
	return verify(d.Secret, header, []byte(d.Body), time.Now())
}

func main() {
	refused := 0
	decoder := json.NewDecoder(os.Stdin)
	for decoder.More() {
		var d delivery
		if err := decoder.Decode(&d); err != nil {
			panic(err)
		}
		if err := d.check(); err != nil {
			panic(err)
		}
		for _, of := range []func(*delivery) *string{func(d *delivery) *string { return &d.ID }, func(d *delivery) *string { return &d.Timestamp }, func(d *delivery) *string { return &d.Body }} {
			for i := range len(*of(&d)) {
				changed := d
				text := []byte(*of(&changed))
				text[i] ^= 1
				*of(&changed) = string(text)
				if changed.check() == nil {
					panic("a changed delivery is valid")
				}
				refused++
			}
		}
	}
	fmt.Println(refused)
}
`

	jsVerifier = `import { readFileSync } from 'node:fs';
CODE
const headersOf = (d) => ({ 'webhook-id': d.id, 'webhook-timestamp': d.timestamp, 'webhook-signature': d.signature });
const isValid = (d) => { try { verify(d.secret, headersOf(d), Buffer.from(d.body, 'latin1')); return true; } catch { return false; } };
let refused = 0;
for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
  const d = JSON.parse(line);
  d.body = Buffer.from(d.body).toString('latin1'); // one character for each byte
  if (!isValid(d)) throw new Error('a delivery is not valid');
  for (const member of ['id', 'timestamp', 'body']) {
    for (let i = 0; i < d[member].length; i++) {
      const text = d[member];
      const changed = { ...d, [member]: text.slice(0, i) + String.fromCharCode(text.charCodeAt(i) ^ 1) + text.slice(i + 1) };
      if (isValid(changed)) throw new Error('a changed delivery is valid');
      refused++;
    }
  }
}
console.log(refused);
`
)

// TestTheCodeOfTheGuideVerifiesDeliveries verifies deliveries with the code of docs/guides/webhooks.md.
func TestTheCodeOfTheGuideVerifiesDeliveries(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		deliveries, size := signedDeliveries(f)
		guide, err := os.ReadFile("../../docs/guides/webhooks.md")
		f.OK(err)
		for _, program := range []struct {
			language, source, name string
			command                []string
		}{{"go", goVerifier, "main.go", []string{"go", "run"}}, {"js", jsVerifier, "main.mjs", []string{"node"}}} {
			code := regexp.MustCompile("(?s)```" + program.language + "\n(.*?)```").FindSubmatch(guide)
			if code == nil {
				f.Fatalf("the guide has no code in %s", program.language)
			}
			path := filepath.Join(f.TempDir(), program.name)
			f.OK(os.WriteFile(path, []byte(strings.Replace(program.source, "CODE", string(code[1]), 1)), 0o600))
			command := exec.CommandContext(f.Context(), program.command[0], append(program.command[1:], path)...)
			command.Stdin = bytes.NewReader(deliveries)
			printed, err := command.CombinedOutput()
			var refused int
			if err == nil {
				err = json.Unmarshal(printed, &refused)
			}
			if err != nil || refused != size {
				f.Errorf("%s has refused %d of %d changed deliveries: %v %s", program.language, refused, size, err, printed)
			}
		}
	})
}

// TestDeliveriesForLibraries writes deliveries to the file in ROLECALL_WEBHOOK_DELIVERIES. Then
// tools/webhooks/run verifies them with the official libraries.
func TestDeliveriesForLibraries(t *testing.T) {
	path := os.Getenv("ROLECALL_WEBHOOK_DELIVERIES")
	if path == "" {
		t.Skip("make interop runs this, with ROLECALL_WEBHOOK_DELIVERIES set")
	}
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		deliveries, _ := signedDeliveries(f)
		f.OK(os.WriteFile(path, deliveries, 0o600))
	})
}

// signedDeliveries receives deliveries, one of them with two secrets. It returns them as lines of JSON,
// and the number of their signed bytes.
func signedDeliveries(f *nodetest.Fixture) (lines []byte, size int) {
	f.Helper()
	f.Clock.Until(rolecall.TimeOf(time.Now())) // the programs use the clock of the machine
	r := newReceiver(f, nil)
	delivering(f, r)
	w := newWebhook(f, r.url("/hook"), aReader(f, "roles:read").ID, types(rolecall.EventRoleCreated))
	f.NewRole("Prüfer ☃ \"<&>\"")
	first := r.awaitItem(rolecall.EventRoleCreated, 1)
	rotated, err := f.Webhooks.RotateSecret(f.Context(), f.Owner, w.ID, nil)
	f.OK(err)
	f.NewRole("Another")
	second := r.awaitItem(rolecall.EventRoleCreated, 2)
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	for _, d := range []struct {
		secret string
		received
	}{{w.Secret, first}, {w.Secret, second}, {rotated.Secret, second}} {
		f.OK(encoder.Encode(signedDelivery{d.secret, d.id, d.at, d.signatures, string(d.body)}))
		size += len(d.id) + len(d.at) + len(d.body)
	}
	return written.Bytes(), size
}
