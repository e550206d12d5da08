package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
)

// TestOwnersWithAReachDoNotKeepTheMailFromOthers has more owners with a reach, who get no mail, than owners are
// mailed.
func TestOwnersWithAReachDoNotKeepTheMailFromOthers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i := range 25 {
			f.assign(f.member(fmt.Sprintf("limited-%d", i)).ID, f.ownerRole(), rolecall.AssignmentDraft{Departments: []string{"Sales"}})
		}
		late := f.member("late")
		f.assign(late.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		r := newReceiver(f, func(received) int { return http.StatusGone })
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventWebhookCreated))
		f.isDisabled(w.ID, rolecall.WebhookGone)
		f.eventually(func() bool {
			return slices.ContainsFunc(f.mails(), func(m rolecall.Mail) bool {
				return m.Kind == rolecall.MailWebhookDisabled && m.To == late.Email
			})
		})
	})
}
