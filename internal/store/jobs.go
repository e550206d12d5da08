package store

import "github.com/rolecall/rolecall"

const (
	jobColumns = `r.id, r.content, r.words, r.source, r.request_id, r.session_id, r.token_id, r.operator_key,
			r.status, r.changed, r.unchanged, r.refused, r.problem, r.last_id, r.ended_at`

	selectJob = `select ` + jobColumns + ` from jobs r where r.tenant_id = $1 and r.id = $2`

	insertJob = `insert into jobs (tenant_id, id, starter_id, content, words, source, request_id, session_id, token_id, operator_key,
			status, changed, unchanged, refused, problem, last_id, ended_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0, 0, '', null, 0)`

	// lockJob changes nothing. It makes other transactions wait that change the job.
	lockJob = `update jobs set status = status where tenant_id = $1 and id = $2 returning id`

	updateJob = `update jobs set words = $1, source = $2, status = $3, changed = $4, unchanged = $5, refused = $6, problem = $7,
			last_id = $8, ended_at = $9
		where tenant_id = $10 and id = $11`

	countJobs = `select count(*) from (select 1 from jobs where tenant_id = $1 and ended_at = 0 limit $2) running`

	jobResultColumns = `r.user_id, r.outcome, r.problem`

	insertJobResults = `insert into job_results (tenant_id, job_id, user_id, outcome, problem, recorded_at) values `

	insertQueuedJob = `insert into job_queue (id, tenant, due_at, attempts) values ($1, $2, $3, 0)`

	selectDueJob = `select 1 from job_queue where due_at <= $1 limit 1`

	// claimJob has the condition on due_at twice, as claimMail.
	claimJob = `update job_queue set due_at = $1, attempts = attempts + 1
		where id in (select id from job_queue where due_at <= $2 order by due_at limit 1) and due_at <= $2
		returning id, tenant, attempts`

	releaseJob = `update job_queue set due_at = $1, attempts = 0 where id = $2`

	deleteQueuedJob = `delete from job_queue where id = $1`
)

func jobDest(j *rolecall.Job) []any {
	return []any{&j.ID, asJSON(j), asJSON(&j.Filter.Words), &j.Request.Source, &j.Request.ID, &j.Request.Session, &j.Request.Token, &j.Request.OperatorKey,
		(*string)(&j.Status), &j.Counts.Changed, &j.Counts.Unchanged, &j.Counts.Refused, &j.Problem, &j.Last, &j.EndedAt}
}

// InsertJob inserts a running job, and queues it.
func (t *Tx) InsertJob(j rolecall.Job) {
	t.q.Exec(insertJob, t.tenant, j.ID, j.Starter.ID, asJSON(&j), asJSON(&j.Filter.Words), j.Request.Source, j.Request.ID,
		j.Request.Session, j.Request.Token, j.Request.OperatorKey, string(j.Status))
	t.q.Exec(insertQueuedJob, j.ID, t.tenant, j.CreatedAt)
}

// Job returns the job, or ErrNotFound.
func (t *Tx) Job(id rolecall.JobID) (j rolecall.Job, err error) {
	err = t.row(selectJob, []any{t.tenant, id}, jobDest(&j)...)
	return j, err
}

// LockJob returns the job, and prevents changes of it until the end of this Update. It returns
// ErrNotFound if the job does not exist.
func (t *Tx) LockJob(id rolecall.JobID) (rolecall.Job, error) {
	if ok, err := t.changed(lockJob, t.tenant, id); err != nil {
		return rolecall.Job{}, err
	} else if !ok {
		return rolecall.Job{}, rolecall.ErrNotFound
	}
	return t.Job(id)
}

// UpdateJob stores the progress of a locked job. An ended job is removed from the queue.
func (t *Tx) UpdateJob(j rolecall.Job) {
	t.q.Exec(updateJob, asJSON(&j.Filter.Words), j.Request.Source, string(j.Status), j.Counts.Changed, j.Counts.Unchanged, j.Counts.Refused,
		j.Problem, j.Last, j.EndedAt, t.tenant, j.ID)
	if j.EndedAt != 0 {
		t.DeleteQueuedJob(j.ID)
	}
}

