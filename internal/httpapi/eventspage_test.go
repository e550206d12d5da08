package httpapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// eventsIntroduction is the part of docs/events.md before the table of event types.
const eventsIntroduction = `# Events

A change writes an event in its own transaction. ` + "`GET /events`" + ` lists the events of the tenant, and ` + "`GET /users/{id}/events`" + ` those about one user, the newest first. ` + "`GET /changes`" + ` has the same events in a fixed order, the oldest first, for programs that follow them.

## What an event holds

| member | holds |
|---|---|
| ` + "`id`" + ` | the ID of the event. IDs are not in the order of commits |
| ` + "`type`" + ` | what happened: one of the types below |
| ` + "`occurredAt`" + ` | when it happened |
| ` + "`actor`" + ` | the caller: ` + "`type`" + ` is user, service_account, operator, anonymous or directory. ` + "`via`" + ` is http, token, command, mail or scim. ` + "`tokenId`" + ` is the API token |
| ` + "`subject`" + ` | the object of the event, with ` + "`type`" + ` and ` + "`id`" + ` |
| ` + "`members`" + ` | the names of the members that changed |
| ` + "`requestId`" + `, ` + "`sessionId`" + `, ` + "`source`" + ` | the request, its session and the IP address of the client. They are null if the event counts several refused requests. Without ` + "`events:read`" + `, session, address and ` + "`actor.tokenId`" + ` are null if another caller caused the event |
| ` + "`reason`" + ` | the reason, as text |
| ` + "`before`, `after`" + ` | the changed members before and after the change. Members that the caller may not read are absent |

## Types

The filter ` + "`type`" + ` of these operations takes one of these. Any other value gets 422. Later versions add types, so a program must accept types that it does not know.

| type | written when | subject | members | before | after | reason |
|---|---|---|---|---|---|---|
`

// eventsPage returns the content that docs/events.md must have.
func eventsPage() string {
	var b strings.Builder
	b.WriteString(eventsIntroduction)
	var keepAccess []string
	for _, d := range rolecall.EventDescriptions() {
		if d.KeepsAccess {
			keepAccess = append(keepAccess, "`"+string(d.Type)+"`")
		}
		var subjects []string
		for _, subject := range d.Subjects {
			subjects = append(subjects, string(subject))
		}
		var members []string
		for _, member := range d.Members {
			members = append(members, "`"+member+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", d.Type, d.Written, strings.Join(subjects, " or "), strings.Join(members, ", "), d.Before, d.After, d.Reason)
	}
	fmt.Fprintf(&b, "\n## Events that a memory of permissions can ignore\n\nEvents of these types change nothing that `GET /auths/session` answers for a session or token that exists. If a session or token ends in the same transaction, that has its own event. So a program that keeps permissions in memory can ignore them, as the clients do: %s.\n", strings.Join(keepAccess, ", "))
	return b.String()
}

func TestEventsPageIsWhatTheCodeSays(t *testing.T) {
	shown, err := renderMarkdown(eventsPage())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"../../docs/events.md": eventsPage(), "../../openapi/reference/events-text.html": shown} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the code says; run: make openapi (%v)", path, err)
		}
	}
}
