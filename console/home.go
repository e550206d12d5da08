package console

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) homePages() []page {
	return []page{
		{path: "/{tenant}/home", operation: "TenantController_getSummary", show: c.showHome},
	}
}

// homeView is the data of the first page of a tenant.
type homeView struct {
	frame
	directory.Summary
	names  names    // names of the users and service accounts whose roles and tokens expire soon
	recent *history // the newest events of the tenant
}

func (c *console) showHome(v *pageContext) (err error) {
	home := homeView{}
	if home.Summary, err = c.directory.Summary(v.ctx, v.call, v.zone); err != nil {
		return err
	}
	var ids []rolecall.AnyID
	if home.Roles != nil {
		for _, r := range home.Roles.Items {
			ids = append(ids, r.Holder.ID)
		}
	}
	if home.Tokens != nil {
		for _, t := range home.Tokens.Items {
			ids = append(ids, rolecall.AnyID(t.UserID), rolecall.AnyID(t.ServiceAccountID))
		}
	}
	if home.names, err = c.namesOf(v, ids); err != nil {
		return err
	}
	if home.recent, err = c.historyOf(v, rolecall.AnyID{}, ""); err != nil {
		return err
	}
	return c.show(v, msg(homeSection), homeSection, func(f frame) templ.Component {
		home.frame = f
		if home.recent != nil {
			once := oncePerJob(f, home.recent.events)
			home.recent.events = once[:min(len(once), recentEvents)]
		}
		return homePage(home)
	})
}

// oncePerJob returns the events without those that a job made, except the newest event of each job.
func oncePerJob(f frame, events []rolecall.Event) []rolecall.Event {
	seen := map[rolecall.JobID]bool{}
	return slices.DeleteFunc(events, func(e rolecall.Event) bool {
		job := f.jobOf(&e)
		if job == nil {
			return false
		}
		repeated := seen[job.ID]
		seen[job.ID] = true
		return repeated
	})
}

// atLeast returns the number as text. If the number is not exact, the text says "at least".
func atLeast(count int, exact bool) string {
	if exact {
		return thousands(count)
	}
	return msg("home.at-least", "Number", thousands(count))
}

// failedAddress returns the address of the list of failed sign-ins of the last 24 hours.
func (h homeView) failedAddress() string {
	return h.path("/events?" + url.Values{"type": {string(rolecall.EventSignInFailed)}, "from": {h.now.Add(-rolecall.SummaryRecent).String()}}.Encode())
}

// usersAddress returns the address of the list of active users with their second factors.
// It is empty if the caller may not read this list.
func (h homeView) usersAddress() string {
	if authz.ListUsers.Authorize(h.call.Principal) != nil {
		return ""
	}
	return h.path("/users?status=active&columns=factors")
}

// coverage returns the rounded percentage of active users with a second factor. It is 100 only for all
// users, and 0 only for none.
func coverage(f *rolecall.FactorCoverage) int {
	if f.Protected == 0 || f.Protected == f.Users {
		return 100 * min(f.Protected, 1)
	}
	return min(max((100*f.Protected+f.Users/2)/f.Users, 1), 99)
}

// expiring returns the number of roles and tokens that expire soon. exact is false if there
// can be more.
func (h homeView) expiring() (count int, exact bool) {
	exact = true
	if h.Roles != nil {
		count, exact = len(h.Roles.Items), !h.Roles.More
	}
	if h.Tokens != nil {
		count, exact = count+len(h.Tokens.Items), exact && !h.Tokens.More
	}
	return count, exact
}

// The sizes of the activity chart, in units of its SVG.
const (
	chartWidth  = 600
	chartHeight = 120
	barWidth    = chartWidth / rolecall.SummaryDays
)

// bar is the bar of one day in the activity chart.
type bar struct {
	directory.DayActivity
	x, height int
	title     string // the date and the number of events
	address   string // the address of the list of the day's events
}

// bars returns the bars of the activity chart. The bar of the day with the most events has
// the full height, and each day with an event has a visible bar.
func (h homeView) bars() []bar {
	most := 1
	for _, d := range h.Activity {
		most = max(most, d.Events)
	}
	bars := make([]bar, len(h.Activity))
	for i, d := range h.Activity {
		next := d.Date
		if day, err := time.Parse(time.DateOnly, d.Date); err == nil {
			next = day.AddDate(0, 0, 1).Format(time.DateOnly)
		}
		height := chartHeight * d.Events / most
		if d.Events > 0 {
			height = max(height, 2)
		}
		query := url.Values{"from": {d.Date}, "to": {next}, fieldTimeZone: {h.zone.String()}}
		bars[i] = bar{
			DayActivity: d, x: i * barWidth, height: height, address: h.path("/events?" + query.Encode()),
			title: msg("home.day", "Day", h.dayName(i), "Number", atLeast(d.Events, d.Exact)),
		}
	}
	return bars
}

// most returns the number of events of the highest bar of the chart, in words.
func (h homeView) most() string {
	most := slices.MaxFunc(h.Activity, func(a, b directory.DayActivity) int { return cmp.Compare(a.Events, b.Events) })
	return msg("home.most", "Number", atLeast(most.Events, most.Exact))
}

// activityTotal returns the number of events of all days of the chart.
func (h homeView) activityTotal() string {
	total, exact := 0, true
	for _, d := range h.Activity {
		total, exact = total+d.Events, exact && d.Exact
	}
	return atLeast(total, exact)
}

// tokenAddress returns the address of the page with the API tokens of the token's holder.
func (h homeView) tokenAddress(t *rolecall.APIToken) string {
	if t.ServiceAccountID.IsZero() {
		return userAddress(h.pageContext, t.UserID, "")
	}
	return h.path("/service-accounts/" + t.ServiceAccountID.String())
}

// tokenHolder returns the id of the user or service account that has the token.
func (h homeView) tokenHolder(t *rolecall.APIToken) rolecall.UserID {
	if t.ServiceAccountID.IsZero() {
		return t.UserID
	}
	return rolecall.UserID(t.ServiceAccountID)
}

func (h homeView) roleLink(r rolecall.ExpiringRole) templ.Component {
	return link(h.path("/roles/"+r.RoleID.String()), r.RoleName)
}

// factorsNote says in words how many active users the percentage refers to, and how many of
// them have a second factor.
func (h homeView) factorsNote() string {
	f := h.Factors
	if !f.Exact {
		return msg("home.factors-first", "Protected", thousands(f.Protected), "Users", thousands(f.Users), "Read", thousands(rolecall.MaxScan))
	}
	return msg("home.factors-note", "Protected", thousands(f.Protected), "Count", f.Users)
}

// dayName returns the date of the day with the index i in the chart.
func (h homeView) dayName(i int) string {
	day, err := time.Parse(time.DateOnly, h.Activity[i].Date)
	if err != nil {
		return h.Activity[i].Date
	}
	return day.Format(msg("time.date"))
}
