package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/mail/mailtest"
)

// TestKillDuringSignUps kills the program while clients create tenants with an operator key. A
// tenant exists completely, with an owner who is invited by mail, or not at all. All requests with
// the same idempotency key create one tenant and get the same response.
func TestKillDuringSignUps(t *testing.T) {
	skipIfShort(t)
	onStores(t, killDuringSignUps)
}

func killDuringSignUps(t *testing.T, database string) {
	mail := mailtest.Start(t, mailtest.Options{})
	s := serve(t, database, "--smtp", mail.URL(), "--mail-from", "rolecall@faults.example", "--public-url", "http://id.faults.example")
	l := newLoad(t, s)
	l.spread = 0
	l.open()
	f := newFounder(l, mail)
	for client := range 4 {
		l.running.Go(func() {
			for n := 0; !l.isOver(); n++ {
				f.found(fmt.Sprintf("founded-%d-%d", client, n))
			}
		})
	}
	kills := times(5, 300)
	l.dieAgain(kills)
	f.check()
	l.checkDatabase()
	l.report("kill -9 during sign-ups")
	t.Logf("killed %d times; %d tenants were made", kills, len(f.made))
}

// founder is a program that creates tenants.
type founder struct {
	load     *load
	mail     *mailtest.Server
	operator string // the header with the key

	mu   sync.Mutex
	made []string // names of tenants
}

func newFounder(l *load, mail *mailtest.Server) *founder {
	l.t.Helper()
	output, err := l.server.Run(l.t.Context(), "", "operator-key", "create", "Sign-ups", "--json")
	if err != nil {
		l.t.Fatal(err)
	}
	var key struct{ Key string }
	if err := json.Unmarshal([]byte(output), &key); err != nil {
		l.t.Fatal(err)
	}
	return &founder{load: l, mail: mail, operator: "authorization: Bearer " + key.Key}
}

// newTenantAnswer is the response to a sign-up.
type newTenantAnswer struct {
	Tenant     struct{ ID, Name, CreatedAt string }
	Owner      struct{ ID, Email string }
	Invitation struct {
		ExpiresAt, Token string
		SecretWithheld   bool
	}
}

func ownerOf(tenant string) string { return tenant + "@faults.example" }

// found creates a tenant, repeats the request, and checks the tenant.
func (f *founder) found(name string) {
	ask := func() (answer newTenantAnswer, again bool) {
		of, again := (caller{load: f.load}).insist("POST /operator/tenants", fmt.Sprintf(`{"name":%s,"owner":{"email":%s,"name":"Olga Owner"}}`, quoted(name), quoted(ownerOf(name))),
			"idempotency-key: "+name, f.operator)
		if of.status != http.StatusCreated {
			f.load.t.Errorf("%s: answered %d %s", name, of.status, of.body)
			return answer, again
		}
		of.decode(&answer)
		if replayed := of.header.Get("Idempotent-Replayed") == "true"; replayed == (answer.Invitation.Token != "") || replayed != answer.Invitation.SecretWithheld {
			f.load.t.Errorf("%s: replayed is %v of %s", name, replayed, of.body)
		}
		return answer, again
	}
	first, again := ask()
	if first.Invitation.SecretWithheld && !again {
		f.load.t.Errorf("%s: there was a tenant before it was asked for", name)
	}
	second, _ := ask()
	if first.Invitation.Token, first.Invitation.SecretWithheld = "", true; first != second || first.Tenant.Name != name || first.Owner.Email != ownerOf(name) {
		f.load.doubled++
		f.load.t.Errorf("%s: answered %+v and %+v", name, first, second)
	}
	of, _ := (caller{load: f.load, tenant: name}).insist("GET /roles", "", f.operator)
	var roles struct{ Items []struct{ Key string } }
	if of.decode(&roles); of.status != http.StatusOK || len(roles.Items) != 3 {
		f.load.t.Errorf("%s: its roles are answered %d %s", name, of.status, of.body)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made = append(f.made, name)
}

// check waits for the mail to every owner, and lets some of the owners accept the invitation.
func (f *founder) check() {
	for i, name := range f.made {
		m, err := f.mail.Await(ownerOf(name), func(m *mailtest.Message) bool {
			return m.Link() != nil && strings.HasSuffix(m.Link().Path, "/console/"+name+"/invitation")
		}, claimedLimit)
		if err != nil {
			f.load.lost++
			f.load.t.Errorf("%s: the owner's invitation was lost: %v", name, err)
			continue
		}
		if i%10 != 0 {
			continue
		}
		c := caller{load: f.load, tenant: name}
		in := c.send("POST /auths/invitations/accept", fmt.Sprintf(`{"token":%s,"password":%s}`, quoted(m.Token()), quoted(password)))
		c.token = in.session()
		if of := c.send("GET /tenant", ""); of.status != http.StatusOK {
			f.load.t.Errorf("%s: its owner is answered %d %s and %d %s", name, in.status, in.body, of.status, of.body)
		}
	}
}
