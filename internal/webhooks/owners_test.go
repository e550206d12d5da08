package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// TestOwnersWithAReachDoNotKeepTheMailFromOthers has more owners with a reach, who get no mail, than owners are
// mailed.
func TestOwnersWithAReachDoNotKeepTheMailFromOthers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i := range 25 {
			f.Assign(f.NewMember(fmt.Sprintf("limited-%d", i)).ID, f.OwnerRole(), rolecall.AssignmentDraft{Departments: []string{"Sales"}})
		}
		late := f.NewMember("late")
		f.Assign(late.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		r := newReceiver(f, func(received) int { return http.StatusGone })
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventWebhookCreated))
		isDisabled(f, w.ID, rolecall.WebhookGone)
		f.Eventually(func() bool {
			return slices.ContainsFunc(f.Mails(), func(m rolecall.Mail) bool {
				return m.Kind == rolecall.MailWebhookDisabled && m.To == late.Email
			})
		})
	})
}
