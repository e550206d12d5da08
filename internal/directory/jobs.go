package directory

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/store"
)

// JobDraft describes a job to start.
type JobDraft struct {
	Action     rolecall.JobAction
	Filter     rolecall.JobFilter
	RoleID     rolecall.RoleID          // for JobAssignRole and JobUnassignRole
	Assignment rolecall.AssignmentDraft // for JobAssignRole
	Reason     string
}

// startPolicies are the policies to start jobs. A job also evaluates them before each step.
var startPolicies = map[rolecall.JobAction]*authz.Policy{
	rolecall.JobSuspend:      authz.StartSuspendJob,
	rolecall.JobResume:       authz.StartResumeJob,
	rolecall.JobAssignRole:   authz.StartAssignJob,
	rolecall.JobUnassignRole: authz.StartUnassignJob,
}

// jobPermissions are the permissions that callers need to cancel the jobs of others.
var jobPermissions = map[rolecall.JobAction]rolecall.Permission{
	rolecall.JobSuspend:      rolecall.UsersSuspend,
	rolecall.JobResume:       rolecall.UsersSuspend,
	rolecall.JobAssignRole:   rolecall.RolesAssign,
	rolecall.JobUnassignRole: rolecall.RolesAssign,
}

// StartJob starts a job, once for each idempotency key. RunJobs runs it. StartJob returns
// ErrPermissionDenied, ErrFieldNotReadable for a filter that the caller may not use, ErrValidation
// for an unknown role, ErrBeyondOwnPermissions for an assignment that the caller may not create,
// ErrTooManyJobs, and the errors of idempotency keys.
func (s *Service) StartJob(ctx context.Context, c access.Caller, key idempotency.Key, draft JobDraft) (created idempotency.Created[rolecall.Job], err error) {
	if err := startPolicies[draft.Action].Authorize(c.Principal); err != nil {
		return created, err
	}
	job := s.jobOf(c, draft)
	if err := s.checkJob(ctx, c, &job); err != nil {
		return created, err
	}
	event := s.access.Event(c, rolecall.EventJobStarted, rolecall.About(c.Tenant.ID))
	event.Members, event.Reason = job.Filter.Names(), job.Reason
	created, err = access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.Job]{
		Operation: "startJob", ID: rolecall.AnyID(job.ID), Value: job, Event: event,
		Insert: func(tx *store.Tx) error {
			tx.LockOwners() // so that concurrent starts count each other
			if running, err := tx.CountJobs(rolecall.JobsMax); err != nil {
				return err
			} else if running >= rolecall.JobsMax {
				return rolecall.ErrTooManyJobs
			}
			tx.InsertJob(job)
			return nil
		},
		OnlyID: func(id rolecall.AnyID) rolecall.Job { return rolecall.Job{ID: rolecall.JobID(id)} },
	})
	if err != nil {
		return created, err
	}
	select {
	case s.newJob <- struct{}{}:
	default: // a signal is already pending
	}
	return created, nil
}

// jobOf returns the job of the draft.
func (s *Service) jobOf(c access.Caller, draft JobDraft) rolecall.Job {
	now, actor := s.now(), c.Actor()
	job := rolecall.Job{
		ID: rolecall.NewID[rolecall.Job](now), Action: draft.Action, Filter: draft.Filter, RoleID: draft.RoleID, Assignment: draft.Assignment,
		Reason: draft.Reason, Starter: rolecall.JobStarter{Type: actor.Type, ID: actor.ID}, CreatedAt: now, Status: rolecall.JobRunning,
		Request: rolecall.JobRequest{ID: c.RequestID, Source: c.Source, Session: c.Session.ID, Token: actor.Token},
	}
	job.Filter.Searched = len(job.Filter.Words) > 0
	if c.Operator != nil {
		job.Request.OperatorKey = c.Operator.ID
	}
	return job
}

// checkJob checks that the caller may use the filter and assign the role. It counts the users that
// match.
func (s *Service) checkJob(ctx context.Context, c access.Caller, job *rolecall.Job) error {
	if err := job.Assignment.Check(s.now()).Err(); err != nil {
		return err
	}
	q, err := s.jobQuery(c.Principal, job)
	if err != nil {
		return err
	}
	q.Limit, q.Count = 1, true
	return s.access.View(ctx, c, func(tx *store.Tx) error {
		if _, err := s.jobRole(tx, c, job); errors.Is(err, rolecall.ErrNotFound) {
			var faults rolecall.FieldErrors
			faults.Add("/roleId", "unknown", "must be the ID of a role of this tenant")
			return faults.Err()
		} else if err != nil {
			return err
		}
		page, err := tx.Users(q)
		if err == nil {
			job.Expected = *page.Total
		}
		return err
	})
}

