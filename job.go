package rolecall

import "time"

// The limits of jobs.
const (
	JobsMax       = 5                  // jobs of a tenant that run at the same time
	JobLifetime   = 7 * 24 * time.Hour // how long an ended job and its results are kept
	JobResultsMax = 10_000             // refused users of a job that are recorded, and as many other users
)

// Job performs one action on all users that match a filter, in the background. It visits the users
// in the order of their ids. Each change is authorized with the permissions that its starter has at
// that time.
type Job struct {
	ID         JobID           `json:"id"`
	Action     JobAction       `json:"action"`
	Filter     JobFilter       `json:"users"`
	RoleID     RoleID          `json:"roleId,omitzero"`     // the role to assign or to remove
	Assignment AssignmentDraft `json:"assignment,omitzero"` // for JobAssignRole
	Reason     string          `json:"reason,omitempty"`
	Starter    JobStarter      `json:"startedBy"`
	Expected   Total           `json:"expected"` // the users that matched when the job was started
	CreatedAt  Time            `json:"createdAt"`

	// The progress.
	Status  JobStatus  `json:"status"`
	Counts  JobCounts  `json:"counts"`
	Problem string     `json:"problem,omitempty"` // the code of the problem that stopped the job
	EndedAt Time       `json:"endedAt,omitzero"`
	Last    UserID     `json:"-"` // the last user that was visited
	Request JobRequest `json:"-"`
}

// JobAction is the change that a job makes.
type JobAction string

// The actions of jobs.
const (
	JobSuspend      JobAction = "suspend"
	JobResume       JobAction = "resume"
	JobAssignRole   JobAction = "assign-role"
	JobUnassignRole JobAction = "unassign-role"
)

// JobStatus is the state of a job.
type JobStatus string

// The states of jobs. All except JobRunning are final.
const (
	JobRunning   JobStatus = "running"
	JobCompleted JobStatus = "completed" // it has visited all users
	JobCanceled  JobStatus = "canceled"
	JobStopped   JobStatus = "stopped" // see Job.Problem
)

// JobFilter selects the users of a job. Empty members do not filter.
type JobFilter struct {
	// Words must each be the beginning of a word of the user's name or address. They can be personal
	// data, so they are removed when the job ends.
	Words      []string `json:"-"`
	Searched   bool     `json:"searched"` // Words are set, or were set until the job ended
	Status     string   `json:"status,omitempty"`
	Department string   `json:"department,omitempty"`
	Role       RoleID   `json:"role,omitzero"`
	Group      GroupID  `json:"group,omitzero"`
}

// jobFilterNames are the names of the filters in the event of a job's start.
var jobFilterNames = []string{"q", "status", "department", "role", "group"}

// Names returns the names of the filters that are set.
func (f *JobFilter) Names() []string {
	names := []string{}
	for i, set := range []bool{f.Searched, f.Status != "", f.Department != "", !f.Role.IsZero(), !f.Group.IsZero()} {
		if set {
			names = append(names, jobFilterNames[i])
		}
	}
	return names
}

// JobStarter is the user or program that started a job.
type JobStarter struct {
	Type ActorType `json:"type"`
	ID   UserID    `json:"id"` // for an operator, the id of the operator key
}

// JobRequest identifies the request that started a job. If its credential is revoked or expires, the
// job stops. At most one of Session, Token and OperatorKey is set.
type JobRequest struct {
	ID          string
	Source      string // IP address of the client; removed when the job ends
	Session     SessionID
	Token       APITokenID
	OperatorKey OperatorKeyID
}

// JobCounts are the numbers of users that a job has visited, by outcome.
type JobCounts struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Refused   int `json:"refused"`
}

// Visited returns the number of users that the job has visited.
func (c *JobCounts) Visited() int { return c.Changed + c.Unchanged + c.Refused }

// JobOutcome is the result of a job for one user.
type JobOutcome string

// The outcomes.
const (
	JobUserChanged   JobOutcome = "changed"
	JobUserUnchanged JobOutcome = "unchanged" // the user was in this state already, or is the starter of the job
	JobUserRefused   JobOutcome = "refused"
)

// JobResult is the outcome of a job for one user.
type JobResult struct {
	UserID  UserID
	Outcome JobOutcome
	Problem string // the code of the problem; empty unless the outcome is JobUserRefused
}

// Count counts the outcome. It reports whether the result is within the number of results that are
// recorded.
func (c *JobCounts) Count(outcome JobOutcome) bool {
	switch outcome {
	case JobUserChanged:
		c.Changed++
	case JobUserUnchanged:
		c.Unchanged++
	case JobUserRefused:
		c.Refused++
		return c.Refused <= JobResultsMax
	}
	return c.Changed+c.Unchanged <= JobResultsMax
}

// JobQuery selects jobs, the newest first.
type JobQuery struct {
	Starter UserID // only jobs of this user or program, if set
	After   *Position
	Limit   int
}

// JobResultQuery selects results of a job, by user id.
type JobResultQuery struct {
	Job     JobID
	Outcome JobOutcome // only users with this outcome, if set
	After   *Position
	Limit   int
}

// QueuedJob is a job that waits for a process, or that a process runs.
type QueuedJob struct {
	ID       JobID
	TenantID TenantID
	Attempts int // claims since the last progress
}
