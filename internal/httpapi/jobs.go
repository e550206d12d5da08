package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) jobOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodPost, Path: "/jobs/suspend-users", ID: "JobsController_suspendUsers", Summary: "Suspend all matching users",
			Description: "Starts a job that suspends each user as POST /users/{id}/suspend does. " + aboutJobs,
			Policy:      authz.StartSuspendJob,
			Answers:     startedJob,
			Problems:    problems{rolecall.ErrFieldNotReadable, rolecall.ErrTooManyJobs},
			Handler: operation.JSON(func(ctx context.Context, c access.Caller, in *startJobRequest[statusJob]) (operation.Response[jobBody], error) {
				return s.startJob(ctx, c, in.IdempotencyHeader, in.Body.draft(rolecall.JobSuspend))
			}),
		},
		{
			Method: http.MethodPost, Path: "/jobs/resume-users", ID: "JobsController_resumeUsers", Summary: "Resume all matching users",
			Description: "Starts a job that resumes each user as POST /users/{id}/resume does. " + aboutJobs,
			Policy:      authz.StartResumeJob,
			Answers:     startedJob,
			Problems:    problems{rolecall.ErrFieldNotReadable, rolecall.ErrTooManyJobs},
			Handler: operation.JSON(func(ctx context.Context, c access.Caller, in *startJobRequest[statusJob]) (operation.Response[jobBody], error) {
				return s.startJob(ctx, c, in.IdempotencyHeader, in.Body.draft(rolecall.JobResume))
			}),
		},
		{
			Method: http.MethodPost, Path: "/jobs/assign-role", ID: "JobsController_assignRole", Summary: "Assign a role to all matching users",
			Description: "Starts a job that assigns the role to each user as PUT /users/{id}/roles/{roleId} does. " + aboutJobs,
			Policy:      authz.StartAssignJob,
			Answers:     startedJob,
			Problems:    problems{rolecall.ErrFieldNotReadable, rolecall.ErrBeyondOwnPermissions, rolecall.ErrTooManyJobs},
			Handler: operation.JSON(func(ctx context.Context, c access.Caller, in *startJobRequest[assignJob]) (operation.Response[jobBody], error) {
				return s.startJob(ctx, c, in.IdempotencyHeader, in.Body.jobDraft())
			}),
		},
		{
			Method: http.MethodPost, Path: "/jobs/unassign-role", ID: "JobsController_unassignRole", Summary: "Remove a role from all matching users",
			Description: "Starts a job that removes the role from each user as DELETE /users/{id}/roles/{roleId} does. " + aboutJobs,
			Policy:      authz.StartUnassignJob,
			Answers:     startedJob,
			Problems:    problems{rolecall.ErrFieldNotReadable, rolecall.ErrTooManyJobs},
			Handler: operation.JSON(func(ctx context.Context, c access.Caller, in *startJobRequest[unassignJob]) (operation.Response[jobBody], error) {
				return s.startJob(ctx, c, in.IdempotencyHeader, in.Body.jobDraft())
			}),
		},
		{
			Method: http.MethodGet, Path: "/jobs", ID: "JobsController_listJobs", Summary: "List jobs",
			Description: "Lists the jobs that the caller started, newest first. Callers with events:read in the whole tenant get all jobs. Jobs are kept for 7 days after their end.",
			Policy:      authz.ReadJobs,
			Answers:     operation.Answers{{http.StatusOK, "A page of jobs.", []string{"Link"}}},
			Handler:     operation.JSON(s.listJobs),
		},
		{
			Method: http.MethodGet, Path: "/jobs/{id}", ID: "JobsController_getJob", Summary: "Get a job",
			Description: "Returns the job with its progress.",
			Policy:      authz.ReadJobs,
			Answers:     operation.Answers{{http.StatusOK, "The job.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getJob),
		},
		{
			Method: http.MethodGet, Path: "/jobs/{id}/results", ID: "JobsController_listJobResults", Summary: "List the results of a job",
			Description: "Lists the users that the job has visited, in the order of their IDs. Of each job, the first 10,000 refused users and the first 10,000 other users are kept.",
			Policy:      authz.ReadJobs,
			Answers:     operation.Answers{{http.StatusOK, "A page of results.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listJobResults),
		},
		{
			Method: http.MethodPost, Path: "/jobs/{id}/cancel", ID: "JobsController_cancelJob", Summary: "Cancel a job",
			Description: "Ends the job before it changes more users. Users that it has changed stay changed. If the job has ended, it does not change.",
			Policy:      authz.CancelJob,
			Answers:     operation.Answers{{http.StatusOK, "The job.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.cancelJob),
		},
	}
}

// aboutJobs is the part of the description that all operations to start a job share.
const aboutJobs = "The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs."

var startedJob = operation.Answers{{http.StatusCreated, "The job.", []string{"Location", "Idempotent-Replayed"}}}

type startJobRequest[Body any] struct {
	operation.IdempotencyHeader
	Body Body
}

// jobUsers select the users of a job.
type jobUsers struct {
	Search     jobSearch      `json:"q" doc:"Up to 8 words. Only users with matches for all of them: each must be the beginning of a word in the name or the email address."`
	Status     jobStatus      `json:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
	Department departmentText `json:"department" doc:"Only users of this department. Upper and lower case, invisible characters and the number of blanks do not matter."`
	Role       jobRole        `json:"role" doc:"Only users with this role. It needs the permission roles:read."`
	Group      jobGroup       `json:"group" doc:"Only members of this group. It needs the permission groups:read in the whole tenant."`
}

var _ = operation.Component[jobUsers]("JobUsers", "Selects the users of a job. Without members, it selects all users.")

// jobFilter is a required jobUsers: null is not the same as an empty object, which selects all users.
type jobFilter struct{ users jobUsers }

var _ = operation.SameSchema[jobFilter, jobUsers]()

var jobUsersDecoder = wire.NewDecoder(reflect.TypeFor[jobUsers]())

// UnmarshalWire reads the object.
func (f *jobFilter) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	jobUsersDecoder.Continue(d, pointer, value, reflect.ValueOf(&f.users).Elem())
}

func (f *jobFilter) filter() rolecall.JobFilter {
	return rolecall.JobFilter{
		Words: f.users.Search, Status: string(f.users.Status), Department: string(f.users.Department), Role: rolecall.RoleID(f.users.Role), Group: rolecall.GroupID(f.users.Group),
	}
}

// jobStatus is the status of a filter.
type jobStatus string

// UnmarshalWire reads the status. An empty text is not the absence of a filter.
func (s *jobStatus) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	text, ok := d.Text(pointer, value)
	if !ok {
		return
	}
	switch rolecall.UserStatus(text) {
	case rolecall.UserPending, rolecall.UserActive, rolecall.UserSuspended:
		*s = jobStatus(text)
	default:
		d.Add(pointer, "format", "must be pending, active or suspended")
	}
}

// jobSearch are the words of a search in a body.
type jobSearch operation.Search

var _ = operation.SchemaOf[jobSearch](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(operation.SearchLength)}
})

// UnmarshalWire reads the words.
func (s *jobSearch) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if text, ok := d.Text(pointer, value); ok {
		code, detail := (*operation.Search)(s).SetParameter(text)
		d.Add(pointer, code, detail)
	}
}

// jobRole and jobGroup are the role and the group of a filter.
type (
	jobRole  rolecall.RoleID
	jobGroup rolecall.GroupID
)

var (
	_ = operation.SameSchema[jobRole, rolecall.RoleID]()
	_ = operation.SameSchema[jobGroup, rolecall.GroupID]()
)

// UnmarshalWire reads the id.
func (r *jobRole) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	*r = jobRole(filterID[rolecall.Role](d, pointer, value, "must be the ID of a role"))
}

// UnmarshalWire reads the id.
func (g *jobGroup) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	*g = jobGroup(filterID[rolecall.Group](d, pointer, value, "must be the ID of a group"))
}

// filterID reads an id. If the value is not one, it adds a field error with the detail.
func filterID[T any](d *wire.Decoding, pointer string, value jsontext.Value, detail string) (id rolecall.ID[T]) {
	text, ok := d.Text(pointer, value)
	if !ok {
		return id
	}
	id, err := rolecall.ParseID[T](text)
	if err != nil || id.IsZero() { // a zero id would select all users
		d.Add(pointer, "format", detail)
	}
	return id
}

// statusJob describes a job that suspends or resumes users.
type statusJob struct {
	Users jobFilter `json:"users" required:"true" doc:"The users to change. An empty object selects all users."`
	reasonBody
}

var _ = operation.Component[statusJob]("StartStatusJob", "The users to suspend or to resume.")

func (j *statusJob) draft(action rolecall.JobAction) directory.JobDraft {
	return directory.JobDraft{Action: action, Filter: j.Users.filter(), Reason: string(j.Reason)}
}

// assignJob describes a job that assigns a role.
type assignJob struct {
	Users  jobFilter       `json:"users" required:"true" doc:"The users to change. An empty object selects all users."`
	RoleID rolecall.RoleID `json:"roleId" required:"true" doc:"ID of the role to assign."`
	assignmentDraft
}

var _ = operation.Component[assignJob]("StartAssignJob", "The users and the role to assign to them.")

func (j *assignJob) jobDraft() directory.JobDraft {
	return directory.JobDraft{Action: rolecall.JobAssignRole, Filter: j.Users.filter(), RoleID: j.RoleID, Assignment: j.draft()}
}

// unassignJob describes a job that removes a role.
type unassignJob struct {
	Users  jobFilter       `json:"users" required:"true" doc:"The users to change. An empty object selects all users."`
	RoleID rolecall.RoleID `json:"roleId" required:"true" doc:"ID of the role to remove."`
}

var _ = operation.Component[unassignJob]("StartUnassignJob", "The users and the role to remove from them.")

func (j *unassignJob) jobDraft() directory.JobDraft {
	return directory.JobDraft{Action: rolecall.JobUnassignRole, Filter: j.Users.filter(), RoleID: j.RoleID}
}

func (s *Server) startJob(ctx context.Context, c access.Caller, key operation.IdempotencyHeader, draft directory.JobDraft) (operation.Response[jobBody], error) {
	created, err := s.directory.StartJob(ctx, c, key.Key, draft)
	return operation.Response[jobBody]{Body: newJobBody(&created.Value), Location: "/jobs/" + created.Value.ID.String(), Replayed: created.Replayed}, err
}

type listJobsRequest struct{ operation.PageRequest }

func (s *Server) listJobs(ctx context.Context, c access.Caller, in *listJobsRequest) (operation.Response[operation.Page[jobBody]], error) {
	page, err := s.directory.Jobs(ctx, c, in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, newJobBody), err
}

type jobPath struct {
	ID rolecall.JobID `path:"id" example:"019d83e6-1ef1-7004-a1b2-3c4d5e6f7a44" doc:"ID of the job."`
}

type jobRequest struct{ jobPath }

func (s *Server) getJob(ctx context.Context, c access.Caller, in *jobRequest) (operation.Response[jobBody], error) {
	job, err := s.directory.Job(ctx, c, in.ID)
	return operation.Response[jobBody]{Body: newJobBody(&job)}, err
}

type listJobResultsRequest struct {
	jobPath
	operation.PageRequest
	Outcome string `query:"outcome" enum:"changed,unchanged,refused" doc:"Only users with this outcome."`
}

func (s *Server) listJobResults(ctx context.Context, c access.Caller, in *listJobResultsRequest) (operation.Response[operation.Page[jobResultBody]], error) {
	page, err := s.directory.JobResults(ctx, c, rolecall.JobResultQuery{
		Job: in.ID, Outcome: rolecall.JobOutcome(in.Outcome), After: in.After.At, Limit: in.Limit.OrDefault(),
	})
	return operation.NewPage(&page, newJobResultBody), err
}

func (s *Server) cancelJob(ctx context.Context, c access.Caller, in *jobRequest) (operation.Response[jobBody], error) {
	job, err := s.directory.CancelJob(ctx, c, in.ID)
	return operation.Response[jobBody]{Body: newJobBody(&job)}, err
}

// jobBody is a job with its progress.
type jobBody struct {
	ID        rolecall.JobID     `json:"id" doc:"ID of the job."`
	Action    rolecall.JobAction `json:"action" doc:"The change: suspend, resume, assign-role or unassign-role. Later versions may add values."`
	Status    rolecall.JobStatus `json:"status" doc:"The state: running, completed, canceled, or stopped because of a problem. Later versions may add values."`
	Problem   optionalText       `json:"problem" nullable:"true" doc:"The code of the problem that stopped the job, such as unauthenticated or permission-denied."`
	Users     jobFilterBody      `json:"users" doc:"The users that the job changes."`
	RoleID    rolecall.RoleID    `json:"roleId" nullable:"true" doc:"ID of the role that the job assigns or removes."`
	Reach     reachBody          `json:"reach" nullable:"true" doc:"The reach of the assignments. Null for the whole tenant, and for other changes."`
	ExpiresAt rolecall.Time      `json:"expiresAt" nullable:"true" doc:"When the assignments expire. Null for never, and for other changes."`
	Reason    optionalText       `json:"reason" nullable:"true" doc:"The reason that the events of the users have."`
	StartedBy jobStarter         `json:"startedBy" doc:"Who started the job."`
	CreatedAt rolecall.Time      `json:"createdAt" doc:"When the job was started."`
	EndedAt   rolecall.Time      `json:"endedAt" nullable:"true" doc:"When the job ended. Null while it runs."`

	Expected        int  `json:"expected" doc:"Number of users that matched at the start."`
	ExpectedIsExact bool `json:"expectedIsExact" doc:"Whether expected is exact. It is exact up to 10,000."`
	Changed         int  `json:"changed" doc:"Number of users that the job has changed."`
	Unchanged       int  `json:"unchanged" doc:"Number of users that needed no change, or are the user who started the job."`
	Refused         int  `json:"refused" doc:"Number of users whose change was refused."`
}

var _ = operation.Component[jobBody]("Job", "A change of all users that match a filter, in the background.")
var _ = operation.Component[operation.Page[jobBody]]("JobPage", "A page of jobs.")

// jobFilterBody is the filter of a job, without the text of its search.
type jobFilterBody struct {
	Searched   bool             `json:"searched" doc:"Whether the job has a search text. The text is not returned, because it can be personal data."`
	Status     optionalText     `json:"status" nullable:"true" doc:"Only users with this status."`
	Department optionalText     `json:"department" nullable:"true" doc:"Only users of this department."`
	Role       rolecall.RoleID  `json:"role" nullable:"true" doc:"Only users with this role."`
	Group      rolecall.GroupID `json:"group" nullable:"true" doc:"Only members of this group."`
}

var _ = operation.Component[jobFilterBody]("JobFilter", "The filter of a job, without the text of its search.")

type jobStarter struct {
	Type rolecall.ActorType `json:"type" doc:"Kind of principal: user, service_account or operator. Later versions may add values."`
	ID   rolecall.UserID    `json:"id" nullable:"true" doc:"ID of the principal."`
}

var _ = operation.Component[jobStarter]("JobStarter", "The principal who started a job.")

func newJobBody(j *rolecall.Job) jobBody {
	return jobBody{
		ID: j.ID, Action: j.Action, Status: j.Status, Problem: optionalText(j.Problem),
		Users:  jobFilterBody{j.Filter.Searched, optionalText(j.Filter.Status), optionalText(j.Filter.Department), j.Filter.Role, j.Filter.Group},
		RoleID: j.RoleID, Reach: reachBody{j.Assignment.Reach()}, ExpiresAt: j.Assignment.Expiry(), Reason: optionalText(j.Reason),
		StartedBy: jobStarter(j.Starter), CreatedAt: j.CreatedAt, EndedAt: j.EndedAt,
		Expected: j.Expected.Count, ExpectedIsExact: j.Expected.Exact,
		Changed: j.Counts.Changed, Unchanged: j.Counts.Unchanged, Refused: j.Counts.Refused,
	}
}

// jobResultBody is the outcome of a job for one user.
type jobResultBody struct {
	UserID  rolecall.UserID     `json:"userId" doc:"ID of the user."`
	Outcome rolecall.JobOutcome `json:"outcome" doc:"The outcome: changed, unchanged or refused. Later versions may add values."`
	Problem optionalText        `json:"problem" nullable:"true" doc:"The code of the problem if the change was refused, such as beyond-own-permissions."`
}

var _ = operation.Component[jobResultBody]("JobResult", "The outcome of a job for one user.")
var _ = operation.Component[operation.Page[jobResultBody]]("JobResultPage", "A page of results.")

func newJobResultBody(r *rolecall.JobResult) jobResultBody {
	return jobResultBody{r.UserID, r.Outcome, optionalText(r.Problem)}
}
