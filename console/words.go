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
)

// ago returns the timestamp relative to now: "3 days ago", "in 2 hours". It returns a date if it is
// more than a year away. Future timestamps are rounded to the nearest unit.
func ago(now, t rolecall.Time) string {
	away := now.Sub(t)
	future := away < 0
	if future {
		away = nearest(-away)
	}
	var words string
	switch {
	case away < time.Minute && !future:
		return "just now"
	case away < time.Minute:
		return "in a moment"
	case away < time.Hour:
		words = plural(int(away/time.Minute), "minute")
	case away < 24*time.Hour:
		words = plural(int(away/time.Hour), "hour")
	case away < 60*24*time.Hour:
		words = plural(int(away/(24*time.Hour)), "day")
	case away < 365*24*time.Hour:
		words = plural(int(away/(30*24*time.Hour)), "month")
	default:
		return t.Std().Format("2 Jan 2006")
	}
	if future {
		return "in " + words
	}
	return words + " ago"
}

// clock returns the time of day, rounded up to the next minute.
func clock(t rolecall.Time) string {
	return t.Add(time.Minute - time.Microsecond).Std().Truncate(time.Minute).Format("15:04 MST")
}

type lifetimeUnit struct {
	length time.Duration
	name   string
}

// lifetimeUnits are the units of durations in texts.
var lifetimeUnits = []lifetimeUnit{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}}

// lifetime returns the duration in words: "1 day 12 hours".
func lifetime(d time.Duration) string {
	var words []string
	for _, unit := range lifetimeUnits {
		if n := d / unit.length; n > 0 {
			words = append(words, plural(int(n), unit.name))
			d -= n * unit.length
		}
	}
	if words == nil {
		return "0 seconds"
	}
	return strings.Join(words, " ")
}

var lifetimePart = regexp.MustCompile(`^(\d{1,9})\s*([a-z]+)\s*`)

// readLifetime parses a duration in words and returns it in seconds. Each number needs a unit, which
// may be abbreviated to its first letters.
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
		at := slices.IndexFunc(lifetimeUnits, func(u lifetimeUnit) bool { return strings.HasPrefix(u.name+"s", part[2]) })
		n, err := strconv.ParseInt(part[1], 10, 64)
		if at < 0 || err != nil {
			return 0, false
		}
		seconds += n * int64(lifetimeUnits[at].length/time.Second)
		rest = rest[len(part[0]):]
	}
	return seconds, ok
}

// nearest rounds a duration to the unit in which it is displayed.
func nearest(d time.Duration) time.Duration {
	if d = d.Round(time.Minute); d < time.Hour {
		return d
	}
	if d = d.Round(time.Hour); d < 24*time.Hour {
		return d
	}
	return d.Round(24 * time.Hour)
}

// exact returns the timestamp with all its parts, to the second.
func exact(t rolecall.Time) string { return t.Std().Format("Monday, 2 January 2006, 15:04:05 MST") }

// plural returns the count with the noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", thousands(n), noun)
}

// thousands returns the number with its digits in groups.
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

// initials returns at most two letters that represent the name.
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

// memberNames are the display names of the members of a user.
var memberNames = map[rolecall.UserMember]string{
	rolecall.MemberEmail: "Email", rolecall.MemberName: "Name", rolecall.MemberDepartment: "Department",
	rolecall.MemberExternalID: "External id", rolecall.MemberMetadata: "Metadata", rolecall.MemberStatus: "Status",
	rolecall.MemberCreatedAt: "Created", rolecall.MemberUpdatedAt: "Changed",
}

// listed joins the words with commas and an and.
func listed(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// reachWords describes the reach.
func reachWords(r rolecall.Reach) string {
	switch {
	case r.IsEverywhere():
		return "Everywhere"
	case r.IsNowhere():
		return "Nowhere"
	}
	return "In " + listed(r.Departments())
}

// orWords returns the text, or words if it is empty.
func orWords(text, words string) string {
	if text == "" {
		return words
	}
	return text
}

// problemWords replace the details of problems that are written for API clients.
var problemWords = map[string]string{
	rolecall.ErrNotRecent.Code: "Your sign-in is a while ago. Nothing is lost: confirm below that it is you.",
	rolecall.ErrKeyReused.Code: "This form came before with something else in it, and that was done. Send it again to do this too.",
}

// openWords describes what the permission allows.
func openWords(p rolecall.Permission) string {
	if words := p.Opens(); words != "" || !p.Own() {
		return orWords(words, "what the application makes of it")
	}
	return "all that it covers"
}

// detailOf returns the detail of the error for users.
func detailOf(err error) string {
	if known, ok := errors.AsType[*rolecall.Error](err); ok {
		return known.Detail
	}
	return ""
}

// heading returns the words with a capital letter at their beginning.
func heading(words string) string { return strings.TrimSuffix(sentence(words), ".") }

// lowered returns the words with a small letter at their beginning.
func lowered(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToLower(first)) + words[size:]
}

// texts returns the permissions as text.
func texts(permissions []rolecall.Permission) (list []string) {
	for _, p := range permissions {
		list = append(list, p.String())
	}
	return list
}

// nameOf returns the name of the user, or the id if the caller may not read the name.
func nameOf(v *pageContext, u *rolecall.User) string {
	if v.call.ReadableMembers(u).Has(rolecall.MemberName) {
		return u.Name
	}
	return u.ID.String()
}

// names maps ids on a page to the names of their objects.
type names map[rolecall.AnyID]directory.Named

// namesIn returns the names for the ids in the events, and for the other ids.
func (c *console) namesIn(v *pageContext, events []rolecall.Event, others ...rolecall.AnyID) (names, error) {
	for i := range events {
		e := &events[i]
		others = append(others, rolecall.AnyID(e.Actor.ID), e.Subject.ID)
		others = append(others, idsWithin(e)...)
	}
	return c.namesOf(v, others)
}

// namesOf returns the names for the ids. It loads them in one call.
func (c *console) namesOf(v *pageContext, ids []rolecall.AnyID) (names, error) {
	ids = slices.DeleteFunc(ids, func(id rolecall.AnyID) bool { return id.IsZero() })
	slices.SortFunc(ids, func(a, b rolecall.AnyID) int { return bytes.Compare(a[:], b[:]) })
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil, nil
	}
	return c.directory.Names(v.ctx, v.call, ids)
}

// missingRole is the name to show for a role if the page knows only the id.
func (f frame) missingRole() string {
	if f.may(rolecall.RolesRead) {
		return "a deleted role"
	}
	return "a role you can't view"
}

// missingUser is the name to show for a user if the page knows only the id.
func (f frame) missingUser() string {
	if f.call.Visible().IsEverywhere() {
		return "a deleted user"
	}
	return "a user you can't view"
}

// missingAccount is the name to show for a service account if the page knows only the id.
func (f frame) missingAccount() string {
	if f.may(rolecall.ServiceAccountsRead) {
		return "a deleted service account"
	}
	return "a service account you can't view"
}

// missingGiver is the name to show for a grantor, who is a user or a service account, if
// the page knows only the id.
func (f frame) missingGiver() string {
	if f.call.Visible().IsEverywhere() && f.may(rolecall.ServiceAccountsRead) {
		return "a deleted user or service account"
	}
	return "somebody you can't view"
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
