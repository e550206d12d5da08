package node_test

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
	"github.com/rolecall/rolecall/internal/store"
)

// crew creates active users of the department.
func (f *fixture) crew(department string, n int) (ids []rolecall.UserID) {
	f.Helper()
	users := make([]rolecall.User, n)
	for i := range users {
		draft := rolecall.UserDraft{Email: fmt.Sprintf("crew-%d@example.com", serial.Add(1)), Name: "A Sailor", Department: &department}
		users[i] = draft.User(f.clock.Now())
		users[i].Status = rolecall.UserActive
		ids = append(ids, users[i].ID)
	}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertUsers(users)
		return nil
	}))
	return ids
}

// suspendAll is a job that suspends the active users.
var suspendAll = directory.JobDraft{Action: rolecall.JobSuspend, Filter: rolecall.JobFilter{Status: "active"}, Reason: "The ship is sold"}

func (f *fixture) startJob(c access.Caller, draft directory.JobDraft) rolecall.Job {
	f.Helper()
	created, err := f.Directory.StartJob(f.Context(), c, newKey(), draft)
	f.ok(err)
	return created.Value
}

// claimJob claims a job on the node. No other node can claim it for half a minute.
func (f *fixture) claimJob(on *node.Node) rolecall.QueuedJob {
	f.Helper()
	claimed, err := on.Directory.ClaimJob(f.Context())
	f.ok(err)
	return claimed
}

// step runs one step of a claimed job and reports whether more can follow.
func (f *fixture) step(on *node.Node, claimed rolecall.QueuedJob) bool {
	f.Helper()
	more, err := on.Directory.StepJob(f.Context(), claimed)
	f.ok(err)
	return more
}

// finish claims a job and runs it to its end.
func (f *fixture) finish() rolecall.Job {
	f.Helper()
	claimed := f.claimJob(f.Node)
	for f.step(f.Node, claimed) {
	}
	return f.jobOf(claimed.ID)
}

// jobOf reads the job from the store.
func (f *fixture) jobOf(id rolecall.JobID) (job rolecall.Job) {
	f.Helper()
	f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
		job, err = tx.Job(id)
		return err
	}))
	return job
}

// ended fails the test unless the job has ended with the status, the problem and the counts.
func (f *fixture) ended(job rolecall.Job, status rolecall.JobStatus, problem string, counts rolecall.JobCounts) {
	f.Helper()
	if job.Status != status || job.Problem != problem || job.Counts != counts || job.EndedAt == 0 {
		f.Errorf("the job is %s %q %+v, ended at %d; want %s %q %+v", job.Status, job.Problem, job.Counts, job.EndedAt, status, problem, counts)
	}
	if job.Request.Source != "" || len(job.Filter.Words) > 0 {
		f.Errorf("the job has kept the address %q and the words %q", job.Request.Source, job.Filter.Words)
	}
	_, err := f.Directory.ClaimJob(f.Context())
	f.is(err, rolecall.ErrNotFound)
}

// suspended returns how many of the users have exactly one event, of their suspension.
func (f *fixture) suspended(ids []rolecall.UserID) (n int) {
	f.Helper()
	for _, id := range ids {
		switch got := f.eventTypes(id); {
		case slices.Equal(got, []rolecall.EventType{rolecall.EventUserSuspended}):
			n++
		case len(got) != 0:
			f.Errorf("the events of %s are %v", id, got)
		}
	}
	return n
}

func (f *fixture) results(c access.Caller, q rolecall.JobResultQuery) []rolecall.JobResult {
	f.Helper()
	q.Limit = rolecall.MaxLimit
	page, err := f.Directory.JobResults(f.Context(), c, q)
	f.ok(err)
	return page.Items
}

func TestAJobChangesEveryMatchingUserWithAnEventForEach(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		crew := f.crew("Sales", 60)
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, crew[7], "")))
		job := f.startJob(f.owner, suspendAll)
		later := f.crew("Sales", 3)
		if job.Expected != (rolecall.Total{Count: 60, Exact: true}) { // with the owner
			t.Errorf("expected %+v", job.Expected)
		}
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 59, Unchanged: 1})
		if n := f.suspended(append(crew[:7:7], crew[8:]...)); n != 59 {
			t.Errorf("%d users are suspended", n)
		}
		if n := f.suspended(later); n != 0 {
			t.Errorf("%d users that were created later are suspended", n)
		}
		event := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(crew[0])})[0]
		if event.Actor != f.owner.Actor() || event.RequestID != "request" || event.Source != "192.0.2.1" || event.Reason != "The ship is sold" || event.SessionID != f.owner.Session.ID {
			t.Errorf("the event of a user is %+v", event)
		}
		about := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(f.tenant.ID)})
		if about[0].Type != rolecall.EventJobEnded || about[1].Type != rolecall.EventJobStarted || !slices.Equal(about[1].Members, []string{"status"}) {
			t.Errorf("the events of the tenant are %+v", about)
		}
		if results := f.results(f.owner, rolecall.JobResultQuery{Job: job.ID}); len(results) != 60 {
			t.Errorf("%d results", len(results))
		}
	})
}

