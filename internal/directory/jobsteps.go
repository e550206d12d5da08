package directory

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// jobStepUsers is the maximum number of users that one step of a job visits. A step locks the
	// owners of the tenant, so other changes wait for it. If a user was changed since it was read, the whole
	// step is repeated.
	jobStepUsers = 25

	// jobLease is how long a claimed job is reserved for one process. It is longer than a turn and one
	// step together.
	jobLease = 30 * time.Second

	// jobTurn is how long a process runs a job before it runs another one that is due.
	jobTurn = time.Second

	// jobStepLimit is the time limit of a step.
	jobStepLimit = 20 * time.Second

	// jobInterval is how often a process looks for jobs of other processes.
	jobInterval = time.Second

	// jobAttempts is how often a job is claimed without progress before it is stopped.
	jobAttempts = 20
)

// RunJobs runs due jobs until ctx ends. After a job has run for jobTurn, RunJobs releases it and claims the job that is
// due next. Any number of processes can call RunJobs: a job is claimed by one at a time. If a process ends without
// releasing its job, another one claims it after jobLease.
func (s *Service) RunJobs(ctx context.Context) {
	tick := time.NewTicker(jobInterval)
	defer tick.Stop()
	for {
		claimed, err := s.ClaimJob(ctx)
		isDue := !errors.Is(err, rolecall.ErrNotFound)
		if !isDue {
			err = nil
		}
		if ctx.Err() == nil {
			s.access.Outages.Report(ctx, "cannot read waiting jobs; will retry", err)
		}
		if err == nil && isDue {
			s.runTurn(ctx, claimed)
			if ctx.Err() == nil {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.newJob:
		case <-tick.C:
		}
	}
}

// ClaimJob reserves a due job of any tenant for jobLease. It returns ErrNotFound if no job is due. It
// reads first, because every process calls it every second, and most of the time no job is due.
func (s *Service) ClaimJob(ctx context.Context) (claimed rolecall.QueuedJob, err error) {
	due, err := store.Read(ctx, s.store, rolecall.TenantID{}, func(tx *store.Tx) (bool, error) { return tx.IsJobDue(s.now()) })
	if err != nil {
		return claimed, err
	}
	if !due {
		return claimed, rolecall.ErrNotFound
	}
	err = s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimJob(s.now(), s.now().Add(jobLease))
		return err
	})
	return claimed, err
}

// runTurn runs steps of a claimed job until it ends or its turn is over. If a step fails, the job stays
// claimed and is tried again after jobLease.
func (s *Service) runTurn(ctx context.Context, claimed rolecall.QueuedJob) {
	for begun := time.Now(); ; {
		more, err := s.StepJob(ctx, claimed)
		if err != nil {
			if ctx.Err() == nil {
				s.access.Outages.Warn(ctx, "cannot run a step of a job; will retry", err, "job", claimed.ID, "tenant", claimed.TenantID)
				return
			}
			more = true
		}
		if !more {
			return
		}
		if ctx.Err() != nil || time.Since(begun) >= jobTurn {
			s.releaseJob(ctx, claimed)
			return
		}
		claimed.Attempts = 0
	}
}

// releaseJob ends the claim of a job, so that it can be claimed at once.
func (s *Service) releaseJob(ctx context.Context, claimed rolecall.QueuedJob) {
	ctx, cancel := access.Detached(ctx)
	defer cancel()
	err := s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		tx.ReleaseJob(claimed.ID, s.now())
		return nil
	})
	if err != nil {
		s.access.Outages.Warn(ctx, "cannot release a job; it will continue later", err, "job", claimed.ID)
	}
}

// StepJob runs one step of a claimed job in one transaction: it authorizes the starter again, changes
// up to jobStepUsers users, and stores the progress. It reports whether more steps can follow. A
// step of a job that ended in the meantime changes nothing.
func (s *Service) StepJob(ctx context.Context, claimed rolecall.QueuedJob) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, jobStepLimit)
	defer cancel()
	err = s.store.Update(ctx, claimed.TenantID, func(tx *store.Tx) (err error) {
		more, err = s.stepJob(tx, claimed)
		return err
	})
	return more, err
}

func (s *Service) stepJob(tx *store.Tx, claimed rolecall.QueuedJob) (more bool, err error) {
	job, err := tx.LockJob(claimed.ID)
	if found, err := access.Found(err); err != nil {
		return false, err
	} else if !found || job.Status != rolecall.JobRunning {
		tx.DeleteQueuedJob(claimed.ID)
		return false, nil
	}
	tenant, err := tx.TenantByID(claimed.TenantID)
	if found, err := access.Found(err); err != nil {
		return false, err
	} else if !found || tenant.Status == rolecall.TenantSuspended { // it waits until the tenant is restored or resumed
		tx.ReleaseJob(claimed.ID, s.now().Add(jobLease))
		return false, nil
	}
	if claimed.Attempts > jobAttempts {
		return false, s.stopJob(tx, tenant.ID, &job, rolecall.ErrInternal.Code)
	}
	// A change of the starter's permissions locks the owners first too. In another order, both could
	// wait for each other.
	tx.LockOwners()
	more, err = s.visitUsers(tx, tenant, &job)
	if why, ok := errors.AsType[*rolecall.Error](err); ok && why.Kind != rolecall.Unavailable && why.Kind != rolecall.Internal {
		return false, s.stopJob(tx, tenant.ID, &job, why.Code)
	}
	return more, err
}

