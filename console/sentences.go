package console

import (
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
)

// sentencePrefix and an event type form the message key of the sentence about an event.
// ownSuffix follows if the actor is also the subject, and unknownSuffix if the event is
// about an unknown user.
const (
	sentencePrefix = "sentence."
	ownSuffix      = "-own"
	unknownSuffix  = "-unknown"
)

// sentenceKey returns the message key of the sentence about the event.
func sentenceKey(e *rolecall.Event) string {
	key := sentencePrefix + string(e.Type)
	switch {
	case isOwn(e) && hasMessage(key+ownSuffix):
		return key + ownSuffix
	case e.Subject.Type == rolecall.SubjectTenant && hasMessage(key+unknownSuffix):
		return key + unknownSuffix
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
		"Role", roleIn(f, e, named), "Where", bdi(where), "End", end, "Fields", plain(changedWords(e)))
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
	title  string
	events []rolecall.Event
}

// byDay splits the events of a page, which are sorted by time, into days.
func (f frame) byDay(events []rolecall.Event) (days []eventDay) {
	for i := range events {
		title := f.dayOf(events[i].OccurredAt)
		if len(days) == 0 || days[len(days)-1].title != title {
			days = append(days, eventDay{title: title})
		}
		last := &days[len(days)-1]
		last.events = append(last.events, events[i])
	}
	return days
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