func TestARepeatedStartReturnsTheFirstJob(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 2)
		key, draft := newKey(), suspendAll
		draft.Filter.Words, draft.Assignment = []string{"sailor"}, rolecall.AssignmentDraft{}
		start := func() idempotency.Created[rolecall.Job] {
			created, err := f.Directory.StartJob(f.Context(), f.owner, key, draft)
			f.ok(err)
			return created
		}
		first, second := start(), start()
		if !second.Replayed || second.Value.ID != first.Value.ID || second.Value.Expected != first.Value.Expected || !second.Value.Filter.Searched {
			t.Errorf("the replay is %+v of %+v", second, first)
		}
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 2})
		event := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventJobStarted)})[0]
		if !slices.Equal(event.Members, []string{"q", "status"}) || slices.Contains(f.valuesOf(event), "sailor") {
			t.Errorf("the event is %+v", event)
		}
	})
}

// valuesOf returns the values of the event as text.
func (f *fixture) valuesOf(e rolecall.Event) []string {
	return []string{string(e.Values.Before), string(e.Values.After)}
}

func TestAJobAssignsAndRemovesARole(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		crew, role := f.crew("Sales", 30), f.role("Sailor", "shop/ropes:pull")
		expiry := f.clock.Now().Add(time.Hour)
		f.startJob(f.owner, directory.JobDraft{
			Action: rolecall.JobAssignRole, Filter: rolecall.JobFilter{Department: "SALES"}, RoleID: role.ID,
			Assignment: rolecall.AssignmentDraft{Departments: []string{"Sales"}, ExpiresAt: &expiry},
		})
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 30})
		a := f.assignments(crew[29])[0]
		if a.Role.ID != role.ID || a.ExpiresAt != expiry || !slices.Equal(a.Reach.Departments(), []string{"Sales"}) || a.GrantedBy != f.owner.User.ID {
			t.Errorf("the assignment is %+v", a)
		}
		f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(crew[3]), role.ID))
		f.startJob(f.owner, directory.JobDraft{Action: rolecall.JobUnassignRole, Filter: rolecall.JobFilter{Department: "Sales"}, RoleID: role.ID})
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 29, Unchanged: 1})
		if left := f.assignments(crew[29]); len(left) != 0 {
			t.Errorf("the assignments are %+v", left)
		}
	})
}

func TestAJobResumesUsers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 27)
		f.startJob(f.owner, suspendAll)
		f.finish()
		f.startJob(f.owner, directory.JobDraft{Action: rolecall.JobResume, Filter: rolecall.JobFilter{Status: "suspended"}})
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 27})
	})
}

func TestAJobRecordsWhichUsersItWasRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 3)
		above, _ := f.person("Sales", holding("users:erase"))
		c := f.caller(holding("users:read", "users:suspend").within("Sales"))
		f.startJob(c, suspendAll)
		job := f.finish()
		f.ended(job, rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Refused: 1})
		want := []rolecall.JobResult{{UserID: above.ID, Outcome: rolecall.JobUserRefused, Problem: rolecall.ErrBeyondOwnPermissions.Code}}
		if got := f.results(c, rolecall.JobResultQuery{Job: job.ID, Outcome: rolecall.JobUserRefused}); !slices.Equal(got, want) {
			t.Errorf("refused: %+v", got)
		}
	})
}

func TestTheLastOwnerStaysWhateverAJobSuspends(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		second := f.member("second")
		f.assign(second.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		_, token := f.operatorKey("Suspends")
		operator, err := f.operator(f.Node, token)
		f.ok(err)
		f.startJob(operator, suspendAll)
		job := f.finish()
		f.ended(job, rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 1, Refused: 1})
		if refused := f.results(operator, rolecall.JobResultQuery{Job: job.ID, Outcome: rolecall.JobUserRefused}); refused[0].Problem != rolecall.ErrLastOwner.Code {
			t.Errorf("refused: %+v", refused)
		}
	})
}

