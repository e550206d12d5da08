package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// TestItemsAreCloudEvents reads feeds with every type of event, about every kind of subject and by every
// kind of actor. It checks that each item is a CloudEvent.
func TestItemsAreCloudEvents(t *testing.T) {
	items := newTestServer(t).itemsOfEveryType()
	types := map[string]bool{}
	for _, raw := range items {
		var item map[string]any
		if err := json.Unmarshal(raw, &item); err != nil {
			t.Fatal(err)
		}
		types[fmt.Sprint(item["type"])] = true
		checkCloudEvent(t, item)
	}
	for _, d := range rolecall.EventDescriptions() {
		if !types[string(d.Type)] {
			t.Errorf("no item has the type %s", d.Type)
		}
	}
}

// TestLibrariesParseItems parses each item with the CloudEvents SDKs for JavaScript and Python.
func TestLibrariesParseItems(t *testing.T) {
	if os.Getenv("ROLECALL_TEST_INTEROP") == "" {
		t.Skip("make interop runs this, with ROLECALL_TEST_INTEROP set")
	}
	items := newTestServer(t).itemsOfEveryType()
	types := len(rolecall.EventDescriptions())
	file := filepath.Join(t.TempDir(), "items.json")
	content, err := json.Marshal(items)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"node", "parse.mjs"}, {".venv/bin/python", "parse.py"}} {
		run := exec.CommandContext(t.Context(), command[0], append(command[1:], file)...)
		run.Dir = "interop"
		output, err := run.CombinedOutput()
		if want := fmt.Sprintln(len(items), types); err != nil || string(output) != want {
			t.Errorf("%q: %v: %s, want %s", command, err, output, want)
		}
		t.Logf("%s parsed %d items of %d types", command[1], len(items), types)
	}
}

// itemsOfEveryType returns the items of the feeds of the tenant and of the operators, with every type of event.
func (s *testServer) itemsOfEveryType() []json.RawMessage {
	s.t.Helper()
	s.operate()
	s.recordEveryType()
	items := s.follow("/changes", "Cookie", s.owner)
	return append(items, s.follow("/operator/changes", "X-Tenant-Schema", "", "Authorization", s.operators[0])...)
}

// recordEveryType stores events of all types in the tenant of the server.
func (s *testServer) recordEveryType() {
	s.t.Helper()
	owner, err := rolecall.ParseID[rolecall.User](s.ownerID)
	if err != nil {
		s.t.Fatal(err)
	}
	now := rolecall.TimeOf(time.Now())
	actors := []rolecall.Actor{
		{Type: rolecall.ActorUser, ID: owner, Via: "http"}, {Type: rolecall.ActorServiceAccount, ID: owner, Via: "token", Token: rolecall.NewID[rolecall.APIToken](now)},
		{Type: rolecall.ActorOperator, Via: "command"}, {Type: rolecall.ActorAnonymous, Via: "http"},
	}
	const values = `{"id":"x","name":"Zoë \"\u2028\" \u0000 😀","metadata":{"<&>":"]]>"},"departments":["Ü"],"expiresAt":"2999-12-31T00:00:00.000000Z","big":9007199254740993}`
	tenant, err := s.node.Directory.Tenant(context.Background(), tenantName)
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.node.Access.Store.Update(context.Background(), tenant.ID, func(tx *store.Tx) error {
		for _, d := range rolecall.EventDescriptions() {
			for _, subject := range d.Subjects {
				for i, actor := range actors {
					e := rolecall.Event{ID: rolecall.NewID[rolecall.Event](now), Type: d.Type, OccurredAt: now, Actor: actor, Members: d.Members, Subject: rolecall.Subject{Type: subject, ID: rolecall.AnyID(owner)}}
					if i%2 == 0 {
						e.RequestID, e.Reason, e.Source = "request \"1\"", "Grund: „Ä“\n\t😀", "192.0.2.1"
						e.Values = &rolecall.EventValues{Before: []byte(values), After: []byte(values)}
					}
					tx.InsertEvent(e)
				}
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// follow returns all items of a feed.
func (s *testServer) follow(path string, headers ...string) (all []json.RawMessage) {
	s.t.Helper()
	for query, more := "?limit=200", true; more; {
		r := s.request(http.MethodGet, path+query, "", headers...)
		var page struct {
			Items      []json.RawMessage
			NextCursor string
			UpToDate   bool
		}
		if err := json.Unmarshal([]byte(r.body), &page); r.StatusCode != http.StatusOK || err != nil {
			s.t.Fatalf("%d %s %v", r.StatusCode, r.body, err)
		}
		all = append(all, page.Items...)
		query, more = "?limit=200&after="+url.QueryEscape(page.NextCursor), !page.UpToDate
	}
	return all
}

// checkCloudEvent checks the rules of CloudEvents 1.0 for the attributes of an item.
func checkCloudEvent(t *testing.T, item map[string]any) {
	t.Helper()
	for name, value := range item {
		text, isText := value.(string)
		if name != "data" && (!isText || text == "") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("the attribute %s is %v", name, value)
		}
	}
	if _, err := time.Parse(time.RFC3339, fmt.Sprint(item["time"])); err != nil {
		t.Error(err)
	}
	if _, err := url.Parse(fmt.Sprint(item["source"])); err != nil {
		t.Error(err)
	}
	if _, ok := item["data"].(map[string]any); item["specversion"] != "1.0" || item["datacontenttype"] != "application/json" || !ok {
		t.Errorf("the item is %v", item)
	}
}
