package storetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var jobCases = []testCase{
	{"A job reads back in every member", func(f *fixture) {
		want := aJob(start)
		want.Action, want.RoleID, want.Reason = rolecall.JobAssignRole, rolecall.NewID[rolecall.Role](start), "Ändert ☃"
		want.Filter = rolecall.JobFilter{Words: []string{"ada", "lov"}, Searched: true, Status: "active", Department: "Sales", Role: rolecall.NewID[rolecall.Role](start)}
		want.Assignment = rolecall.AssignmentDraft{Departments: []string{"Sales", "Ops"}, ExpiresAt: new(start + day)}
		want.Request = rolecall.JobRequest{ID: "request", Source: "192.0.2.1", Session: rolecall.NewID[rolecall.Session](start)}
		other := aJob(start)
		other.Request = rolecall.JobRequest{Token: rolecall.NewID[rolecall.APIToken](start), OperatorKey: rolecall.NewID[rolecall.OperatorKey](start)}
		other.Filter.Words = []string{}
		for _, j := range []rolecall.Job{want, other} {
			f.write(func(tx *store.Tx) { tx.InsertJob(j) })
			same(f, f.job(j.ID), j)
		}
	}},
	{"The progress of a job reads back, and its other members stay", func(f *fixture) {
		want := f.newJob(start)
		want.Status, want.Counts, want.Problem = rolecall.JobStopped, rolecall.JobCounts{Changed: 3, Unchanged: 2, Refused: 1}, "permission-denied"
		want.Last, want.EndedAt = rolecall.NewID[rolecall.User](start), start+minute
		want.Filter.Words, want.Request.Source = []string{}, ""
		f.write(func(tx *store.Tx) { tx.UpdateJob(want) })
		same(f, f.job(want.ID), want)
	}},
	{"A job that does not exist is not found", func(f *fixture) {
		f.newJob(start)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Job, error) { return tx.Job(rolecall.NewID[rolecall.Job](start)) })
		f.is(err, rolecall.ErrNotFound)
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.LockJob(rolecall.NewID[rolecall.Job](start))
			return err
		}), rolecall.ErrNotFound)
	}},
	{"Steps of a job in parallel each see the progress of the step before", func(f *fixture) {
		j := f.newJob(start)
		const steps = 12
		for _, err := range parallel(steps, func(int) error {
			return f.tryUpdate(func(tx *store.Tx) error {
				locked, err := tx.LockJob(j.ID)
				if err == nil {
					locked.Counts.Changed++
					tx.UpdateJob(locked)
				}
				return err
			})
		}) {
			f.is(err, nil)
		}
		same(f, f.job(j.ID).Counts.Changed, steps)
	}},
	{"A new job is claimed once until the claim expires or is released", func(f *fixture) {
		j := f.newJob(start)
		claimed := rolecall.QueuedJob{ID: j.ID, TenantID: f.tenant, Attempts: 1}
		same(f, f.isJobDue(start-1), false)
		same(f, f.isJobDue(start), true)
		same(f, f.claimJob(start), claimed)
		same(f, f.isJobDue(start+minute-1), false)
		same(f, f.isJobDue(start+minute), true)
		f.is(f.tryClaimJob(start+minute-1), rolecall.ErrNotFound)
		claimed.Attempts = 2
		same(f, f.claimJob(start+minute), claimed)
		f.write(func(tx *store.Tx) { tx.ReleaseJob(j.ID, start+minute) })
		claimed.Attempts = 1
		same(f, f.claimJob(start+minute), claimed)
	}},
	{"Only one of twenty concurrent claims of a job succeeds", func(f *fixture) {
		f.newJob(start)
		f.oneWins(parallel(20, func(int) error { return f.tryClaimJob(start) }), rolecall.ErrNotFound)
	}},
	{"One process claims the jobs of every tenant, the one that has been due longest first", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		second, first := f.newJob(start+1), other.newJob(start)
		nobody := f.in(rolecall.TenantID{})
		same(f, nobody.isJobDue(start), true)
		same(f, nobody.claimJob(start+1).ID, first.ID)
		same(f, nobody.claimJob(start+1).ID, second.ID)
	}},
	{"A job that has ended leaves the queue", func(f *fixture) {
		j := f.newJob(start)
		j.Status, j.EndedAt = rolecall.JobCompleted, start
		f.write(func(tx *store.Tx) { tx.UpdateJob(j) })
		same(f, f.isJobDue(start), false)
		f.is(f.tryClaimJob(start), rolecall.ErrNotFound)
	}},
	{"Only running jobs of the tenant are counted, up to the limit", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		for range 4 {
			f.newJob(start)
		}
		j := f.newJob(start)
		j.Status, j.EndedAt = rolecall.JobCanceled, start
		f.write(func(tx *store.Tx) { tx.UpdateJob(j) })
		count := func(limit int) int {
			return read(f, func(tx *store.Tx) (int, error) { return tx.CountJobs(limit) })
		}
		same(f, count(10), 4)
		same(f, count(3), 3)
		same(f, read(other, func(tx *store.Tx) (int, error) { return tx.CountJobs(10) }), 0)
	}},
	{"Jobs are listed from the newest, all or those of one starter", func(f *fixture) {
		var own, all []rolecall.JobID
		mine := aJob(start).Starter
		for i := range 7 {
			j := aJob(start + rolecall.Time(i)*second)
			if i%2 == 0 {
				j.Starter = mine
				own = append([]rolecall.JobID{j.ID}, own...)
			}
			all = append([]rolecall.JobID{j.ID}, all...)
			f.write(func(tx *store.Tx) { tx.InsertJob(j) })
		}
		same(f, f.jobIDs(rolecall.JobQuery{Limit: 3}), all)
		same(f, f.jobIDs(rolecall.JobQuery{Starter: mine.ID, Limit: 3}), own)
	}},
	{"The results of a job are listed by user, all or those of one outcome", func(f *fixture) {
		j, other := f.newJob(start), f.newJob(start)
		var all, refused []rolecall.JobResult
		for i := range 9 {
			r := rolecall.JobResult{UserID: rolecall.NewID[rolecall.User](start), Outcome: rolecall.JobUserChanged}
			if i%3 == 0 {
				r.Outcome, r.Problem = rolecall.JobUserRefused, "last-owner"
				refused = append(refused, r)
			}
			all = append(all, r)
		}
		f.write(func(tx *store.Tx) {
			tx.InsertJobResults(j.ID, all[4:], start)
			tx.InsertJobResults(j.ID, all[:4], start)
			tx.InsertJobResults(other.ID, all[:1], start)
		})
		same(f, f.jobResults(rolecall.JobResultQuery{Job: j.ID, Limit: 2}), all)
		same(f, f.jobResults(rolecall.JobResultQuery{Job: j.ID, Outcome: rolecall.JobUserRefused, Limit: 2}), refused)
		same(f, len(f.jobResults(rolecall.JobResultQuery{Job: j.ID, Outcome: rolecall.JobUserChanged, Limit: 2})), 6)
	}},
	{"Ended jobs and their results are purged after a week", func(f *fixture) {
		running, ended := f.newJob(start), f.newJob(start)
		ended.Status, ended.EndedAt = rolecall.JobCompleted, start+hour
		result := []rolecall.JobResult{{UserID: rolecall.NewID[rolecall.User](start), Outcome: rolecall.JobUserChanged}}
		f.write(func(tx *store.Tx) {
			tx.UpdateJob(ended)
			tx.InsertJobResults(ended.ID, result, start+hour)
		})
		purge := func(at rolecall.Time) int {
			return change(f, func(tx *store.Tx) (int, error) { return tx.PurgeExpired(at, 0, 100) })
		}
		same(f, purge(start+hour+7*day-1), 0)
		same(f, purge(start+hour+7*day), 2)
		same(f, f.jobIDs(rolecall.JobQuery{Limit: 10}), []rolecall.JobID{running.ID})
		same(f, len(f.jobResults(rolecall.JobResultQuery{Job: ended.ID, Limit: 10})), 0)
	}},
	{"A purge of a tenant deletes its jobs, and those of no other tenant", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		j, stays := f.newJob(start), other.newJob(start+1)
		f.write(func(tx *store.Tx) {
			tx.InsertJobResults(j.ID, []rolecall.JobResult{{UserID: rolecall.NewID[rolecall.User](start)}}, start)
		})
		f.deleteTenant(f.tenantByName("acme"))
		for !change(f, func(tx *store.Tx) (bool, error) { return tx.PurgeTenant(start, 10) }) {
		}
		same(f, len(f.jobIDs(rolecall.JobQuery{Limit: 10})), 0)
		same(f, len(f.jobResults(rolecall.JobResultQuery{Job: j.ID, Limit: 10})), 0)
		same(f, f.claimJob(start+1).ID, stays.ID)
		f.is(f.tryClaimJob(start+1), rolecall.ErrNotFound)
	}},
}