func TestAJobReachesOnlyTheUsersOfItsStarter(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, support := f.crew("Sales", 3), f.crew("Support", 3)
		c := f.caller(holding("users:read", "users:suspend").within("Sales"), holding("users.name:read"))
		_, err := f.Directory.StartJob(f.Context(), f.caller(holding("users:suspend", "users.name:read")), newKey(), suspendAll)
		f.is(err, rolecall.ErrFieldNotReadable)
		_, err = f.Directory.StartJob(f.Context(), f.caller(holding("users:read")), newKey(), suspendAll)
		f.is(err, rolecall.ErrPermissionDenied)
		_, err = f.Directory.StartJob(f.Context(), f.caller(holding("users:suspend")), newKey(), directory.JobDraft{Action: rolecall.JobSuspend})
		f.is(err, rolecall.ErrPermissionDenied)
		f.startJob(c, suspendAll)
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3})
		if f.suspended(sales) != 3 || f.suspended(support) != 0 {
			t.Error("it did not suspend exactly the users of Sales")
		}
		f.startJob(c, directory.JobDraft{Action: rolecall.JobSuspend}) // without a filter, it sees the users of Support, but may not suspend them
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Unchanged: 4, Refused: 7})
		if f.suspended(support) != 0 {
			t.Error("it suspended users of Support")
		}
	})
}

func TestAJobChangesRolesOnlyOfUsersInTheReachOfItsStarter(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, support, role := f.crew("Sales", 3), f.crew("Support", 3), f.role("Sailor", "shop/ropes:pull")
		c := f.caller(holding("users:read", "roles:read", "shop/ropes:pull"), holding("roles:assign").within("Sales"))
		hold := func(after rolecall.JobAction, ids []rolecall.UserID, want int) {
			f.Helper()
			for _, id := range ids {
				if n := len(f.assignments(id)); n != want {
					f.Errorf("after %s, a user has %d roles, want %d", after, n, want)
				}
			}
		}
		draft := directory.JobDraft{Action: rolecall.JobAssignRole, Filter: rolecall.JobFilter{Words: []string{"sailor"}}, RoleID: role.ID}
		f.startJob(c, draft)
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Refused: 3})
		hold(draft.Action, sales, 1)
		hold(draft.Action, support, 0)
		for _, id := range support {
			f.assign(id, role.ID, rolecall.AssignmentDraft{})
		}
		draft.Action = rolecall.JobUnassignRole
		f.startJob(c, draft)
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Refused: 3})
		hold(draft.Action, sales, 0)
		hold(draft.Action, support, 1)
	})
}

func TestAnAssignmentBeyondTheStarterIsRefusedAtTheStart(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.role("Eraser", "users:erase")
		c := f.caller(holding("users:read", "roles:read", "roles:assign"))
		draft := directory.JobDraft{Action: rolecall.JobAssignRole, RoleID: role.ID}
		_, err := f.Directory.StartJob(f.Context(), c, newKey(), draft)
		f.is(err, rolecall.ErrBeyondOwnPermissions)
		draft.RoleID = rolecall.NewID[rolecall.Role](start)
		_, err = f.Directory.StartJob(f.Context(), f.owner, newKey(), draft)
		f.is(err, rolecall.ErrValidation)
	})
}

// revocations take from the starter of a job the right to it, after its first step.
var revocations = map[string]struct {
	revoke  func(f *fixture, c access.Caller)
	problem *rolecall.Error
}{
	"the session ended": {func(f *fixture, c access.Caller) {
		f.ok(f.SignIn.EndUserSession(f.Context(), f.owner, c.User.ID, c.Session.ID))
	}, rolecall.ErrUnauthenticated},
	"the session expired": {func(f *fixture, _ access.Caller) { f.clock.advance(400 * 24 * time.Hour) }, rolecall.ErrUnauthenticated},
	"the user is suspended": {func(f *fixture, c access.Caller) {
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, c.User.ID, "")))
	}, rolecall.ErrUnauthenticated},
	"the user is deleted": {func(f *fixture, c access.Caller) {
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, c.User.ID, nil))
	}, rolecall.ErrUnauthenticated},
	"the role is removed": {func(f *fixture, c access.Caller) {
		f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(c.User.ID), c.Assignments[0].Role.ID))
	}, rolecall.ErrPermissionDenied},
	"the role has no longer the permission of the change": {func(f *fixture, c access.Caller) {
		f.setPermissions(c.Assignments[0].Role.ID, "users:read")
	}, rolecall.ErrPermissionDenied},
	"the role has no longer the permission of the filter": {func(f *fixture, c access.Caller) {
		f.setPermissions(c.Assignments[0].Role.ID, "users.name:read", "users:suspend")
	}, rolecall.ErrFieldNotReadable},
	"a second factor is required": {func(f *fixture, _ access.Caller) {
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
	}, rolecall.ErrUnauthenticated},
}

