package console

import (
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/timezone"
)

// format returns the timestamp in the reader's time zone. key is the message key of the
// layout.
func (v *pageContext) format(t rolecall.Time, key string) string {
	local, layout := t.Std().In(v.zone), msg(key)
	if name, _ := local.Zone(); strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		layout = strings.Replace(layout, "MST", "UTC-07:00", 1) // the zone has no abbreviation, so show the offset
	}
	return local.Format(layout)
}

// datetime returns the value of the attribute datetime, in which HTML allows three digits after the second.
func datetime(t rolecall.Time) string { return t.Std().Format("2006-01-02T15:04:05.000Z") }

// minute returns the date and the time of day, without seconds, in the reader's time zone.
func (v *pageContext) minute(t rolecall.Time) string { return v.format(t, "time.minute") }

// exact returns the date and the time of day, with seconds, in the reader's time zone.
func (v *pageContext) exact(t rolecall.Time) string { return v.format(t, "time.exact") }

// fullTime returns the result of exact with the name of the time zone, and the timestamp in
// UTC.
func (v *pageContext) fullTime(t rolecall.Time) string {
	if v.zone == time.UTC {
		return v.exact(t)
	}
	return msg("time.full", "Exact", v.exact(t), "Zone", v.zone.String(), "UTC", t.Std().Format(msg("time.utc")))
}

// clock returns the time of day, rounded up to the next minute.
func (v *pageContext) clock(t rolecall.Time) string {
	return v.format(rolecall.TimeOf(t.Add(time.Minute-time.Microsecond).Std().Truncate(time.Minute)), "time.clock")
}

// ago returns the time between the timestamp and now in words, such as "3 minutes ago" or
// "in 2 hours". If it is a day or more, ago returns the date. Future timestamps are rounded
// to the nearest minute or hour.
func (v *pageContext) ago(now, t rolecall.Time) string {
	away := now.Sub(t)
	future := away < 0
	if future {
		away = nearest(-away)
	}
	count, unit := 0, ""
	switch {
	case away < time.Minute && !future:
		return msg("time.just-now")
	case away < time.Minute:
		return msg("time.soon")
	case away < time.Hour:
		count, unit = int(away/time.Minute), "minutes"
	case away < 24*time.Hour:
		count, unit = int(away/time.Hour), "hours"
	default:
		return v.format(t, "time.date")
	}
	if future {
		return msg("time.in-"+unit, "Count", count)
	}
	return msg("time.ago-"+unit, "Count", count)
}

// nearest rounds a duration to the unit in which it is displayed.
func nearest(d time.Duration) time.Duration {
	if d = d.Round(time.Minute); d < time.Hour {
		return d
	}
	return d.Round(time.Hour)
}

// inputLayout is the format in which browsers send a datetime-local field.
const inputLayout = "2006-01-02T15:04"

// dateValue is the value of a datetime-local field. saved is the RFC 3339 form of the
// stored timestamp, and empty if no timestamp is stored. It is needed because the field
// shows no seconds, and shows two different times in the same way when clocks are set back.
type dateValue struct{ text, saved string }

// savedDate returns the field value for a stored timestamp.
func (v *pageContext) savedDate(t rolecall.Time) dateValue {
	return dateValue{text: v.inputText(t), saved: t.String()}
}

// typedDate returns the field value that the user has submitted.
func (v *pageContext) typedDate(name string) dateValue {
	return dateValue{text: v.form.Get(name), saved: v.form.Get("was-" + name)}
}

// inputText returns the timestamp as the text of a datetime-local field.
func (v *pageContext) inputText(t rolecall.Time) string {
	return t.Std().In(v.formZone()).Format(inputLayout)
}

// formZone returns the time zone of the dates in the form: the reader's time zone when the
// page was loaded. The current time zone can differ.
func (v *pageContext) formZone() *time.Location {
	if zone, ok := timezone.Load(v.form.Get(fieldTimeZone)); ok {
		return zone
	}
	return v.zone
}

// readDate returns the timestamp in a datetime-local field. If the field is invalid, it
// adds a field error to faults and returns zero.
func (v *pageContext) readDate(name string, faults *rolecall.FieldErrors) rolecall.Time {
	field, zone := v.typedDate(name), v.formZone()
	if named := v.form.Get(fieldTimeZone); named != "" && named != zone.String() {
		faults.Add("/"+name, "format", msg("form.unknown-zone", "Zone", named))
		return 0
	}
	var saved rolecall.Time
	if field.saved != "" && saved.UnmarshalText([]byte(field.saved)) == nil && v.inputText(saved) == field.text {
		return saved
	}
	wall, err := time.Parse(inputLayout, field.text)
	if err != nil {
		faults.Add("/"+name, "format", msg("form.date"))
		return 0
	}
	moment, ok := timezone.MomentAt(zone, wall)
	switch {
	case !ok:
		faults.Add("/"+name, "format", msg("form.skipped-time", "Zone", zone.String()))
		return 0
	case moment.UTC().Year() > lastYear:
		faults.Add("/"+name, "format", msg("form.date"))
		return 0
	}
	return rolecall.TimeOf(moment)
}

// lastYear is the last year that RFC 3339 can represent, in UTC.
const lastYear = 9999

// filterDay returns the text of a date field for a timestamp in the query.
func (v *pageContext) filterDay(t rolecall.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().In(v.dayZone).Format(time.DateOnly)
}