// CountJobs returns the number of running jobs, at most limit.
func (t *Tx) CountJobs(limit int) (n int, err error) {
	err = t.row(countJobs, []any{t.tenant, limit}, &n)
	return n, err
}

// Jobs returns a page of the jobs that q selects, the newest first. It reads a bounded number of
// rows.
func (t *Tx) Jobs(q rolecall.JobQuery) (rolecall.Page[rolecall.Job], error) {
	l := &listing[rolecall.Job]{
		tx: t, table: "jobs", columns: jobColumns, dest: jobDest,
		id:   func(j *rolecall.Job) rolecall.AnyID { return rolecall.AnyID(j.ID) },
		desc: true, after: q.After, limit: q.Limit, indexScan: source{table: "jobs", id: "id"},
	}
	if !q.Starter.IsZero() {
		l.conditions = append(l.conditions, where("r.starter_id = ?", q.Starter))
	}
	return l.page(nil)
}

// InsertJobResults stores results of a job.
func (t *Tx) InsertJobResults(job rolecall.JobID, results []rolecall.JobResult, at rolecall.Time) {
	insertRows(t, insertJobResults, results, func(b *builder, r rolecall.JobResult) {
		b.write("($1, ?, ?, ?, ?, ?)", job, r.UserID, string(r.Outcome), r.Problem, at)
	})
}

// JobResults returns a page of the results that q selects, by user id. The number of stored results
// of a job is limited.
func (t *Tx) JobResults(q rolecall.JobResultQuery) (rolecall.Page[rolecall.JobResult], error) {
	b := newBuilder(t.tenant)
	b.write("select "+jobResultColumns+" from job_results r where r.tenant_id = $1 and r.job_id = ?", q.Job)
	switch q.Outcome {
	case "":
	case rolecall.JobUserRefused: // the text is a literal, because an index has the same condition
		b.write(" and r.problem <> ''")
	default:
		b.write(" and r.outcome = ?", string(q.Outcome))
	}
	if q.After != nil {
		b.write(" and r.user_id > ?", q.After.ID)
	}
	b.write(" order by r.user_id")
	b.limit(q.Limit + 1)
	var all []rolecall.JobResult
	_, err := b.query(t.q, into(&all, func(r *rolecall.JobResult) []any {
		return []any{&r.UserID, (*string)(&r.Outcome), &r.Problem}
	}))
	page := rolecall.Page[rolecall.JobResult]{Items: all}
	if err == nil && len(all) > q.Limit {
		page.Items = all[:q.Limit]
		page.Next = &rolecall.Position{ID: rolecall.AnyID(page.Items[q.Limit-1].UserID)}
	}
	return page, err
}

// IsJobDue reports whether a queued job of any tenant is due.
func (t *Tx) IsJobDue(now rolecall.Time) (bool, error) {
	n, err := t.countRows(selectDueJob, now)
	return n > 0, err
}

// ClaimJob returns the queued job of any tenant that has been due for the longest time. The job is not
// due again before until. ClaimJob returns ErrNotFound if no job is due, or if another process
// claims the job at the same time.
func (t *Tx) ClaimJob(now, until rolecall.Time) (q rolecall.QueuedJob, err error) {
	err = t.row(claimJob, []any{until, now}, &q.ID, &q.TenantID, &q.Attempts)
	return q, err
}

// ReleaseJob makes a queued job due again after progress.
func (t *Tx) ReleaseJob(id rolecall.JobID, due rolecall.Time) { t.q.Exec(releaseJob, due, id) }

// DeleteQueuedJob removes the job from the queue.
func (t *Tx) DeleteQueuedJob(id rolecall.JobID) { t.q.Exec(deleteQueuedJob, id) }