func (f *fixture) setPermissions(role rolecall.RoleID, permissions ...string) {
	f.Helper()
	f.ok(errorOf(f.Directory.UpdateRole(f.Context(), f.owner, role, rolecall.RolePatch{Permissions: rolecall.Some(permissions)}, nil)))
}

func TestAJobStopsWhenItsStarterLosesTheRightToIt(t *testing.T) {
	for what, r := range revocations {
		t.Run(what, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				crew := f.crew("Sales", 30)
				c := f.caller(holding("users:read", "users:suspend"))
				draft := suspendAll
				draft.Filter = rolecall.JobFilter{Department: "Sales", Words: []string{"sailor"}}
				f.startJob(c, draft)
				claimed := f.claimJob(f.Node)
				if !f.step(f.Node, claimed) {
					t.Error("the job ended with the first step")
				}
				r.revoke(f, c)
				if f.step(f.Node, claimed) {
					t.Error("the job goes on")
				}
				f.ended(f.jobOf(claimed.ID), rolecall.JobStopped, r.problem.Code, rolecall.JobCounts{Changed: 25})
				if n := f.suspended(crew); n != 25 {
					t.Errorf("%d users are suspended", n)
				}
			})
		})
	}
}

func TestAJobOfATokenStopsWithTheToken(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 30)
		role := f.role("Suspender", "users:read", "users:suspend")
		account := f.account("Import", role.ID)
		token := f.accountToken(account.ID, "users:read", "users:suspend")
		f.startJob(f.ofProgram(token), directory.JobDraft{Action: rolecall.JobSuspend, Filter: rolecall.JobFilter{Department: "Sales"}})
		claimed := f.claimJob(f.Node)
		f.step(f.Node, claimed)
		f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(account.ID), token.ID))
		f.step(f.Node, claimed)
		f.ended(f.jobOf(claimed.ID), rolecall.JobStopped, rolecall.ErrUnauthenticated.Code, rolecall.JobCounts{Changed: 25})
		event := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventJobEnded)})[0]
		if event.Actor != (rolecall.Actor{Type: rolecall.ActorServiceAccount, ID: rolecall.UserID(account.ID), Via: "token", Token: token.ID}) || event.Reason != "unauthenticated" {
			t.Errorf("the event is %+v", event)
		}
	})
}

func TestAJobOfASuspendedTenantWaits(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 3)
		f.startJob(f.owner, suspendAll)
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), f.operates("Suspends"), f.tenant.Name, "")))
		for range 25 { // more often than a job that fails is tried
			if f.step(f.Node, f.claimJob(f.Node)) {
				t.Fatal("it goes on in a suspended tenant")
			}
			f.clock.advance(time.Minute)
		}
		f.ok(errorOf(f.Directory.ResumeTenant(f.Context(), f.operates("Resumes"), f.tenant.Name, "")))
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 3, Unchanged: 1})
	})
}

func TestACanceledJobChangesNobodyElse(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		crew := f.crew("Sales", 60)
		job := f.startJob(f.owner, suspendAll)
		claimed := f.claimJob(f.Node)
		f.step(f.Node, claimed)
		canceled, err := f.Directory.CancelJob(f.Context(), f.owner, job.ID)
		f.ok(err)
		again, err := f.Directory.CancelJob(f.Context(), f.owner, job.ID)
		f.ok(err)
		if f.step(f.Node, claimed) || again.EndedAt != canceled.EndedAt {
			t.Error("the job goes on")
		}
		f.ended(f.jobOf(job.ID), rolecall.JobCanceled, "", canceled.Counts)
		if n := f.suspended(crew); n != canceled.Counts.Changed || n < 24 || n > 25 {
			t.Errorf("%d users are suspended, and the job counted %+v", n, canceled.Counts)
		}
		if n := len(f.events(f.owner, directory.EventListing{Type: string(rolecall.EventJobCanceled)})); n != 1 {
			t.Errorf("%d events of the cancellation", n)
		}
	})
}

