package console

import (
	"strings"

	"github.com/rolecall/rolecall"
)

// typed returns what a form that changes something says in the field, and whether
// that is another value than the form had shown. What was not touched is not sent, so
// that it does not undo what somebody else has changed.
func typed(v *pageContext, name string) (text string, changed bool) {
	if v.form[name] == nil {
		return "", false
	}
	return v.form.Get(name), v.form.Get(name) != v.form.Get("was-"+name)
}

// change is a field of a form that changes something: what it shows, and what is
// saved by somebody else meanwhile beside it.
type change struct {
	shown, saved string
	conflicting  bool
}

// changeOf returns the field, given what is saved now: what was not touched shows
// that, and what was shows what was typed.
func (f frame) changeOf(name, saved string) change {
	shown, was := f.form.Get(name), f.form.Get("was-"+name)
	if f.form["was-"+name] == nil || shown == was {
		return change{shown: saved}
	}
	return change{shown: shown, saved: saved, conflicting: saved != was && saved != shown}
}

// typedSet is typed for a set.
func typedSet(v *pageContext, name string) (list []string, changed bool) {
	if v.form["was-"+name] == nil {
		return nil, false
	}
	list, was := lines(v.form[name]), strings.Fields(v.form.Get("was-"+name))
	return list, len(without(list, was)) > 0 || len(without(was, list)) > 0
}

// setChange is a set in a form that changes something, as texts: what it shows, and what
// somebody else has added and taken out meanwhile.
type setChange struct {
	shown        []string
	added, taken []string
}

// setOf returns the set, given what is saved now. What was ticked or not by whoever
// fills in the form stays so; all else is as it is saved.
func (f frame) setOf(name string, now []string) setChange {
	if f.form[name] == nil && f.form["was-"+name] == nil {
		return setChange{shown: now}
	}
	typed, was := lines(f.form[name]), strings.Fields(f.form.Get("was-"+name))
	change := setChange{added: without(now, was), taken: without(was, now)}
	change.shown = append(without(now, without(was, typed)), without(without(typed, was), now)...)
	return change
}

// isStale reports whether somebody else has changed what the form showed.
func (f frame) isStale() bool {
	return f.problem != nil && f.problem.Code == rolecall.ErrPreconditionFailed.Code
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// without returns those of the texts that are not among the others.
func without(texts, others []string) (rest []string) {
	among := map[string]bool{} // a form may bring thousands
	for _, text := range others {
		among[text] = true
	}
	for _, text := range texts {
		if !among[text] {
			rest = append(rest, text)
		}
	}
	return rest
}

// lines returns the lines of all the texts that hold something, trimmed.
func lines(texts []string) (list []string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
	}
	return list
}
