package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// newCrew creates active users of the department.
func newCrew(f *nodetest.Fixture, department string, n int) (ids []rolecall.UserID) {
	f.Helper()
	users := make([]rolecall.User, n)
	for i := range users {
		draft := rolecall.UserDraft{Email: fmt.Sprintf("crew-%d@example.com", nodetest.Serial.Add(1)), Name: "A Sailor", Department: &department}
		users[i] = draft.User(f.Clock.Now())
		users[i].Status = rolecall.UserActive
		ids = append(ids, users[i].ID)
	}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertUsers(users)
		return nil
	}))
	return ids
}

// suspendAll is a job that suspends the active users.
var suspendAll = directory.JobDraft{Action: rolecall.JobSuspend, Filter: rolecall.JobFilter{Status: "active"}, Reason: "The ship is sold"}

func startJob(f *nodetest.Fixture, c access.Caller, draft directory.JobDraft) rolecall.Job {
	f.Helper()
	created, err := f.Directory.StartJob(f.Context(), c, nodetest.NewKey(), draft)
	f.OK(err)
	return created.Value
}

// claimJob claims a job on the node. No other node can claim it for half a minute.
func claimJob(f *nodetest.Fixture, on *node.Node) rolecall.QueuedJob {
	f.Helper()
	claimed, err := on.Directory.ClaimJob(f.Context())
	f.OK(err)
	return claimed
}

// step runs one step of a claimed job and reports whether more can follow.
func step(f *nodetest.Fixture, on *node.Node, claimed rolecall.QueuedJob) bool {
	f.Helper()
	more, err := on.Directory.StepJob(f.Context(), claimed)
	f.OK(err)
	return more
}

// finish claims a job and runs it to its end.
func finish(f *nodetest.Fixture) rolecall.Job {
	f.Helper()
	claimed := claimJob(f, f.Node)
	for step(f, f.Node, claimed) {
	}
	return jobOf(f, claimed.ID)
}

// jobOf reads the job from the store.
func jobOf(f *nodetest.Fixture, id rolecall.JobID) (job rolecall.Job) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
		job, err = tx.Job(id)
		return err
	}))
	return job
}

// expectEnded fails the test unless the job has ended with the status, the problem and the counts.
func expectEnded(f *nodetest.Fixture, job rolecall.Job, status rolecall.JobStatus, problem string, counts rolecall.JobCounts) {
	f.Helper()
	if job.Status != status || job.Problem != problem || job.Counts != counts || job.EndedAt == 0 {
		f.Errorf("the job is %s %q %+v, ended at %d; want %s %q %+v", job.Status, job.Problem, job.Counts, job.EndedAt, status, problem, counts)
	}
	if job.Request.Source != "" || len(job.Filter.Words) > 0 {
		f.Errorf("the job has kept the address %q and the words %q", job.Request.Source, job.Filter.Words)
	}
	_, err := f.Directory.ClaimJob(f.Context())
	f.Is(err, rolecall.ErrNotFound)
}

// suspended returns how many of the users have exactly one event, of their suspension.
func suspended(f *nodetest.Fixture, ids []rolecall.UserID) (n int) {
	f.Helper()
	for _, id := range ids {
		switch got := f.EventTypes(id); {
		case slices.Equal(got, []rolecall.EventType{rolecall.EventUserSuspended}):
			n++
		case len(got) != 0:
			f.Errorf("the events of %s are %v", id, got)
		}
	}
	return n
}

func jobResults(f *nodetest.Fixture, c access.Caller, q rolecall.JobResultQuery) []rolecall.JobResult {
	f.Helper()
	q.Limit = rolecall.MaxLimit
	page, err := f.Directory.JobResults(f.Context(), c, q)
	f.OK(err)
	return page.Items
}

