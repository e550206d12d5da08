package e2e

import (
	"fmt"
	"strconv"
	"testing"
)

// TestMailLimit sends mails of a tenant until its limit per hour is reached. After that, requests
// that send a mail must be refused. A change of the caller's own email address and other tenants
// are not affected.
func TestMailLimit(t *testing.T) {
	t.Parallel()
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t), "--mail-limit", "3")
			w := newWorld(t, p)
			invited := func(name string) string {
				return fmt.Sprintf(`{"email":%s,"name":"Invited","invite":true}`, quoted(address(name)))
			}
			first := w.owner.do(t, "POST /users", invited("first"), "idempotency-key: first").expect(t, 201)
			id := first.text("/id")
			w.owner.do(t, "POST /users", invited("first"), "idempotency-key: first").expect(t, 201)
			w.owner.do(t, "POST /users/"+id+"/invitations", "").expect(t, 201)
			w.owner.do(t, "POST /users/"+id+"/email-changes", emailBody(address("moved"))).expect(t, 202)
			for _, refused := range []*answer{
				w.owner.do(t, "POST /users", invited("second"), "idempotency-key: second"),
				w.owner.do(t, "POST /users/"+id+"/invitations", ""),
				w.owner.do(t, "POST /users/"+w.owner.id+"/password-resets", ""),
				w.owner.do(t, "POST /users/"+id+"/email-changes", emailBody(address("moved-again"))),
			} {
				refused.refused(t, 429, "too-many-mails")
				if seconds, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 3600 {
					t.Errorf("one is told to wait %q", refused.header.Get("Retry-After"))
				}
			}
			w.owner.do(t, "POST /users/"+w.owner.id+"/email-changes", emailBody(address("own"))).expect(t, 202)
			w.user(t, "second", "") // no mail, and the refused request created no user
			newWorld(t, p).owner.do(t, "POST /users", invited("elsewhere")).expect(t, 201)
		})
	}
}
