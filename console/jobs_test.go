package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// place creates a user of the department.
func (f *fixture) place(email, department string) rolecall.User {
	f.t.Helper()
	created, err := f.node.Directory.CreateUser(f.t.Context(), f.asOwner(), idempotency.Key{Text: email, Fingerprint: []byte(email)},
		rolecall.UserDraft{Email: email, Name: "User of " + department, Department: &department})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

// runJob runs the only job of the tenant to its end.
func (f *fixture) runJob() {
	f.t.Helper()
	claimed, err := f.node.Directory.ClaimJob(f.t.Context())
	for more := true; more && err == nil; {
		more, err = f.node.Directory.StepJob(f.t.Context(), claimed)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// statusOf returns the status of the user.
func (f *fixture) statusOf(u rolecall.User) rolecall.UserStatus {
	f.t.Helper()
	now, err := f.node.Directory.User(f.t.Context(), f.asOwner(), u.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return now.Status
}

const suspendAll = "/console/acme/users/all/suspend"

func TestAJobChangesTheUsersOfTheList(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	sales, more, legal := f.place("a@example.com", "Sales"), f.place("b@example.com", "Sales"), f.place("c@example.com", "Legal")
	for _, list := range []string{"/users?department=Sales", "/users?department=sALES&sort=name"} {
		if a := f.get(suspendAll+"?return="+url.QueryEscape(list), cookie); !strings.Contains(a.body, "Suspend 2 users?") {
			t.Errorf("%s: %d %s", list, a.StatusCode, a.body)
		}
		for _, u := range []rolecall.User{sales, more} {
			if f.statusOf(u) == rolecall.UserSuspended {
				if _, err := f.node.Directory.ResumeUser(t.Context(), f.asOwner(), u.ID, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		a := f.send(http.MethodPost, suspendAll, cookie, url.Values{"return": {list}, "idempotency-key": {list}})
		if a.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", list, a.StatusCode, a.body)
		}
		job := a.Header.Get("Location")
		if page := f.get(job, cookie); !strings.Contains(page.body, "0 of 2 users") || !strings.Contains(strings.ToLower(page.body), "in sales") {
			t.Errorf("%s: %s", list, page.body)
		}
		f.runJob()
		if page := f.get(job, cookie); !strings.Contains(page.body, "Completed") || !strings.Contains(page.body, "2 changed") {
			t.Errorf("%s: %s", list, page.body)
		}
		if f.statusOf(sales) != rolecall.UserSuspended || f.statusOf(more) != rolecall.UserSuspended || f.statusOf(legal) == rolecall.UserSuspended {
			t.Errorf("%s: %s %s %s", list, f.statusOf(sales), f.statusOf(more), f.statusOf(legal))
		}
	}
}

// A department with a similar name, or that begins with the text, is another department.
func TestAJobChangesOnlyUsersOfExactlyTheDepartment(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	others := []rolecall.User{f.place("a@example.com", "ガード事業部"), f.place("b@example.com", "Sales EMEA")}
	for _, department := range []string{"カード事業部", "Sales"} {
		list := "/users?department=" + url.QueryEscape(department)
		for _, a := range []reply{
			f.get(suspendAll+"?return="+url.QueryEscape(list), cookie),
			f.send(http.MethodPost, suspendAll, cookie, url.Values{"return": {list}, "idempotency-key": {url.QueryEscape(department)}}),
		} {
			if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "No users that you can view are in the department "+department) {
				t.Errorf("%s: %d %s", department, a.StatusCode, a.body)
			}
		}
		if records := f.exported("/console/acme/users/export?department="+url.QueryEscape(department), cookie); len(records) != 1 {
			t.Errorf("%s: %q is exported", department, records)
		}
	}
	if page := f.get("/console/acme/jobs", cookie); !strings.Contains(page.body, "No jobs") {
		f.runJob()
		t.Errorf("a job was started: %s", page.body)
	}
	for _, u := range others {
		if f.statusOf(u) == rolecall.UserSuspended {
			t.Errorf("a user of %s is suspended", *u.Department)
		}
	}
}

// The list suggests the first 200 departments only.
func TestADepartmentIsFoundAmongMany(t *testing.T) {
	f := newFixture(t)
	for i := range departmentsKnown - 1 {
		f.settle(1, fmt.Sprintf("Department %03d", i))
	}
	similar, meant := f.place("similar@example.com", "Ecole"), f.place("meant@example.com", "École")
	cookie := f.signIn("acme", ownerEmail) // each new user is made in a session of the owner, who has a limited number of them
	const list = "/users?department=%C3%89cole"
	if got := namesOnPage(f.get("/console/acme"+list, cookie).body); !slices.Equal(got, []string{"User of École"}) {
		t.Errorf("the list shows %q", got)
	}
	a := f.send(http.MethodPost, suspendAll, cookie, url.Values{"return": {list}, "idempotency-key": {"key"}})
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	f.runJob()
	if f.statusOf(meant) != rolecall.UserSuspended || f.statusOf(similar) == rolecall.UserSuspended {
		t.Errorf("École: %s, Ecole: %s", f.statusOf(meant), f.statusOf(similar))
	}
}

func TestTheDialogOfAJobNamesItsFilter(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	f.place("a@example.com", "Sales")
	for list, want := range map[string]string{
		"/users": "All users", "/users?department=Sales&status=pending&q=user": "matching a search text, pending and in Sales",
	} {
		if a := f.get(suspendAll+"?return="+url.QueryEscape(list), cookie); !strings.Contains(a.body, "<bdi>"+want) {
			t.Errorf("%s: want %q: %s", list, want, a.body)
		}
	}
}

// Without its filter, a job would change users that are not in the list.
func TestAJobRefusesFiltersThatItDoesNotSupport(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	f.place("a@example.com", "Sales")
	f.place("b@example.com", "Sales EMEA")
	for list, want := range map[string]string{
		"/users?email=a@example.com": "filters for an email address",
		"/users?externalId=E1":       "filters for an email address",
		"/users?department=sal":      "No users that you can view are in the department sal",
		"/users?status=gone":         "status",
		"/roles":                     "Go back to the list",
		"":                           "Go back to the list",
	} {
		for _, a := range []reply{
			f.get(suspendAll+"?return="+url.QueryEscape(list), cookie),
			f.send(http.MethodPost, suspendAll, cookie, url.Values{"return": {list}, "idempotency-key": {"k" + list}}),
		} {
			if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, want) {
				t.Errorf("%q: %d, want %q: %s", list, a.StatusCode, want, a.body)
			}
		}
	}
	if page := f.get("/console/acme/jobs", cookie); !strings.Contains(page.body, "No jobs") {
		t.Errorf("a job was started: %s", page.body)
	}
}

func TestEventsNameTheJobThatMadeTheChange(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	sales := f.place("a@example.com", "Sales")
	byHand := f.place("b@example.com", "Legal")
	if _, err := f.node.Directory.SuspendUser(t.Context(), f.asOwner(), byHand.ID, ""); err != nil {
		t.Fatal(err)
	}
	start := func(key string) string {
		a := f.send(http.MethodPost, suspendAll, cookie, url.Values{"return": {"/users?department=Sales"}, "idempotency-key": {key}})
		job, _, _ := strings.Cut(a.Header.Get("Location"), "?")
		return job
	}
	shows := func(path string, want bool, parts ...string) {
		t.Helper()
		body := strings.Join(strings.Fields(f.get("/console/acme/events"+path, cookie).body), " ")
		for _, part := range parts {
			if strings.Contains(body, part) != want {
				t.Errorf("%s shows %q: %v, want %v: %s", path, part, !want, want, body)
			}
		}
	}
	job := start("first")
	f.runJob()
	link := `<a href="` + job + `">Suspend users</a>`
	shows("?subject="+sales.ID.String(), true, "</a> <span class=\"quiet\">with the job "+link)
	shows("?subject="+byHand.ID.String(), false, "with the job")
	shows("?type=job.started", true, "You started the job "+link)
	shows("?type=job.ended", true, "The job "+link+" ended. You started it.")
	canceled := start("second")
	if a := f.send(http.MethodPost, canceled+"/cancel", cookie, nil); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	shows("?type=job.canceled", true, `You stopped the job <a href="`+canceled+`">Suspend users</a>`)
}

func TestTheListOfEventsShowsManyChangesOfAJobInOneLine(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		f.place(email, "Sales")
	}
	a := f.send(http.MethodPost, suspendAll, cookie, url.Values{"return": {"/users?department=Sales"}, "idempotency-key": {"key"}})
	job, _, _ := strings.Cut(a.Header.Get("Location"), "?")
	f.runJob()
	page := strings.Join(strings.Fields(f.get("/console/acme/events", cookie).body), " ")
	line, shown := `3 changes of the job <a href="`+job+`">Suspend users</a>`, "User suspended</span>"
	if strings.Count(page, line) != 1 || strings.Count(page, "event-run") != 1 || strings.Count(page, shown) != 3 {
		t.Errorf("the page must have %q once, with three events below it: %s", line, page)
	}
	if page := f.get("/console/acme/events?limit=2&type=user.suspended", cookie).body; strings.Contains(page, "event-run") {
		t.Errorf("two changes are in one line: %s", page)
	}
}

func TestTheCallerIsNotCountedAmongTheUsersOfAJob(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	f.place("a@example.com", "Sales")
	department := "Research"
	patch := rolecall.UserPatch{Department: rolecall.Some(&department)}
	if _, err := f.node.Directory.UpdateUser(t.Context(), f.asOwner(), f.owner.ID, patch, nil); err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{
		"/users": "Suspend 1 user?", "/users?department=Sales": "Suspend 1 user?", "/users?department=rESEARCH": "Suspend 0 users?", "/users?q=ada": "Suspend 0 users?", "/users?status=active": "Suspend 0 users?",
	} {
		if a := f.get(suspendAll+"?return="+url.QueryEscape(list), cookie); !strings.Contains(a.body, want) {
			t.Errorf("%s: want %s: %s", list, want, a.body)
		}
	}
}