func TestAJobChangesEveryMatchingUserWithAnEventForEach(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		crew := newCrew(f, "Sales", 60)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, crew[7], "")))
		job := startJob(f, f.Owner, suspendAll)
		later := newCrew(f, "Sales", 3)
		if job.Expected != (rolecall.Total{Count: 60, Exact: true}) { // with the owner
			t.Errorf("expected %+v", job.Expected)
		}
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 59, Unchanged: 1})
		if n := suspended(f, append(crew[:7:7], crew[8:]...)); n != 59 {
			t.Errorf("%d users are suspended", n)
		}
		if n := suspended(f, later); n != 0 {
			t.Errorf("%d users that were created later are suspended", n)
		}
		event := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(crew[0])})[0]
		if event.Actor != f.Owner.Actor() || event.RequestID != "request" || event.Source != "192.0.2.1" || event.Reason != "The ship is sold" || event.SessionID != f.Owner.Session.ID {
			t.Errorf("the event of a user is %+v", event)
		}
		about := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(f.Tenant.ID)})
		if about[0].Type != rolecall.EventJobEnded || about[1].Type != rolecall.EventJobStarted || !slices.Equal(about[1].Members, []string{"status"}) {
			t.Errorf("the events of the tenant are %+v", about)
		}
		if results := jobResults(f, f.Owner, rolecall.JobResultQuery{Job: job.ID}); len(results) != 60 {
			t.Errorf("%d results", len(results))
		}
	})
}

func TestARepeatedStartReturnsTheFirstJob(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 2)
		key, draft := nodetest.NewKey(), suspendAll
		draft.Filter.Words, draft.Assignment = []string{"sailor"}, rolecall.AssignmentDraft{}
		start := func() idempotency.Created[rolecall.Job] {
			created, err := f.Directory.StartJob(f.Context(), f.Owner, key, draft)
			f.OK(err)
			return created
		}
		first, second := start(), start()
		if !second.Replayed || second.Value.ID != first.Value.ID || second.Value.Expected != first.Value.Expected || !second.Value.Filter.Searched {
			t.Errorf("the replay is %+v of %+v", second, first)
		}
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 2})
		event := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventJobStarted)})[0]
		if !slices.Equal(event.Members, []string{"q", "status"}) || slices.Contains(valuesOf(f, event), "sailor") {
			t.Errorf("the event is %+v", event)
		}
	})
}

// valuesOf returns the values of the event as text.
func valuesOf(f *nodetest.Fixture, e rolecall.Event) []string {
	return []string{string(e.Values.Before), string(e.Values.After)}
}

func TestAJobAssignsAndRemovesARole(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		crew, role := newCrew(f, "Sales", 30), f.NewRole("Sailor", "shop/ropes:pull")
		expiry := f.Clock.Now().Add(time.Hour)
		startJob(f, f.Owner, directory.JobDraft{
			Action: rolecall.JobAssignRole, Filter: rolecall.JobFilter{Department: "SALES"}, RoleID: role.ID,
			Assignment: rolecall.AssignmentDraft{Departments: []string{"Sales"}, ExpiresAt: &expiry},
		})
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 30})
		a := assignmentsOf(f, crew[29])[0]
		if a.Role.ID != role.ID || a.ExpiresAt != expiry || !slices.Equal(a.Reach.Departments(), []string{"Sales"}) || a.GrantedBy != f.Owner.User.ID {
			t.Errorf("the assignment is %+v", a)
		}
		f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(crew[3]), role.ID))
		startJob(f, f.Owner, directory.JobDraft{Action: rolecall.JobUnassignRole, Filter: rolecall.JobFilter{Department: "Sales"}, RoleID: role.ID})
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 29, Unchanged: 1})
		if left := assignmentsOf(f, crew[29]); len(left) != 0 {
			t.Errorf("the assignments are %+v", left)
		}
	})
}

func TestAJobResumesUsers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 27)
		startJob(f, f.Owner, suspendAll)
		finish(f)
		startJob(f, f.Owner, directory.JobDraft{Action: rolecall.JobResume, Filter: rolecall.JobFilter{Status: "suspended"}})
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 27})
	})
}

func TestAJobRecordsWhichUsersItWasRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 3)
		above, _ := f.Person("Sales", nodetest.Holding("users:erase"))
		c := f.CallerWith(nodetest.Holding("users:read", "users:suspend").Within("Sales"))
		startJob(f, c, suspendAll)
		job := finish(f)
		expectEnded(f, job, rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Refused: 1})
		want := []rolecall.JobResult{{UserID: above.ID, Outcome: rolecall.JobUserRefused, Problem: rolecall.ErrBeyondOwnPermissions.Code}}
		if got := jobResults(f, c, rolecall.JobResultQuery{Job: job.ID, Outcome: rolecall.JobUserRefused}); !slices.Equal(got, want) {
			t.Errorf("refused: %+v", got)
		}
	})
}

