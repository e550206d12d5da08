package console

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/web"
)

type lifetimeUnit struct {
	length time.Duration
	key    string // the message key of its name
}

// lifetimeUnits are the units in which durations are shown and read, in descending order.
var lifetimeUnits = []lifetimeUnit{{24 * time.Hour, "time.days"}, {time.Hour, "time.hours"}, {time.Minute, "time.minutes"}, {time.Second, "time.seconds"}}

// named reports whether the name of the unit begins with the word.
func (u lifetimeUnit) named(word string) bool {
	for _, count := range []int{1, 2, 5} { // these counts have different plural forms in some languages
		if strings.HasPrefix(unitName(u.key, count), word) {
			return true
		}
	}
	return false
}

// unitName returns the name of a unit in lower case, in the plural form for the count.
func unitName(key string, count int) string {
	text := messages().text(key, []any{countPlaceholder, count})
	return strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, "{"+countPlaceholder+"}", "")))
}

// lifetime returns the duration in words, such as "1 day 12 hours".
func lifetime(d time.Duration) string {
	var words []string
	for _, unit := range lifetimeUnits {
		if n := d / unit.length; n > 0 {
			words = append(words, msg(unit.key, "Count", int(n)))
			d -= n * unit.length
		}
	}
	if words == nil {
		return msg("time.seconds", "Count", 0)
	}
	return strings.Join(words, " ")
}

var lifetimePart = regexp.MustCompile(`^(\d{1,9})\s*([a-z]+)\s*`)

// readLifetime parses a duration in words, such as "1 day 12 hours", and returns the
// seconds. Each number needs a unit, except for a single 0. The first letters of a unit are
// enough. ok is false if the text is not a duration.
func readLifetime(text string) (seconds int64, ok bool) {
	rest := strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, ",", "")))
	if rest == "0" {
		return 0, true
	}
	for ; rest != ""; ok = true {
		part := lifetimePart.FindStringSubmatch(rest)
		if part == nil {
			return 0, false
		}
		at := slices.IndexFunc(lifetimeUnits, func(u lifetimeUnit) bool { return u.named(part[2]) })
		n, err := strconv.ParseInt(part[1], 10, 64)
		if at < 0 || err != nil {
			return 0, false
		}
		seconds += n * int64(lifetimeUnits[at].length/time.Second)
		rest = rest[len(part[0]):]
	}
	return seconds, ok
}

// shownInLine is the maximum length of a name in a line of a list, in code points. A line
// has space for fewer. Without a limit, a page of very long names would be too large.
const shownInLine = 160

// shortened cuts a text to the first shownInLine code points.
func shortened(text string) string {
	n := 0
	for i := range text {
		if n++; n > shownInLine {
			return text[:i] + "…"
		}
	}
	return text
}

// thousands returns the number with separators between groups of three digits.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + msg("number.group") + digits[i:]
	}
	return digits
}

