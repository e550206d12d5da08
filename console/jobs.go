package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) jobPages() []page {
	pages := []page{
		{path: "/{tenant}/jobs", operation: "JobsController_listJobs", query: pageParameters, show: c.showJobs},
		{path: "/{tenant}/jobs/{id}", operation: "JobsController_getJob", query: pageParameters, show: c.showJob},
		{path: "/{tenant}/jobs/{id}/users", operation: "JobsController_listJobResults", query: pageParameters, show: c.showJobUsers},
		{path: "/{tenant}/jobs/{id}/cancel", operation: "JobsController_cancelJob", show: c.askCancel, act: c.cancelJob},
	}
	for i := range bulkActions {
		a := &bulkActions[i]
		pages = append(pages, page{
			path: "/{tenant}/users/all" + a.path, operation: a.jobOperation, needsKey: true,
			show: func(v *pageContext) error { return c.askMatching(v, a) },
			act:  func(v *pageContext) error { return c.startJob(v, a) },
		})
	}
	return pages
}

// fieldAll is the checkbox of a list that selects all users that match, on all pages.
const fieldAll = "all"

// matchingView is the data of the confirmation page for all users that match the filter of a list.
type matchingView struct {
	selectedView
	total  rolecall.Total
	filter rolecall.JobFilter
	holds  string // name of the role of the filter
	group  string // name of the group of the filter
}

// readMatching returns the query of the list in the address to return to. It returns
// ErrMalformed if the list has a filter that a job does not support, because without this
// filter the job would change other users than those in the list. The department is the whole
// name, as in the API: a job must not change users of another department with a similar name.
func (c *console) readMatching(v *pageContext) (listing directory.UserListing, err error) {
	tail, err := url.Parse(frame{pageContext: v}.returnTail())
	if err != nil || tail.Path != "/users" {
		return listing, rolecall.ErrMalformed.With(msg("jobs.no-list"))
	}
	v.readParameters(exportedUsersQuery, tail.RawQuery)
	if v.faults != nil {
		return listing, rolecall.ErrMalformed.WithFieldErrors(v.faults...)
	}
	listing = v.userListing()
	if listing.Email != "" || listing.TextFilter != (rolecall.TextFilter{}) {
		return listing, rolecall.ErrMalformed.With(msg("jobs.single-user"))
	}
	if listing.Department == "" {
		return listing, nil
	}
	known, err := c.hasDepartment(v, listing.Department)
	if err == nil && !known {
		err = rolecall.ErrMalformed.With(msg("jobs.no-department", "Department", listing.Department))
	}
	return listing, err
}

// askMatching shows the confirmation page of the action, with the number of users that match.
func (c *console) askMatching(v *pageContext, a *bulkAction) error {
	listing, err := c.readMatching(v)
	if err != nil {
		return err
	}
	view := matchingView{selectedView: selectedView{bulkAction: a}, filter: filterOf(&listing)}
	if view.holds, err = c.roleNamed(v, listing.Role); err != nil {
		return err
	}
	if view.group, err = c.groupNamed(v, listing.Group); err != nil {
		return err
	}
	listing.After, listing.Limit, listing.Count = nil, 1, true
	page, err := c.directory.Users(v.ctx, v.call, listing)
	if err == nil {
		if view.total = *page.Total; includesCaller(v, &listing) {
			view.total.Count--
		}
		err = c.roleChoices(v, &view.selectedView)
	}
	if err != nil {
		return err
	}
	return c.show(v, msg(a.key+".label"), usersSection, func(f frame) templ.Component {
		view.frame = f
		return matchingDialog(view)
	})
}

// filterOf returns the filter of a job that changes the users of the list.
func filterOf(l *directory.UserListing) rolecall.JobFilter {
	return rolecall.JobFilter{Words: l.Words, Searched: len(l.Words) > 0, Status: l.Status, Department: l.Department, Role: l.Role, Group: l.Group}
}

// startJob starts the job, and redirects to its page.
func (c *console) startJob(v *pageContext, a *bulkAction) error {
	l, err := c.readMatching(v)
	if err != nil {
		return err
	}
	draft := directory.JobDraft{Action: a.job, Filter: filterOf(&l)}
	if a.gives {
		draft.RoleID, draft.Assignment, err = givenRole(v)
	} else {
		draft.Reason, err = v.reason()
	}
	if err != nil {
		return err
	}
	started, err := c.directory.StartJob(v.ctx, v.call, v.key(), draft)
	if err != nil {
		return err
	}
	return v.redirect(jobAddress(v, started.Value.ID) + "?done=" + jobStarted)
}

