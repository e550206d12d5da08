package faults

import (
	"maps"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// jobState is the part of a job that the tests read.
type jobState struct {
	ID, Status         string
	Changed, Unchanged int
}

// TestKillDuringJob kills the program while a job suspends users. After the restart, the job
// continues, and changes each user once.
func TestKillDuringJob(t *testing.T) {
	onStores(t, func(t *testing.T, database string) {
		s := serve(t, database)
		command(t, s, password+"\n", "seed", "jobs", "--users", "1500", "--passwords", "0", "--password-stdin")
		owner := caller{load: newLoad(t, s), tenant: "jobs"}
		of := owner.send("POST /auths/login", credentials("owner@seed.example"))
		if owner.token = of.session(); owner.token == "" {
			t.Fatalf("the owner cannot sign in: %s", of.body)
		}
		var suspended struct{ Total int }
		owner.send("GET /users?status=suspended&count=true&limit=1", "").decode(&suspended)
		users := 1500 - suspended.Total
		var job jobState
		owner.send("POST /jobs/suspend-users", `{"users":{}}`, "idempotency-key: all").decode(&job)
		kills := fewer(1, 2, 20)
		for range kills {
			before := job.Changed
			awaitJob(t, owner, &job, func() bool { return job.Changed > before })
			kill(t, s)
			start(t, s)
			owner.load.endLeases()
		}
		if job.Changed == users {
			t.Fatalf("the job was complete before kill %d: it needs more users", kills)
		}
		awaitJob(t, owner, &job, func() bool { return job.Status != "running" })
		if want := (jobState{job.ID, "completed", users, suspended.Total + 1}); job != want {
			t.Errorf("the job is %+v, want %+v", job, want)
		}
		times := map[string]int{}
		for id := range walk(t, owner, "/events?type=user.suspended&limit=200") {
			times[id]++
		}
		if n := slices.Max(append(slices.Collect(maps.Values(times)), 0)); len(times) != users || n != 1 {
			t.Errorf("%d users have an event, and one has %d; want %d users with one", len(times), n, users)
		}
		t.Logf("killed %d times", kills)
	})
}

// awaitJob reads the job until done returns true. The test fails if the job makes no progress. A job of a killed
// process continues after 30 seconds.
func awaitJob(t *testing.T, c caller, job *jobState, done func() bool) {
	t.Helper()
	read := func() bool {
		of, _ := c.insist("GET /jobs/"+job.ID, "")
		of.decode(job)
		return of.status != 200 || done()
	}
	for waits := 0; waits < 2; waits++ { // half of the first wait can be for the claim of a killed process
		before := job.Changed
		if patience.Poll(read) {
			return
		}
		if job.Changed > before {
			waits = 0
		}
	}
	t.Fatalf("the job is still %+v", *job)
}

// walk reads all pages of the list of events and yields the id of each subject.
func walk(t *testing.T, c caller, list string) func(yield func(id string) bool) {
	return func(yield func(id string) bool) {
		for cursor := ""; ; {
			var page struct {
				Items []struct {
					Subject struct{ ID string }
				}
				NextCursor string
			}
			of, _ := c.insist("GET "+list+cursor, "")
			if of.decode(&page); of.status != 200 {
				t.Fatalf("GET %s is answered with %d: %s", list, of.status, of.body)
			}
			for _, item := range page.Items {
				if !yield(item.Subject.ID) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			cursor = "&cursor=" + page.NextCursor
		}
	}
}