func TestTheLastOwnerStaysWhateverAJobSuspends(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		second := f.NewMember("second")
		f.Assign(second.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		_, token := f.NewOperatorKey("Suspends")
		operator, err := f.OperatorCaller(f.Node, token)
		f.OK(err)
		startJob(f, operator, suspendAll)
		job := finish(f)
		expectEnded(f, job, rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 1, Refused: 1})
		if refused := jobResults(f, operator, rolecall.JobResultQuery{Job: job.ID, Outcome: rolecall.JobUserRefused}); refused[0].Problem != rolecall.ErrLastOwner.Code {
			t.Errorf("refused: %+v", refused)
		}
	})
}

func TestAJobReachesOnlyTheUsersOfItsStarter(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, support := newCrew(f, "Sales", 3), newCrew(f, "Support", 3)
		c := f.CallerWith(nodetest.Holding("users:read", "users:suspend").Within("Sales"), nodetest.Holding("users.name:read"))
		_, err := f.Directory.StartJob(f.Context(), f.CallerWith(nodetest.Holding("users:suspend", "users.name:read")), nodetest.NewKey(), suspendAll)
		f.Is(err, rolecall.ErrFieldNotReadable)
		_, err = f.Directory.StartJob(f.Context(), f.CallerWith(nodetest.Holding("users:read")), nodetest.NewKey(), suspendAll)
		f.Is(err, rolecall.ErrPermissionDenied)
		_, err = f.Directory.StartJob(f.Context(), f.CallerWith(nodetest.Holding("users:suspend")), nodetest.NewKey(), directory.JobDraft{Action: rolecall.JobSuspend})
		f.Is(err, rolecall.ErrPermissionDenied)
		startJob(f, c, suspendAll)
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3})
		if suspended(f, sales) != 3 || suspended(f, support) != 0 {
			t.Error("it did not suspend exactly the users of Sales")
		}
		startJob(f, c, directory.JobDraft{Action: rolecall.JobSuspend}) // without a filter, it sees the users of Support, but may not suspend them
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Unchanged: 4, Refused: 7})
		if suspended(f, support) != 0 {
			t.Error("it suspended users of Support")
		}
	})
}

func TestAJobChangesRolesOnlyOfUsersInTheReachOfItsStarter(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, support, role := newCrew(f, "Sales", 3), newCrew(f, "Support", 3), f.NewRole("Sailor", "shop/ropes:pull")
		c := f.CallerWith(nodetest.Holding("users:read", "roles:read", "shop/ropes:pull"), nodetest.Holding("roles:assign").Within("Sales"))
		hold := func(after rolecall.JobAction, ids []rolecall.UserID, want int) {
			f.Helper()
			for _, id := range ids {
				if n := len(assignmentsOf(f, id)); n != want {
					f.Errorf("after %s, a user has %d roles, want %d", after, n, want)
				}
			}
		}
		draft := directory.JobDraft{Action: rolecall.JobAssignRole, Filter: rolecall.JobFilter{Words: []string{"sailor"}}, RoleID: role.ID}
		startJob(f, c, draft)
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Refused: 3})
		hold(draft.Action, sales, 1)
		hold(draft.Action, support, 0)
		for _, id := range support {
			f.Assign(id, role.ID, rolecall.AssignmentDraft{})
		}
		draft.Action = rolecall.JobUnassignRole
		startJob(f, c, draft)
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Refused: 3})
		hold(draft.Action, sales, 0)
		hold(draft.Action, support, 1)
	})
}

func TestAnAssignmentBeyondTheStarterIsRefusedAtTheStart(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Eraser", "users:erase")
		c := f.CallerWith(nodetest.Holding("users:read", "roles:read", "roles:assign"))
		draft := directory.JobDraft{Action: rolecall.JobAssignRole, RoleID: role.ID}
		_, err := f.Directory.StartJob(f.Context(), c, nodetest.NewKey(), draft)
		f.Is(err, rolecall.ErrBeyondOwnPermissions)
		draft.RoleID = rolecall.NewID[rolecall.Role](nodetest.Start)
		_, err = f.Directory.StartJob(f.Context(), f.Owner, nodetest.NewKey(), draft)
		f.Is(err, rolecall.ErrValidation)
	})
}