// visitUsers changes the next users of a locked job, and stores the progress. It returns a
// rolecall.Error, without having written anything, if the starter lost the right to the job.
func (s *Service) visitUsers(tx *store.Tx, tenant rolecall.Tenant, job *rolecall.Job) (more bool, err error) {
	c, err := s.access.Authenticate(tx, tenant, job.Request)
	if err != nil {
		return false, err
	}
	if err := startPolicies[job.Action].Authorize(c.Principal); err != nil {
		return false, err
	}
	if err := job.Assignment.Check(s.now()).Err(); err != nil {
		return false, err
	}
	role, err := s.jobRole(tx, c, job)
	if err != nil {
		return false, err
	}
	q, err := s.jobQuery(c.Principal, job)
	if err != nil {
		return false, err
	}
	page, err := tx.Users(q)
	if err != nil {
		return false, err
	}
	var results []rolecall.JobResult
	for i := range page.Items {
		id := page.Items[i].ID
		if bytes.Compare(id[:], job.ID[:]) > 0 { // created after the start, because ids begin with the time
			page.Next = nil
			break
		}
		result, err := s.visitUser(tx, c, job, role, id)
		if err != nil {
			return false, err
		}
		if job.Counts.Count(result.Outcome) {
			results = append(results, result)
		}
	}
	tx.InsertJobResults(job.ID, results, s.now())
	if page.Next == nil {
		return false, s.finishJob(tx, tenant.ID, job, rolecall.JobCompleted)
	}
	job.Last = rolecall.UserID(page.Next.ID)
	tx.UpdateJob(*job)
	return true, nil
}

// visitUser changes one user. If the change is refused, the result has the code of the problem.
func (s *Service) visitUser(tx *store.Tx, c access.Caller, job *rolecall.Job, role rolecall.Role, id rolecall.UserID) (rolecall.JobResult, error) {
	result := rolecall.JobResult{UserID: id, Outcome: rolecall.JobUserUnchanged}
	if id == c.Actor().ID {
		return result, nil
	}
	event, err := s.changeByJob(tx, c, job, role, id)
	if event != nil && err == nil {
		tx.InsertEvent(*event)
		result.Outcome = rolecall.JobUserChanged
	}
	if errors.Is(err, rolecall.ErrNotFound) { // the user does not have the role
		return result, nil
	}
	if why, ok := errors.AsType[*rolecall.Error](err); ok && why.Kind != rolecall.Unavailable && why.Kind != rolecall.Internal {
		result.Outcome, result.Problem = rolecall.JobUserRefused, why.Code
		return result, nil
	}
	return result, err
}

// changeByJob makes the change of the job to one user. It returns the event, or nil if nothing changed.
// It writes nothing if it returns a rolecall.Error that refuses the change.
func (s *Service) changeByJob(tx *store.Tx, c access.Caller, job *rolecall.Job, role rolecall.Role, id rolecall.UserID) (event *rolecall.Event, err error) {
	holder := rolecall.HolderOf(id)
	switch job.Action {
	case rolecall.JobSuspend:
		_, event, err = s.suspendUser(tx, c, id, job.Reason)
	case rolecall.JobResume:
		_, event, err = s.resumeUser(tx, c, id, job.Reason)
	case rolecall.JobAssignRole:
		if err = s.authorizeHolder(tx, c, authz.AssignRole, holder); err == nil {
			_, _, event, err = s.assign(tx, c, holder, role, job.Assignment)
		}
	case rolecall.JobUnassignRole:
		if err = s.authorizeHolder(tx, c, authz.UnassignRole, holder); err == nil {
			event, err = s.unassign(tx, c, holder, role)
		}
	}
	return event, err
}

// stopJob ends the job because of a problem. The remaining users are not changed.
func (s *Service) stopJob(tx *store.Tx, tenant rolecall.TenantID, job *rolecall.Job, problem string) error {
	job.Problem = problem
	return s.finishJob(tx, tenant, job, rolecall.JobStopped)
}

// finishJob ends the job and writes the event, with the starter as the actor.
func (s *Service) finishJob(tx *store.Tx, tenant rolecall.TenantID, job *rolecall.Job, status rolecall.JobStatus) error {
	now := s.now()
	event := rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventJobEnded, OccurredAt: now, Subject: rolecall.About(tenant),
		Actor:     rolecall.Actor{Type: job.Starter.Type, ID: job.Starter.ID, Via: "http", Token: job.Request.Token},
		RequestID: job.Request.ID, SessionID: job.Request.Session, Source: job.Request.Source, Reason: job.Problem,
	}
	if !job.Request.Token.IsZero() {
		event.Actor.Via = "token"
	}
	if err := s.endJob(tx, job, status, &event); err != nil {
		return err
	}
	tx.InsertEvent(event)
	return nil
}
