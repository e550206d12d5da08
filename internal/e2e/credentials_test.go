package e2e

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
)

// credentialChanges are the ways in which a user, an administrator or an operator can change a
// user's credentials.
var credentialChanges = []struct {
	what   string
	before func(*testing.T, *caller) (codes []string) // nil: no preparation; otherwise adds a factor and returns its recovery codes
	change func(*testing.T, *caller)
	stays  bool   // whether the caller's session stays valid
	notice string // text of the notice; "" means the notice that the email address was changed
}{
	{"one's own password", nil, func(t *testing.T, c *caller) {
		c.do(t, "PUT /auths/password", passwords(password, newPassword)).expect(t, 204)
	}, true, "the password was changed"},
	{"a reset", nil, func(t *testing.T, c *caller) {
		c.do(t, resetByLink, acceptance(c.world.resetLink(t, c.email), newPassword)).expect(t, 204)
	}, false, "the password was changed"},
	{"an invitation", nil, func(t *testing.T, c *caller) {
		c.world.anonymous().do(t, "POST /auths/invitations/accept", acceptance(c.world.invite(t, c.world.owner, c.id), newPassword)).expect(t, 200)
	}, false, "the password was changed"},
	{"a password by an operator", nil, func(t *testing.T, c *caller) {
		c.world.program.run(t, newPassword, "user", "set-password", "--tenant", c.world.name, "--email", c.email, "--password-stdin")
	}, false, "the password was changed"},
	{"an app", nil, func(t *testing.T, c *caller) { c.enrol(t) }, true, "an authenticator app was added"},
	{"an app less", enrolled, func(t *testing.T, c *caller) { c.do(t, "DELETE /auths/totp", "").expect(t, 204) }, true, "an authenticator app was removed"},
	{"a passkey", nil, func(t *testing.T, c *caller) { c.addPasskey(t, passkeytest.New(public)) }, true, "a passkey was added"},
	{"a passkey less", func(t *testing.T, c *caller) []string {
		return c.addPasskey(t, passkeytest.New(public)).recoveryCodes(c.world)
	}, func(t *testing.T, c *caller) {
		id := c.do(t, "GET /auths/factors", "").expect(t, 200).text("/passkeys/0/id")
		c.do(t, "DELETE /auths/passkeys/"+id, "").expect(t, 204)
	}, true, "a passkey was removed"},
	{"recovery codes", enrolled, func(t *testing.T, c *caller) { c.do(t, "POST /auths/recovery-codes", "").expect(t, 200) }, true, "new recovery codes were created"},
	{"factors by an administrator", enrolled, func(t *testing.T, c *caller) {
		c.world.owner.do(t, "DELETE /users/"+c.id+"/factors", "").expect(t, 204)
	}, false, "all second factors were removed by an administrator"},
	{"factors by an operator", enrolled, func(t *testing.T, c *caller) {
		c.world.program.run(t, "", "user", "reset-factors", "--tenant", c.world.name, "--email", c.email)
	}, false, "all second factors were removed by an administrator"},
	{"one's own address", nil, func(t *testing.T, c *caller) {
		c.do(t, changeByLink, linkBody(c.world.emailLink(t, c, c.id, "new-"+c.email))).expect(t, 204)
	}, true, ""},
	{"an address by an administrator", nil, func(t *testing.T, c *caller) {
		c.world.anonymous().do(t, changeByLink, linkBody(c.world.emailLink(t, c.world.owner, c.id, "new-"+c.email))).expect(t, 204)
	}, false, ""},
	{"an address by an operator", nil, func(t *testing.T, c *caller) {
		c.world.program.run(t, "", "user", "set-email", "--tenant", c.world.name, "--email", c.email, "--new-email", "new-"+c.email)
	}, false, ""},
}

func enrolled(t *testing.T, c *caller) []string {
	_, codes := c.enrol(t)
	return codes
}

// testCredentialChanges checks that each change of a user's credentials ends the user's other
// sessions and notifies the user.
func testCredentialChanges(t *testing.T, p *program) {
	w := newWorld(t, p)
	for i, change := range credentialChanges {
		t.Run(change.what, func(t *testing.T) {
			c := w.member(t, fmt.Sprintf("credential-%d", i), "")
			other := c
			if change.before == nil {
				other = w.signIn(t, c.email)
			} else {
				codes := change.before(t, c)
				in := w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, c.email), "recoveryCode", codes[0])).expect(t, 200)
				other = c.with(in.session(t))
			}
			change.change(t, c)
			awaitStatus(t, other, "GET /auths/session", 401)
			if status := c.do(t, "GET /auths/session", "").status; (status == 200) != change.stays {
				t.Errorf("the session in which it was done is answered %d", status)
			}
			if change.notice == "" {
				w.mailTo(t, c.email, rolecall.MailEmailChanged)
			} else {
				w.noticed(t, c.email, change.notice)
			}
		})
	}
}