// revocations take from the starter of a job the right to it, after its first step.
var revocations = map[string]struct {
	revoke  func(f *nodetest.Fixture, c access.Caller)
	problem *rolecall.Error
}{
	"the session ended": {func(f *nodetest.Fixture, c access.Caller) {
		f.OK(f.SignIn.EndUserSession(f.Context(), f.Owner, c.User.ID, c.Session.ID))
	}, rolecall.ErrUnauthenticated},
	"the session expired": {func(f *nodetest.Fixture, _ access.Caller) { f.Clock.Advance(400 * 24 * time.Hour) }, rolecall.ErrUnauthenticated},
	"the user is suspended": {func(f *nodetest.Fixture, c access.Caller) {
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, c.User.ID, "")))
	}, rolecall.ErrUnauthenticated},
	"the user is deleted": {func(f *nodetest.Fixture, c access.Caller) {
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, c.User.ID, nil))
	}, rolecall.ErrUnauthenticated},
	"the role is removed": {func(f *nodetest.Fixture, c access.Caller) {
		f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(c.User.ID), c.Assignments[0].Role.ID))
	}, rolecall.ErrPermissionDenied},
	"the role has no longer the permission of the change": {func(f *nodetest.Fixture, c access.Caller) {
		f.SetPermissions(c.Assignments[0].Role.ID, "users:read")
	}, rolecall.ErrPermissionDenied},
	"the role has no longer the permission of the filter": {func(f *nodetest.Fixture, c access.Caller) {
		f.SetPermissions(c.Assignments[0].Role.ID, "users.name:read", "users:suspend")
	}, rolecall.ErrFieldNotReadable},
	"a second factor is required": {func(f *nodetest.Fixture, _ access.Caller) {
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
	}, rolecall.ErrUnauthenticated},
}

func TestAJobStopsWhenItsStarterLosesTheRightToIt(t *testing.T) {
	for what, r := range revocations {
		t.Run(what, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				crew := newCrew(f, "Sales", 30)
				c := f.CallerWith(nodetest.Holding("users:read", "users:suspend"))
				draft := suspendAll
				draft.Filter = rolecall.JobFilter{Department: "Sales", Words: []string{"sailor"}}
				startJob(f, c, draft)
				claimed := claimJob(f, f.Node)
				if !step(f, f.Node, claimed) {
					t.Error("the job ended with the first step")
				}
				r.revoke(f, c)
				if step(f, f.Node, claimed) {
					t.Error("the job goes on")
				}
				expectEnded(f, jobOf(f, claimed.ID), rolecall.JobStopped, r.problem.Code, rolecall.JobCounts{Changed: 25})
				if n := suspended(f, crew); n != 25 {
					t.Errorf("%d users are suspended", n)
				}
			})
		})
	}
}

func TestAJobOfATokenStopsWithTheToken(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 30)
		role := f.NewRole("Suspender", "users:read", "users:suspend")
		account := f.NewAccount("Import", role.ID)
		token := f.NewAccountToken(account.ID, "users:read", "users:suspend")
		startJob(f, f.CallerByToken(token), directory.JobDraft{Action: rolecall.JobSuspend, Filter: rolecall.JobFilter{Department: "Sales"}})
		claimed := claimJob(f, f.Node)
		step(f, f.Node, claimed)
		f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(account.ID), token.ID))
		step(f, f.Node, claimed)
		expectEnded(f, jobOf(f, claimed.ID), rolecall.JobStopped, rolecall.ErrUnauthenticated.Code, rolecall.JobCounts{Changed: 25})
		event := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventJobEnded)})[0]
		if event.Actor != (rolecall.Actor{Type: rolecall.ActorServiceAccount, ID: rolecall.UserID(account.ID), Via: "token", Token: token.ID}) || event.Reason != "unauthenticated" {
			t.Errorf("the event is %+v", event)
		}
	})
}

