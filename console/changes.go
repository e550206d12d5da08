package console

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
)

// typed returns what a form that changes something says in the field, and whether
// that is another value than the form had shown. What was not touched is not sent, so
// that it does not undo what somebody else has changed.
func typed(v *httpapi.Visit, name string) (text string, changed bool) {
	if v.Forms(name) == nil {
		return "", false
	}
	return v.Form(name), v.Form(name) != v.Form("was-"+name)
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
	shown, was := f.Form(name), f.Form("was-"+name)
	if f.Forms("was-"+name) == nil || shown == was {
		return change{shown: saved}
	}
	return change{shown: shown, saved: saved, conflicting: saved != was && saved != shown}
}

// isStale reports whether somebody else has changed what the form showed.
func (f frame) isStale() bool {
	return f.Problem() != nil && f.Problem().Code == rolecall.ErrPreconditionFailed.Code
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
