package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/patience"
)

// TestKillDuringMail kills the program while it invites users and sends them mail. Every
// acknowledged invitation arrives, a mail that arrives twice is the same mail, and no
// mail goes to a user who was not created.
func TestKillDuringMail(t *testing.T) {
	skipIfShort(t)
	onStores(t, func(t *testing.T, database string) {
		server := mailtest.Start(t, mailtest.Options{})
		s := serve(t, database, "--smtp", server.URL(), "--mail-from", "rolecall@example.org", "--public-url", "http://id.example.com", "--mail-limit=1000000")
		l := newLoad(t, s)
		l.spread = 1
		l.open()
		tn := l.tenants[0]
		invited := &invitations{tenant: tn, acknowledged: map[string]bool{}}
		var running sync.WaitGroup
		for client := range 4 {
			running.Go(func() { invited.send(client) })
		}
		cycles := times(3, 60)
		for range cycles {
			invited.await(t, 20)
			kill(t, s)
			start(t, s)
		}
		invited.await(t, 20)
		l.stop()
		running.Wait()
		invited.check(t, server)
		t.Logf("killed %d times amid %d invitations: %d mails", cycles, len(invited.acknowledged), len(server.Messages()))
	})
}

// invitations are the users who are created and invited in one request each.
type invitations struct {
	tenant       *tenant
	mu           sync.Mutex
	acknowledged map[string]bool // by address
}

// send invites users one after the other until the load ends. It repeats each request
// until it is acknowledged or the load ends.
func (i *invitations) send(client int) {
	for n := 0; !i.tenant.load.isOver(); n++ {
		address := fmt.Sprintf("guest-%d-%d@faults.example", client, n)
		body := fmt.Sprintf(`{"email":%s,"name":"A Guest","invite":true}`, quoted(address))
		for !i.tenant.load.isOver() {
			if of := i.tenant.request("POST /users", body, "idempotency-key: "+address); of.status == http.StatusCreated {
				i.mu.Lock()
				i.acknowledged[address] = true
				i.mu.Unlock()
				break
			}
		}
	}
}

func (i *invitations) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.acknowledged)
}

// await waits until more further invitations were acknowledged.
func (i *invitations) await(t *testing.T, more int) {
	t.Helper()
	want := i.count() + more
	if !patience.Poll(func() bool { return i.count() >= want }) {
		t.Fatalf("%d invitations were acknowledged, want %d", i.count(), want)
	}
}

// check compares the acknowledged invitations with the received mails.
func (i *invitations) check(t *testing.T, server *mailtest.Server) {
	t.Helper()
	deadline := time.Now().Add(claimedLimit) // for all mails, so that only one lost mail costs the full wait
	for address := range i.acknowledged {
		if _, err := server.Await(address, nil, time.Until(deadline)); err != nil {
			t.Errorf("a mail was lost: %v", err)
		}
	}
	first := map[string]mailtest.Message{}
	for _, m := range server.Messages() {
		before, again := first[m.To]
		if again && (m.Header.Get("Message-Id") != before.Header.Get("Message-Id") || m.Token() != before.Token()) {
			t.Errorf("%s got two different mails", m.To)
		}
		first[m.To] = m
		if again || i.acknowledged[m.To] {
			continue
		}
		var users struct{ Items []struct{ Email string } }
		i.tenant.must(http.StatusOK, "GET /users?email="+m.To, "").decode(&users)
		if len(users.Items) != 1 {
			t.Errorf("%s was not made, and has mail", m.To)
		}
	}
}