// title returns the title of the dialog.
func (m matchingView) title() string {
	if m.total.Exact {
		return msg(m.key+".title", "Count", m.total.Count)
	}
	return msg(m.key+".title-at-least", "Count", m.total.Count)
}

// jobStarted is the value of the query parameter "done" after the start of a job.
const jobStarted = "job-started"

// includesCaller reports whether the caller matches the filter of the list. A job does not change its
// starter.
func includesCaller(v *pageContext, l *directory.UserListing) bool {
	u := v.call.User
	isNamed := func(word string) bool {
		return slices.ContainsFunc(rolecall.WordsToFind(u.Name+" "+u.Email), func(own string) bool { return strings.HasPrefix(own, word) })
	}
	holds := func(a rolecall.Assignment) bool { return a.Role.ID == l.Role }
	isGroup := func(g rolecall.GroupName) bool { return g.ID == l.Group }
	return !slices.ContainsFunc(l.Words, func(word string) bool { return !isNamed(word) }) &&
		(l.Status == "" || l.Status == string(u.Status)) &&
		(l.Department == "" || rolecall.TextKey(l.Department) == rolecall.TextKey(orEmpty(u.Department))) &&
		(l.Role.IsZero() || slices.ContainsFunc(v.call.Assignments, holds)) &&
		(l.Group.IsZero() || slices.ContainsFunc(v.call.Groups, isGroup))
}

// jobsView is the data of the list of jobs.
type jobsView struct {
	frame
	pageLinks
	page  rolecall.Page[rolecall.Job]
	names names
}

func (c *console) showJobs(v *pageContext) (err error) {
	list := jobsView{}
	if v.faults == nil {
		if list.page, err = c.directory.Jobs(v.ctx, v.call, v.after, v.limit); err != nil {
			return err
		}
	}
	var ids []rolecall.AnyID
	for i := range list.page.Items {
		ids = append(ids, rolecall.AnyID(list.page.Items[i].Starter.ID))
	}
	if list.names, err = c.namesOf(v, ids); err != nil {
		return err
	}
	return c.show(v, msg("nav.jobs"), usersSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return jobsPage(list)
	})
}

// jobView is the data of the page of a job.
type jobView struct {
	frame
	pageLinks
	job     rolecall.Job
	refused []rolecall.JobResult
	names   names
	role    string // name of the role to assign
	filter  string // name of the role of the filter
	group   string // name of the group of the filter
}

func (c *console) showJob(v *pageContext) (err error) {
	view := jobView{}
	if view.job, err = c.directory.Job(v.ctx, v.call, v.jobID); err != nil {
		return err
	}
	ids := []rolecall.AnyID{rolecall.AnyID(view.job.Starter.ID)}
	var next *rolecall.Position
	if v.faults == nil && view.job.Counts.Refused > 0 {
		page, err := c.directory.JobResults(v.ctx, v.call, rolecall.JobResultQuery{Job: v.jobID, Outcome: rolecall.JobUserRefused, After: v.after, Limit: v.limit})
		if err != nil {
			return err
		}
		view.refused, next = page.Items, page.Next
	}
	for _, r := range view.refused {
		ids = append(ids, rolecall.AnyID(r.UserID))
	}
	if view.names, err = c.namesOf(v, ids); err != nil {
		return err
	}
	if view.role, err = c.roleNamed(v, view.job.RoleID); err != nil {
		return err
	}
	if view.filter, err = c.roleNamed(v, view.job.Filter.Role); err != nil {
		return err
	}
	if view.group, err = c.groupNamed(v, view.job.Filter.Group); err != nil {
		return err
	}
	return c.show(v, msg(jobKey(&view.job, "title")), usersSection, func(f frame) templ.Component {
		view.frame = f
		view.pageLinks = f.pagesOf(nil, next)
		return jobPage(view)
	})
}

// jobUsersView is the data of the page of the users that a job has changed.
type jobUsersView struct {
	frame
	pageLinks
	job     rolecall.Job
	changed []rolecall.UserID
	names   names
}

// showJobUsers shows the users that the job has changed. A page has at most selectedMax of them, so
// that one action can change all of them back.
func (c *console) showJobUsers(v *pageContext) (err error) {
	view := jobUsersView{}
	if view.job, err = c.directory.Job(v.ctx, v.call, v.jobID); err != nil {
		return err
	}
	var page rolecall.Page[rolecall.JobResult]
	if v.faults == nil {
		if page, err = c.directory.JobResults(v.ctx, v.call, rolecall.JobResultQuery{Job: v.jobID, Outcome: rolecall.JobUserChanged, After: v.after, Limit: selectedMax}); err != nil {
			return err
		}
	}
	var ids []rolecall.AnyID
	for _, r := range page.Items {
		view.changed, ids = append(view.changed, r.UserID), append(ids, rolecall.AnyID(r.UserID))
	}
	if view.names, err = c.namesOf(v, ids); err != nil {
		return err
	}
	return c.show(v, msg("jobs.changed-title"), usersSection, func(f frame) templ.Component {
		view.frame = f
		view.pageLinks = f.pagesOf(nil, page.Next)
		return jobUsersPage(view)
	})
}