// jobQuery returns the query of the users that the job visits next.
func (s *Service) jobQuery(p *authz.Principal, job *rolecall.Job) (rolecall.UserQuery, error) {
	l := UserListing{
		Words: job.Filter.Words, Status: job.Filter.Status, Department: job.Filter.Department, Role: job.Filter.Role, Group: job.Filter.Group, Limit: jobStepUsers,
	}
	if !job.Last.IsZero() {
		l.After = &rolecall.Position{ID: rolecall.AnyID(job.Last)}
	}
	q, _, err := s.userQuery(p, l)
	return q, err
}

// jobRole returns the role that the job assigns or removes. It returns ErrNotFound if the role does
// not exist, and the errors of RequireAssignable for an assignment.
func (s *Service) jobRole(tx *store.Tx, c access.Caller, job *rolecall.Job) (role rolecall.Role, err error) {
	if job.RoleID.IsZero() {
		return role, nil
	}
	role, err = tx.RoleByID(job.RoleID)
	if err == nil && job.Action == rolecall.JobAssignRole {
		err = authz.RequireAssignable(c.Principal, &rolecall.Assignment{
			Role: role, Reach: job.Assignment.Reach(), ExpiresAt: job.Assignment.Expiry(), GrantedBy: c.Grantor(), GrantedAt: s.now(),
		})
	}
	return role, err
}

// Jobs returns a page of the jobs that the caller started, or of all jobs if the caller may read all
// events.
func (s *Service) Jobs(ctx context.Context, c access.Caller, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.Job], err error) {
	if err := authz.ReadJobs.Authorize(c.Principal); err != nil {
		return page, err
	}
	q := rolecall.JobQuery{After: after, Limit: limit}
	if authz.ReadEvents.Authorize(c.Principal) != nil {
		q.Starter = c.Actor().ID
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.Job], error) { return tx.Jobs(q) })
}

// Job returns the job, or ErrNotFound if the caller may not read it.
func (s *Service) Job(ctx context.Context, c access.Caller, id rolecall.JobID) (job rolecall.Job, err error) {
	if err := authz.ReadJobs.Authorize(c.Principal); err != nil {
		return job, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Job, error) { return readableJob(c, tx.Job, id) })
}

// JobResults returns a page of the results of the job. It returns ErrNotFound if the caller may not
// read the job.
func (s *Service) JobResults(ctx context.Context, c access.Caller, q rolecall.JobResultQuery) (page rolecall.Page[rolecall.JobResult], err error) {
	if err := authz.ReadJobs.Authorize(c.Principal); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		if _, err = readableJob(c, tx.Job, q.Job); err == nil {
			page, err = tx.JobResults(q)
		}
		return err
	})
	return page, err
}

// readableJob returns the job that the function get reads, or ErrNotFound if the caller may not read
// it.
func readableJob(c access.Caller, get func(rolecall.JobID) (rolecall.Job, error), id rolecall.JobID) (rolecall.Job, error) {
	job, err := get(id)
	if err == nil && !isOwnJob(c, &job) && authz.ReadEvents.Authorize(c.Principal) != nil {
		return rolecall.Job{}, rolecall.ErrNotFound
	}
	return job, err
}

func isOwnJob(c access.Caller, job *rolecall.Job) bool { return job.Starter.ID == c.Actor().ID }

// CancelJob ends the job before its next step. Users that it has changed stay changed. A job that has
// ended does not change. CancelJob returns ErrNotFound if the caller may not read the job, and
// ErrPermissionDenied.
func (s *Service) CancelJob(ctx context.Context, c access.Caller, id rolecall.JobID) (job rolecall.Job, err error) {
	if err := authz.CancelJob.Authorize(c.Principal); err != nil {
		return job, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if job, err = readableJob(c, tx.LockJob, id); err != nil {
			return nil, err
		}
		if !isOwnJob(c, &job) {
			if err := c.RequirePermission(jobPermissions[job.Action], nil); err != nil {
				return nil, err
			}
		}
		if job.Status != rolecall.JobRunning {
			return nil, nil
		}
		event := s.access.Event(c, rolecall.EventJobCanceled, rolecall.About(c.Tenant.ID))
		return event, s.endJob(tx, &job, rolecall.JobCanceled, event)
	})
	return job, err
}

// endJob stores the end of the job, without the personal data of its request. It completes the event
// about the end.
func (s *Service) endJob(tx *store.Tx, job *rolecall.Job, status rolecall.JobStatus, event *rolecall.Event) error {
	job.Status, job.EndedAt = status, s.now()
	job.Filter.Words, job.Request.Source = nil, ""
	tx.UpdateJob(*job)
	after, err := json.Marshal(struct {
		ID     rolecall.JobID     `json:"id"`
		Action rolecall.JobAction `json:"action"`
		rolecall.JobCounts
	}{job.ID, job.Action, job.Counts})
	event.Values = &rolecall.EventValues{After: after}
	return err
}
