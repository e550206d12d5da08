package console

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// sentencePrefix and an event type form the message key of the sentence about an event.
// ownSuffix follows if the actor is also the subject, unknownSuffix if the event is about an unknown
// user, and groupSuffix if it is about a group.
const (
	sentencePrefix = "sentence."
	ownSuffix      = "-own"
	unknownSuffix  = "-unknown"
	groupSuffix    = "-group"
)

// sentenceKey returns the message key of the sentence about the event.
func sentenceKey(e *rolecall.Event) string {
	key := sentencePrefix + string(e.Type)
	switch {
	case isOwn(e) && hasMessage(key+ownSuffix):
		return key + ownSuffix
	case e.Subject.Type == rolecall.SubjectTenant && hasMessage(key+unknownSuffix):
		return key + unknownSuffix
	case e.Subject.Type == rolecall.SubjectGroup && hasMessage(key+groupSuffix):
		return key + groupSuffix
	}
	return key
}

// isOwn reports whether the actor of the event is also its subject.
func isOwn(e *rolecall.Event) bool {
	return !e.Actor.ID.IsZero() && e.Actor.Type != rolecall.ActorOperator && e.Subject.ID == rolecall.AnyID(e.Actor.ID)
}

// sentenceOf describes the event in one sentence.
func sentenceOf(f frame, e *rolecall.Event, named names) templ.Component {
	where, expiresAt := assignmentLimits(e)
	end := plain("")
	if expiresAt != 0 {
		end = say("events.until", "Time", day(f, expiresAt))
	}
	return say(sentenceKey(e),
		"Actor", actor(f, e, named, true), "By", actor(f, e, named, false), "Subject", subject(f, e, named),
		"Role", roleIn(f, e, named), "Group", groupIn(f, e, named), "Job", jobIn(f, e, false), "FirstJob", jobIn(f, e, true), "Where", bdi(where), "End", end, "Fields", plain(changedWords(e)))
}

// capitalized returns the text with a capital first letter.
func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// atStart returns the text, with a capital first letter if it begins a sentence.
func atStart(text string, begins bool) string {
	if begins {
		return capitalized(text)
	}
	return text
}

// eventDay has the events of one day.
type eventDay struct {
	title string
	runs  []eventRun
}

// eventRun has events that follow each other in a list. If job is not nil, the events are changes of
// this job. Otherwise, there is one event.
type eventRun struct {
	job    *rolecall.Job
	events []rolecall.Event
}

// minRun is the number of changes of a job from which a list shows them in one line.
const minRun = 3

// byDay splits the events of a page, which are sorted by time, into days, and each day into runs.
func (f frame) byDay(events []rolecall.Event) (days []eventDay) {
	for len(events) > 0 {
		title := f.dayOf(events[0].OccurredAt)
		if len(days) == 0 || days[len(days)-1].title != title {
			days = append(days, eventDay{title: title})
		}
		run := eventRun{events: events[:1]}
		if n := f.changesOfJob(events, title); n >= minRun {
			run = eventRun{job: f.jobOf(&events[0]), events: events[:n]}
		}
		last := &days[len(days)-1]
		last.runs = append(last.runs, run)
		events = events[len(run.events):]
	}
	return days
}

// changesOfJob returns the number of events at the start of the list that are changes of the same job on
// the day with the title.
func (f frame) changesOfJob(events []rolecall.Event, title string) (n int) {
	job := f.jobOf(&events[0])
	for job != nil && n < len(events) && !isAboutJob(&events[n]) && f.jobOf(&events[n]) == job && f.dayOf(events[n].OccurredAt) == title {
		n++
	}
	return n
}

// dayOf returns the words for today or yesterday, or the date of other days.
func (f frame) dayOf(t rolecall.Time) string {
	yesterday := rolecall.TimeOf(f.now.Std().AddDate(0, 0, -1))
	switch title := f.format(t, "time.day"); title {
	case f.format(f.now, "time.day"):
		return msg("time.today", "Day", title)
	case f.format(yesterday, "time.day"):
		return msg("time.yesterday", "Day", title)
	default:
		return title
	}
}

// jobEvents maps the types of the events of the users that a job changes to the action of the job.
var jobEvents = map[rolecall.EventType]rolecall.JobAction{
	rolecall.EventUserSuspended: rolecall.JobSuspend, rolecall.EventSessionEnded: rolecall.JobSuspend, rolecall.EventUserResumed: rolecall.JobResume,
	rolecall.EventRoleAssigned: rolecall.JobAssignRole, rolecall.EventRoleUnassigned: rolecall.JobUnassignRole,
}

// isAboutJob reports whether the event is about the start or the end of a job.
func isAboutJob(e *rolecall.Event) bool {
	return e.Type == rolecall.EventJobStarted || e.Type == rolecall.EventJobEnded || e.Type == rolecall.EventJobCanceled
}

// readJobsOf reads the jobs of the events. It reads only the newest jobs of the tenant, because jobs are
// deleted after a week.
func (c *console) readJobsOf(v *pageContext, events []rolecall.Event) error {
	isOfJob := func(e rolecall.Event) bool { return jobEvents[e.Type] != "" || isAboutJob(&e) }
	if !slices.ContainsFunc(events, isOfJob) || authz.ReadJobs.Authorize(v.call.Principal) != nil {
		return nil
	}
	page, err := c.directory.Jobs(v.ctx, v.call, nil, rolecall.MaxLimit)
	v.jobs = map[string]*rolecall.Job{}
	for i := range page.Items {
		v.jobs[page.Items[i].Request.ID] = &page.Items[i]
	}
	return err
}

// jobOf returns the job that the event is about, or that made the change. It returns nil for another
// event, and if the job does not exist any more or the caller may not read it.
func (f frame) jobOf(e *rolecall.Event) *rolecall.Job {
	if id, _ := jobEnded(e); id != "" {
		for _, job := range f.jobs {
			if job.ID.String() == id {
				return job
			}
		}
		return nil
	}
	job := f.jobs[e.RequestID]
	if job == nil || e.OccurredAt < job.CreatedAt || e.Actor.Type != job.Starter.Type || e.Actor.ID != job.Starter.ID {
		return nil
	}
	if isAboutJob(e) || jobEvents[e.Type] == job.Action {
		return job
	}
	return nil
}

// jobEnded returns the id and the action of the job in the values of the event. Both are empty for other
// events, and if the caller may not read the values.
func jobEnded(e *rolecall.Event) (id string, action rolecall.JobAction) {
	if e.Values == nil || !isAboutJob(e) {
		return "", ""
	}
	members := membersOf(e.Values.After)
	id, _ = members["id"].(string)
	text, _ := members["action"].(string)
	if action = rolecall.JobAction(text); !hasMessage("jobs." + text + "-title") {
		action = ""
	}
	return id, action
}