func TestAJobOfASuspendedTenantWaits(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 3)
		startJob(f, f.Owner, suspendAll)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), f.NewOperator("Suspends"), f.Tenant.Name, "")))
		for range 25 { // more often than a job that fails is tried
			if step(f, f.Node, claimJob(f, f.Node)) {
				t.Fatal("it goes on in a suspended tenant")
			}
			f.Clock.Advance(time.Minute)
		}
		f.OK(nodetest.ErrorOf(f.Directory.ResumeTenant(f.Context(), f.NewOperator("Resumes"), f.Tenant.Name, "")))
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Unchanged: 1})
	})
}

func TestACanceledJobChangesNobodyElse(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		crew := newCrew(f, "Sales", 60)
		job := startJob(f, f.Owner, suspendAll)
		claimed := claimJob(f, f.Node)
		step(f, f.Node, claimed)
		canceled, err := f.Directory.CancelJob(f.Context(), f.Owner, job.ID)
		f.OK(err)
		again, err := f.Directory.CancelJob(f.Context(), f.Owner, job.ID)
		f.OK(err)
		if step(f, f.Node, claimed) || again.EndedAt != canceled.EndedAt {
			t.Error("the job goes on")
		}
		expectEnded(f, jobOf(f, job.ID), rolecall.JobCanceled, "", canceled.Counts)
		if n := suspended(f, crew); n != canceled.Counts.Changed || n < 24 || n > 25 {
			t.Errorf("%d users are suspended, and the job counted %+v", n, canceled.Counts)
		}
		if n := len(f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventJobCanceled)})); n != 1 {
			t.Errorf("%d events of the cancellation", n)
		}
	})
}

func TestJobsOfOthersNeedTheirPermissions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 3)
		c := f.CallerWith(nodetest.Holding("users:read", "users:suspend"))
		job := startJob(f, c, suspendAll)
		stranger, auditor, admin := f.CallerWith(nodetest.Holding("users:*")), f.CallerWith(nodetest.Holding("events:read")), f.CallerWith(nodetest.Holding("events:read", "users:suspend"))
		for who, is := range map[*access.Caller]struct {
			listed       int
			read, cancel error
		}{
			&stranger: {0, rolecall.ErrNotFound, rolecall.ErrNotFound},
			&auditor:  {1, nil, rolecall.ErrPermissionDenied},
			&admin:    {1, nil, nil},
			&c:        {1, nil, nil},
		} {
			page, err := f.Directory.Jobs(f.Context(), *who, nil, 10)
			f.OK(err)
			if len(page.Items) != is.listed {
				t.Errorf("%d jobs are listed, want %d", len(page.Items), is.listed)
			}
			f.Is(nodetest.ErrorOf(f.Directory.Job(f.Context(), *who, job.ID)), is.read)
			f.Is(nodetest.ErrorOf(f.Directory.JobResults(f.Context(), *who, rolecall.JobResultQuery{Job: job.ID, Limit: 1})), is.read)
			f.Is(nodetest.ErrorOf(f.Directory.CancelJob(f.Context(), *who, job.ID)), is.cancel)
		}
	})
}

func TestATenantHasAtMostFiveRunningJobs(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		var started, refused atomic.Int64
		f.InParallel(12, func(int) error {
			switch _, err := f.Directory.StartJob(f.Context(), f.Owner, nodetest.NewKey(), suspendAll); {
			case err == nil:
				started.Add(1)
			case errors.Is(err, rolecall.ErrTooManyJobs):
				refused.Add(1)
			default:
				return err
			}
			return nil
		})
		if started.Load() != rolecall.JobsMax || refused.Load() != 12-rolecall.JobsMax {
			t.Errorf("%d jobs were started, %d refused", started.Load(), refused.Load())
		}
		finish(f)
		startJob(f, f.Owner, suspendAll)
	})
}

// mortal is the database of a process that ends before a commit.
type mortal struct {
	store.Database
	after atomic.Int64 // the number of updates that it still commits
}

var errProcessEnded = errors.New("the process has ended")

func (d *mortal) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return d.Database.Update(ctx, tenant, func(q store.Querier) error {
		if err := fn(q); err != nil {
			return err
		}
		if d.after.Add(-1) < 0 {
			return errProcessEnded
		}
		return nil
	})
}

