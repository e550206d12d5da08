package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/mail/mailtest"
)

// TestKillDuringLinks kills the program while users change passwords and addresses by links. Either
// a link is used and the credential has changed, or neither has happened. A mail is sent for every
// acknowledged request.
func TestKillDuringLinks(t *testing.T) {
	skipIfShort(t)
	onStores(t, killDuringLinks)
}

func killDuringLinks(t *testing.T, database string) {
	mail := mailtest.Start(t, mailtest.Options{})
	s := serve(t, database, "--smtp", mail.URL(), "--mail-from", "rolecall@faults.example", "--public-url", "http://id.faults.example",
		"--resets-per-account=1000000", "--resets-per-source=1000000", "--mail-limit=1000000")
	l := newLoad(t, s)
	l.spread = 0
	l.open()
	people := newForgetful(l, mail, 6)
	for i, f := range people {
		l.running.Go(func() {
			for random := rand.New(rand.NewPCG(rand.Uint64(), uint64(i))); !l.isOver(); {
				if i%2 == 0 {
					f.forgetPassword(random)
				} else {
					f.move(random)
				}
			}
		})
	}
	kills := times(3, 60)
	l.dieAgain(kills)
	links := int64(0)
	for _, f := range people {
		f.checkNotices()
		links += f.used.Load()
	}
	l.checkDatabase()
	l.report("kill -9 during links")
	t.Logf("killed %d times; %d links were used", kills, links)
}

// forgetful is a user whose password or address changes again and again.
type forgetful struct {
	load            *load
	mail            *mailtest.Server
	owner           caller
	id              string
	email, password string
	changes         int      // number of password changes after the first password
	left            []string // former addresses of the user
	used            atomic.Int64
}

// newForgetful creates a tenant with n users who can sign in.
func newForgetful(l *load, mail *mailtest.Server, n int) (people []*forgetful) {
	l.t.Helper()
	tenant := fmt.Sprintf("links-%d", loads.Add(1))
	const owner = "owner@faults.example"
	command(l.t, l.server, password+"\n", "tenant", "create", tenant, "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin")
	in := (caller{load: l, tenant: tenant}).send("POST /auths/login", credentials(owner))
	for i := range n {
		f := &forgetful{load: l, mail: mail, owner: caller{l, tenant, in.session()}, email: fmt.Sprintf("forgetful-%d@faults.example", i), password: password}
		f.id = readUser(f.owner.send("POST /users", fmt.Sprintf(`{"email":%s,"name":"Forgetful"}`, quoted(f.email)), "idempotency-key: "+f.email)).ID
		command(l.t, l.server, password+"\n", "user", "set-password", "--tenant", tenant, "--email", f.email, "--password-stdin")
		people = append(people, f)
	}
	return people
}

func (f *forgetful) anonymous() caller { return caller{load: f.load, tenant: f.owner.tenant} }

// signsIn reports whether a sign-in with the address and the password succeeds.
func (f *forgetful) signsIn(email, password string) bool {
	of, _ := f.anonymous().insist("POST /auths/login", fmt.Sprintf(`{"email":%s,"password":%s}`, quoted(email), quoted(password)))
	return of.status == http.StatusOK
}

// follow waits for links that are mailed to the address, and uses each link until one has worked.
// It returns false if no link arrives within claimedLimit. worked reports whether a request with a
// lost response had an effect.
func (f *forgetful) follow(to, page, line string, body func(token string) string, worked func() bool) bool {
	for {
		m, err := f.mail.Await(to, func(m *mailtest.Message) bool {
			return m.Link() != nil && strings.HasSuffix(m.Link().Path, page)
		}, claimedLimit)
		if err != nil {
			f.load.t.Errorf("%s: no link works: %v", line, err)
			return false
		}
		of, again := f.anonymous().insist(line, body(m.Token()))
		if of.status != http.StatusNoContent && (!again || !worked()) {
			continue // the link was replaced, or the mail is a copy
		}
		f.used.Add(1)
		if !worked() {
			f.load.t.Errorf("%s: a link was used, and nothing has changed", line)
		}
		if of, _ := f.anonymous().insist(line, body(m.Token())); of.status != http.StatusUnauthorized {
			f.load.t.Errorf("%s: a link that was used is answered %d %s", line, of.status, of.body)
		}
		return true
	}
}

// forgetPassword sets a new password by a link.
func (f *forgetful) forgetPassword(random *rand.Rand) {
	chosen := fmt.Sprintf("%s %d", password, random.Uint64())
	f.anonymous().insist("POST /auths/password-resets", `{"email":`+quoted(f.email)+`}`)
	if !f.follow(f.email, "/password-reset", "POST /auths/password-resets/complete", func(token string) string {
		return fmt.Sprintf(`{"token":%s,"password":%s}`, quoted(token), quoted(chosen))
	}, func() bool { return f.signsIn(f.email, chosen) }) {
		return
	}
	if f.signsIn(f.email, f.password) {
		f.load.t.Errorf("the old password of %s still works", f.email)
	}
	f.password = chosen
	f.changes++
}

// move changes the address by a link.
func (f *forgetful) move(random *rand.Rand) {
	next := fmt.Sprintf("moved-%d@faults.example", random.Uint64())
	f.owner.insist("POST /users/"+f.id+"/email-changes", `{"email":`+quoted(next)+`}`, "idempotency-key: "+next)
	if !f.follow(next, "/email-change", "POST /auths/email-changes/complete", func(token string) string {
		return `{"token":` + quoted(token) + `}`
	}, func() bool { return f.signsIn(next, f.password) }) {
		return
	}
	if f.signsIn(f.email, f.password) {
		f.load.t.Errorf("the old address %s still works", f.email)
	}
	f.left, f.email = append(f.left, f.email), next
}

// noticesMax is the maximum number of notices of one kind to a user in an hour.
const noticesMax = 10

// checkNotices waits until the user has been notified of every change up to noticesMax, at the address that the user
// had at that time.
func (f *forgetful) checkNotices() {
	deadline := time.Now().Add(claimedLimit) // for all notices, so that only one lost notice costs the full wait
	await := func(to, subject string) {
		if _, err := f.mail.Await(to, func(m *mailtest.Message) bool { return strings.HasPrefix(m.Subject, subject) }, time.Until(deadline)); err != nil {
			f.load.lost++
			f.load.t.Errorf("a notice was lost: %v", err)
		}
	}
	if len(f.left) == 0 {
		for range min(f.changes, noticesMax) {
			await(f.email, "Your sign-in settings for")
		}
	}
	for _, left := range f.left[:min(len(f.left), noticesMax)] {
		await(left, "Your email address for")
	}
}