// sentence returns the detail of a field error as a sentence.
func sentence(detail string) string {
	first, size := utf8.DecodeRuneInString(detail)
	if size == 0 {
		return ""
	}
	text := string(unicode.ToUpper(first)) + detail[size:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// initials returns the first letters of the first and the last word of the name. The result
// has at most two letters or digits.
func initials(name string) string {
	var letters []rune
	for _, word := range strings.Fields(name) {
		if r, _ := utf8.DecodeRuneInString(word); unicode.IsLetter(r) || unicode.IsDigit(r) {
			letters = append(letters, unicode.ToUpper(r))
		}
	}
	if len(letters) > 2 {
		letters = []rune{letters[0], letters[len(letters)-1]}
	}
	return string(letters)
}

// orDash returns the text, or a dash for nil.
func orDash(text *string) string {
	if text == nil {
		return "–"
	}
	return *text
}

// memberName returns the display name of the member of a user.
func memberName(m rolecall.UserMember) string { return msg(memberPrefix + m.String()) }

// memberPrefix begins the keys of the names of the members of a user.
const memberPrefix = "member."

// statusWords returns the display name of the status.
func statusWords(status string) string { return msg(statusPrefix + status) }

// statusPrefix begins the keys of the names of statuses.
const statusPrefix = "status."

// listedMax is the maximum number of words that listed names.
const listedMax = 20

// listed joins the words with commas, and the last one with "and". It names the first listedMax
// words, and says how many more there are.
func listed(words []string) string { return listedFirst(words, len(words)) }

// listedInLine does the same as listed for a line of a list. It names only as many words as fit
// into suggestedBytes, but at least one.
func listedInLine(words []string) string { return listedFirst(words, max(1, len(suggested(words)))) }

// listedFirst lists at most the first n words.
func listedFirst(words []string, n int) string {
	if len(words) == 0 {
		return ""
	}
	shown := words[:min(n, listedMax, len(words))]
	comma := msg("number.list", "First", "", "Next", "")
	if more := len(words) - len(shown); more > 0 {
		return msg("number.list-more", "First", strings.Join(shown, comma), "Count", more)
	}
	last := len(shown) - 1
	if last == 0 {
		return shown[0]
	}
	return msg("number.list-end", "First", strings.Join(shown[:last], comma), "Last", shown[last])
}

// reachWords describes the reach in words. It names only the first of many departments.
func reachWords(r rolecall.Reach) string {
	switch {
	case r.IsEverywhere():
		return msg("reach.everywhere")
	case r.IsNowhere():
		return msg("reach.nowhere")
	}
	return msg("reach.departments", "Departments", listedInLine(r.Departments()))
}

// orWords returns text. If text is empty, it returns words.
func orWords(text, words string) string {
	if text == "" {
		return words
	}
	return text
}

// problemDetail returns the detail of the problem. It replaces details that only help API
// clients.
func problemDetail(p *web.Problem) string {
	return detailWords(p.Code, p.Detail)
}

// detailPrefix and the code of an error form the message key of its detail in the console.
const detailPrefix = "detail."

// reworded are the errors whose details help only API clients. The console has its own details for them.
var reworded = []*rolecall.Error{
	rolecall.ErrValidation, rolecall.ErrMalformed, rolecall.ErrNotFound, rolecall.ErrOutsideReach, rolecall.ErrFieldNotReadable, rolecall.ErrPreconditionFailed, rolecall.ErrUnavailable,
	rolecall.ErrBusy, rolecall.ErrTooManyJobs, rolecall.ErrKeyInProgress, rolecall.ErrTooManyKeys, rolecall.ErrNotRecent, rolecall.ErrKeyReused,
}

// detailWords returns the detail of an error for people. It keeps a detail that is not the usual one of
// the error.
func detailWords(code, detail string) string {
	for _, known := range reworded {
		if known.Code == code && known.Detail == detail {
			return msg(detailPrefix + code)
		}
	}
	return detail
}

// problemTitle returns the title of the problem. It replaces titles that only help API clients.
func problemTitle(p *web.Problem) string {
	if p.Code == rolecall.ErrValidation.Code {
		return msg("problem.not-accepted")
	}
	return p.Title
}

// faultPrefix, the field and the code of a field error form the message key of an error in words of the
// form. Other errors are the same as in the API.
const faultPrefix = "fault."

// faultWords describes the field error in a sentence.
func faultWords(fault rolecall.FieldError) string {
	if key := faultPrefix + strings.TrimPrefix(fault.Pointer, "/") + "." + fault.Code; hasMessage(key) {
		return msg(key)
	}
	return sentence(fault.Detail)
}

// faultLine describes a field error that is not shown at its field, with the name of the field.
func faultLine(fault rolecall.FieldError) string {
	if words := faultWords(fault); words != sentence(fault.Detail) {
		return words
	}
	return sentence(fault.Parameter + strings.TrimPrefix(fault.Pointer, "/") + " " + fault.Detail)
}

// permissionPrefix and a permission form the message key of the permission's description.
const permissionPrefix = "permission."

// openWords describes what the permission allows.
func openWords(p rolecall.Permission) string {
	switch key := permissionPrefix + p.String(); {
	case hasMessage(key):
		return msg(key)
	case !p.Own():
		return msg("permission.application")
	case p.Resource != "users" || p.Field == "" || p.Field == "*":
	case p.Action == "read":
		return msg("permission.read-field", "Field", fieldName(p.Field))
	case p.Action == "update":
		return msg("permission.update-field", "Field", fieldName(p.Field))
	}
	return msg("permission.wildcard")
}

// fieldName returns the display name of the member of users that a permission names.
func fieldName(field string) string {
	if m, ok := rolecall.UserMemberNamed(field); ok {
		return memberName(m)
	}
	return field
}

// detailOf returns the detail of a Rolecall error. It returns an empty text for other
// errors and for nil.
func detailOf(err error) string {
	if known, ok := errors.AsType[*rolecall.Error](err); ok {
		return known.Detail
	}
	return ""
}

// texts returns the permissions as text.
func texts(permissions []rolecall.Permission) (list []string) {
	for _, p := range permissions {
		list = append(list, p.String())
	}
	return list
}

// nameOf returns the name of the user. It returns the id if the caller may not read the
// name.
func nameOf(v *pageContext, u *rolecall.User) string {
	if v.call.ReadableMembers(u).Has(rolecall.MemberName) {
		return u.Name
	}
	return u.ID.String()
}

// names maps the ids on a page to the names of the users, roles and other objects.
type names map[rolecall.AnyID]directory.Named

// namesIn returns the names of all objects in the events, and of those with the ids in
// others.
func (c *console) namesIn(v *pageContext, events []rolecall.Event, others ...rolecall.AnyID) (names, error) {
	for i := range events {
		e := &events[i]
		others = append(others, rolecall.AnyID(e.Actor.ID), e.Subject.ID)
		others = append(others, idsWithin(e)...)
	}
	if err := c.readJobsOf(v, events); err != nil {
		return nil, err
	}
	return c.namesOf(v, others)
}

// namesOf returns the names of the objects with the ids. It loads all names in one call.
func (c *console) namesOf(v *pageContext, ids []rolecall.AnyID) (names, error) {
	ids = slices.DeleteFunc(ids, func(id rolecall.AnyID) bool { return id.IsZero() })
	slices.SortFunc(ids, func(a, b rolecall.AnyID) int { return bytes.Compare(a[:], b[:]) })
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil, nil
	}
	return c.directory.Names(v.ctx, v.call, ids)
}

// missingRole is shown instead of the name of a role if the page knows only the id.
func (f frame) missingRole() string {
	if f.may(rolecall.RolesRead) {
		return msg("missing.deleted-role")
	}
	return msg("missing.role")
}

// unknownRole is shown instead of the name of a role if the page knows neither name nor id.
func (f frame) unknownRole() string {
	if f.may(rolecall.RolesRead) {
		return msg("missing.unknown-role")
	}
	return msg("missing.role")
}

// missingGroup is shown instead of the name of a group if the page knows only the id.
func (f frame) missingGroup() string {
	if f.readsGroups() {
		return msg("missing.deleted-group")
	}
	return msg("missing.group")
}

// unknownGroup is shown instead of the name of a group if the page knows neither name nor id.
func (f frame) unknownGroup() string {
	if f.readsGroups() {
		return msg("missing.unknown-group")
	}
	return msg("missing.group")
}

// missingUser is shown instead of the name of a user if the page knows only the id.
func (f frame) missingUser() string {
	if f.call.Visible().IsEverywhere() {
		return msg("missing.deleted-user")
	}
	return msg("missing.user")
}

// missingAccount is shown instead of the name of a service account if the page knows only
// the id.
func (f frame) missingAccount() string {
	if f.may(rolecall.ServiceAccountsRead) {
		return msg("missing.deleted-account")
	}
	return msg("missing.account")
}

// missingGiver is shown instead of the name of a grantor if the page knows only the id. A
// grantor is a user or a service account.
func (f frame) missingGiver() string {
	if f.call.Visible().IsEverywhere() && f.may(rolecall.ServiceAccountsRead) {
		return msg("missing.deleted-grantor")
	}
	return msg("missing.grantor")
}

func roleIDs(assignments []rolecall.Assignment) []rolecall.AnyID {
	ids := make([]rolecall.AnyID, len(assignments))
	for i := range assignments {
		ids[i] = rolecall.AnyID(assignments[i].Role.ID)
	}
	return ids
}

func roleNames(roles []rolecall.Role) (names []string) {
	for i := range roles {
		names = append(names, roles[i].Name)
	}
	return names
}