func TestAJobContinuesAfterItsProcessHasEnded(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		crew := newCrew(f, "Sales", 120)
		job := startJob(f, f.Owner, suspendAll)
		for committed := range int64(3) { // the claim, and up to two steps
			db := &mortal{Database: f.DB.Database}
			db.after.Store(1 + committed)
			short := node.New(db, f.Options())
			claimed := claimJob(f, short)
			if claimed.ID != job.ID {
				t.Fatalf("claimed %v", claimed)
			}
			var err error
			for err == nil {
				_, err = short.Directory.StepJob(f.Context(), claimed)
			}
			f.Is(err, errProcessEnded)
			_, err = f.Directory.ClaimJob(f.Context())
			f.Is(err, rolecall.ErrNotFound) // until the claim expires
			f.Clock.Advance(time.Minute)
		}
		expectEnded(f, finish(f), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 120, Unchanged: 1})
		if n := suspended(f, crew); n != 120 {
			t.Errorf("%d users are suspended once", n)
		}
	})
}

func TestAJobThatAlwaysFailsIsStopped(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 3)
		startJob(f, f.Owner, suspendAll)
		var claimed rolecall.QueuedJob
		for range 20 {
			claimed = claimJob(f, f.Node)
			f.Clock.Advance(time.Minute)
		}
		if claimed.Attempts != 20 {
			t.Errorf("%d attempts", claimed.Attempts)
		}
		expectEnded(f, finish(f), rolecall.JobStopped, rolecall.ErrInternal.Code, rolecall.JobCounts{})
	})
}

func TestLookingForAJobWritesNothingIfNoJobIsDue(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		newCrew(f, "Sales", 3)
		claim := func() (rolecall.QueuedJob, error) { return f.Directory.ClaimJob(f.Context()) }
		idle := f.DB.During(func() { f.Is(nodetest.ErrorOf(claim()), rolecall.ErrNotFound) })
		job := startJob(f, f.Owner, suspendAll)
		busy := f.DB.During(func() { claimJob(f, f.Node) })
		claimed := f.DB.During(func() { f.Is(nodetest.ErrorOf(claim()), rolecall.ErrNotFound) })
		if slices.Contains(idle, "update") || !slices.Contains(busy, "update") || slices.Contains(claimed, "update") {
			t.Errorf("without a job %v, with %v %v, with a claimed one %v", idle, job.ID, busy, claimed)
		}
	})
}

func TestTwoStepsOfAJobAtOnceVisitDifferentUsers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		crew := newCrew(f, "Sales", 110)
		startJob(f, f.Owner, suspendAll)
		claimed, nodes := claimJob(f, f.Node), []*node.Node{f.Node, f.NewNode()}
		for err, n := range f.InParallel(8, func(i int) error {
			for { // as a node does, it tries a step again that waited too long for the others
				more, err := nodes[i%2].Directory.StepJob(f.Context(), claimed)
				if retry := errors.Is(err, rolecall.ErrUnavailable); !retry && (err != nil || !more) {
					return err
				}
			}
		}) {
			if err != nil {
				t.Errorf("%d steps failed: %v", n, err)
			}
		}
		expectEnded(f, jobOf(f, claimed.ID), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 110, Unchanged: 1})
		if n := suspended(f, crew); n != 110 {
			t.Errorf("%d users are suspended once", n)
		}
	})
}

func TestNodesRunJobsInTheBackground(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		crew := newCrew(f, "Sales", 80)
		f.NewWatchingNode()
		f.NewWatchingNode()
		job := startJob(f, f.Owner, suspendAll)
		f.Eventually(func() bool {
			f.Clock.Advance(100 * time.Millisecond) // a step that failed is tried again after the lease of the job
			return jobOf(f, job.ID).EndedAt != 0
		})
		expectEnded(f, jobOf(f, job.ID), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 80, Unchanged: 1})
		if n := suspended(f, crew); n != 80 {
			t.Errorf("%d users are suspended once", n)
		}
	})
}

func TestAStepOfAJobEndsTheSessionsOnOtherNodes(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("sailor")
		in := f.LogIn("sailor")
		peer := f.NewWatchingNode()
		f.OK(nodetest.ErrorOf(f.Authenticate(peer, in.Token)))
		startJob(f, f.Owner, suspendAll)
		f.Eventually(func() bool {
			f.Clock.Advance(100 * time.Millisecond) // a step that failed is tried again after the lease of the job
			_, err := f.Authenticate(peer, in.Token)
			return errors.Is(err, rolecall.ErrUnauthenticated)
		})
	})
}