// aJob returns an unstored running job.
func aJob(at rolecall.Time) rolecall.Job {
	return rolecall.Job{
		ID: rolecall.NewID[rolecall.Job](at), Action: rolecall.JobSuspend, Starter: rolecall.JobStarter{Type: rolecall.ActorUser, ID: rolecall.NewID[rolecall.User](at)},
		Filter: rolecall.JobFilter{Words: []string{"ada"}, Searched: true}, Expected: rolecall.Total{Count: 12, Exact: true}, CreatedAt: at, Status: rolecall.JobRunning,
	}
}

// newJob inserts a job.
func (f *fixture) newJob(at rolecall.Time) rolecall.Job {
	f.Helper()
	j := aJob(at)
	f.write(func(tx *store.Tx) { tx.InsertJob(j) })
	return j
}

func (f *fixture) job(id rolecall.JobID) rolecall.Job {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Job, error) { return tx.Job(id) })
}

// claimedJob claims a job for a minute.
func (f *fixture) claimedJob(now rolecall.Time) (q rolecall.QueuedJob, err error) {
	err = f.tryUpdate(func(tx *store.Tx) (err error) {
		q, err = tx.ClaimJob(now, now+minute)
		return err
	})
	return q, err
}

func (f *fixture) isJobDue(now rolecall.Time) bool {
	f.Helper()
	return read(f, func(tx *store.Tx) (bool, error) { return tx.IsJobDue(now) })
}

func (f *fixture) tryClaimJob(now rolecall.Time) error {
	_, err := f.claimedJob(now)
	return err
}

func (f *fixture) claimJob(now rolecall.Time) rolecall.QueuedJob {
	f.Helper()
	q, err := f.claimedJob(now)
	if err != nil {
		f.Fatalf("claim: %v", err)
	}
	return q
}

// jobIDs returns the ids on all pages.
func (f *fixture) jobIDs(q rolecall.JobQuery) []rolecall.JobID {
	f.Helper()
	ids := []rolecall.JobID{}
	for {
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Job], error) { return tx.Jobs(q) })
		for _, j := range page.Items {
			ids = append(ids, j.ID)
		}
		if q.After = page.Next; q.After == nil {
			return ids
		}
	}
}

// jobResults returns the results on all pages.
func (f *fixture) jobResults(q rolecall.JobResultQuery) (all []rolecall.JobResult) {
	f.Helper()
	for {
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.JobResult], error) { return tx.JobResults(q) })
		all = append(all, page.Items...)
		if q.After = page.Next; q.After == nil {
			return all
		}
	}
}