// roleNamed returns the name of the role, or a placeholder if it was deleted or the caller may not
// read it. It is empty for no role.
func (c *console) roleNamed(v *pageContext, id rolecall.RoleID) (string, error) {
	f := frame{pageContext: v}
	if id.IsZero() {
		return "", nil
	}
	if authz.ReadRoles.Authorize(v.call.Principal) != nil {
		return f.missingRole(), nil
	}
	role, err := c.directory.Role(v.ctx, v.call, id)
	if rolecall.KindOf(err) == rolecall.NotFound {
		return f.missingRole(), nil
	}
	return role.Name, err
}

// askCancel shows the confirmation page of the cancellation.
func (c *console) askCancel(v *pageContext) error {
	job, err := c.directory.Job(v.ctx, v.call, v.jobID)
	if err != nil {
		return err
	}
	return c.show(v, msg("jobs.cancel-title"), usersSection, func(f frame) templ.Component {
		return cancelJobDialog(f, jobAddress(v, job.ID))
	})
}

func (c *console) cancelJob(v *pageContext) error {
	job, err := c.directory.CancelJob(v.ctx, v.call, v.jobID)
	if err != nil {
		return err
	}
	return v.redirect(jobAddress(v, job.ID))
}

func jobAddress(v *pageContext, id rolecall.JobID) string { return v.path("/jobs/" + id.String()) }

// jobKey returns the key of a message about jobs with this action.
func jobKey(j *rolecall.Job, what string) string { return "jobs." + string(j.Action) + "-" + what }

// starterOf returns the id of the user or service account that started the job. It is zero for an
// operator.
func starterOf(j *rolecall.Job) rolecall.UserID {
	if j.Starter.Type == rolecall.ActorOperator {
		return rolecall.UserID{}
	}
	return j.Starter.ID
}

// barValue returns how far the bar of the progress is filled. The bar of a completed job is full,
// although users that no longer match were not visited.
func (j jobView) barValue() int {
	if j.job.Status == rolecall.JobCompleted {
		return max(j.expected(), 1)
	}
	return j.job.Counts.Visited()
}

// expected returns the number of users that the job is expected to visit.
func (j jobView) expected() int { return max(j.job.Expected.Count, j.job.Counts.Visited()) }

// progressWords says how far the job is.
func (j jobView) progressWords() string {
	visited, expected := j.job.Counts.Visited(), j.expected()
	if !j.job.Expected.Exact {
		return msg("jobs.progress-at-least", "Count", visited, "Total", expected)
	}
	return msg("jobs.progress", "Count", visited, "Total", expected)
}

// filterWords describes which users a job with the filter changes. role and group are the names of the role and the
// group in the filter, or empty texts.
func filterWords(f *rolecall.JobFilter, role, group string) string {
	var words []string
	if f.Searched {
		words = append(words, msg("jobs.filter-search"))
	}
	if f.Status != "" {
		words = append(words, msg("jobs.filter-status", "Status", strings.ToLower(statusWords(f.Status))))
	}
	if f.Department != "" {
		words = append(words, msg("jobs.filter-department", "Department", f.Department))
	}
	if role != "" {
		words = append(words, msg("jobs.filter-role", "Role", role))
	}
	if group != "" {
		words = append(words, msg("jobs.filter-group", "Group", group))
	}
	return cmp.Or(listed(words), msg("jobs.filter-none"))
}

// problemWords explains why a job has stopped, or why a user was not changed.
func problemWords(prefix, code string) string {
	if key := prefix + code; hasMessage(key) {
		return msg(key)
	}
	return msg(prefix+"other", "Code", code)
}

// userLists returns the tabs of the section of users. Jobs are among them for those who may start
// one, and for those who may read the jobs of others.
func (f frame) userLists() []section {
	for _, policy := range []*authz.Policy{authz.StartSuspendJob, authz.StartAssignJob, authz.ReadEvents} {
		if policy.Authorize(f.call.Principal) == nil {
			return append(userLists[:len(userLists):len(userLists)], section{name: "nav.jobs", path: "/jobs"})
		}
	}
	return userLists
}