func TestJobsOfOthersNeedTheirPermissions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 3)
		c := f.caller(holding("users:read", "users:suspend"))
		job := f.startJob(c, suspendAll)
		stranger, auditor, admin := f.caller(holding("users:*")), f.caller(holding("events:read")), f.caller(holding("events:read", "users:suspend"))
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
			f.ok(err)
			if len(page.Items) != is.listed {
				t.Errorf("%d jobs are listed, want %d", len(page.Items), is.listed)
			}
			f.is(errorOf(f.Directory.Job(f.Context(), *who, job.ID)), is.read)
			f.is(errorOf(f.Directory.JobResults(f.Context(), *who, rolecall.JobResultQuery{Job: job.ID, Limit: 1})), is.read)
			f.is(errorOf(f.Directory.CancelJob(f.Context(), *who, job.ID)), is.cancel)
		}
	})
}

func TestATenantHasAtMostFiveRunningJobs(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var started, refused atomic.Int64
		f.inParallel(12, func(int) error {
			switch _, err := f.Directory.StartJob(f.Context(), f.owner, newKey(), suspendAll); {
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
		f.finish()
		f.startJob(f.owner, suspendAll)
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
	onEachStore(t, func(f *fixture) {
		crew := f.crew("Sales", 120)
		job := f.startJob(f.owner, suspendAll)
		for committed := range int64(3) { // the claim, and up to two steps
			db := &mortal{Database: f.db.Database}
			db.after.Store(1 + committed)
			short := node.New(db, f.options())
			claimed := f.claimJob(short)
			if claimed.ID != job.ID {
				t.Fatalf("claimed %v", claimed)
			}
			var err error
			for err == nil {
				_, err = short.Directory.StepJob(f.Context(), claimed)
			}
			f.is(err, errProcessEnded)
			_, err = f.Directory.ClaimJob(f.Context())
			f.is(err, rolecall.ErrNotFound) // until the claim expires
			f.clock.advance(time.Minute)
		}
		f.ended(f.finish(), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 120, Unchanged: 1})
		if n := f.suspended(crew); n != 120 {
			t.Errorf("%d users are suspended once", n)
		}
	})
}

func TestAJobThatAlwaysFailsIsStopped(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 3)
		f.startJob(f.owner, suspendAll)
		var claimed rolecall.QueuedJob
		for range 20 {
			claimed = f.claimJob(f.Node)
			f.clock.advance(time.Minute)
		}
		if claimed.Attempts != 20 {
			t.Errorf("%d attempts", claimed.Attempts)
		}
		f.ended(f.finish(), rolecall.JobStopped, rolecall.ErrInternal.Code, rolecall.JobCounts{})
	})
}

func TestLookingForAJobWritesNothingIfNoJobIsDue(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.crew("Sales", 3)
		claim := func() (rolecall.QueuedJob, error) { return f.Directory.ClaimJob(f.Context()) }
		idle := f.db.during(func() { f.is(errorOf(claim()), rolecall.ErrNotFound) })
		job := f.startJob(f.owner, suspendAll)
		busy := f.db.during(func() { f.claimJob(f.Node) })
		claimed := f.db.during(func() { f.is(errorOf(claim()), rolecall.ErrNotFound) })
		if slices.Contains(idle, "update") || !slices.Contains(busy, "update") || slices.Contains(claimed, "update") {
			t.Errorf("without a job %v, with %v %v, with a claimed one %v", idle, job.ID, busy, claimed)
		}
	})
}

func TestTwoStepsOfAJobAtOnceVisitDifferentUsers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		crew := f.crew("Sales", 110)
		f.startJob(f.owner, suspendAll)
		claimed, nodes := f.claimJob(f.Node), []*node.Node{f.Node, f.node()}
		for err, n := range f.inParallel(8, func(i int) error {
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
		f.ended(f.jobOf(claimed.ID), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 110, Unchanged: 1})
		if n := f.suspended(crew); n != 110 {
			t.Errorf("%d users are suspended once", n)
		}
	})
}

func TestNodesRunJobsInTheBackground(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		crew := f.crew("Sales", 80)
		f.watchingNode()
		f.watchingNode()
		job := f.startJob(f.owner, suspendAll)
		f.eventually(func() bool { return f.jobOf(job.ID).EndedAt != 0 })
		f.ended(f.jobOf(job.ID), rolecall.JobCompleted, "", rolecall.JobCounts{Changed: 80, Unchanged: 1})
		if n := f.suspended(crew); n != 80 {
			t.Errorf("%d users are suspended once", n)
		}
	})
}

func TestAStepOfAJobEndsTheSessionsOnOtherNodes(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("sailor")
		in := f.signIn("sailor")
		peer := f.watchingNode()
		f.ok(errorOf(f.authenticate(peer, in.Token)))
		f.startJob(f.owner, suspendAll)
		f.eventually(func() bool {
			_, err := f.authenticate(peer, in.Token)
			return errors.Is(err, rolecall.ErrUnauthenticated)
		})
	})
}
