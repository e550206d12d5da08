// Package timezone loads time zones by the names that requests contain.
package timezone

import (
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // for machines without time zone files
)

// name matches the names of the IANA time zone database, such as America/Argentina/Ushuaia.
var name = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// The maximum length of a name in bytes, and the maximum number of cached time zones. The database
// has about 600 names.
const (
	nameMax  = 64
	zonesMax = 1000
)

// cache holds the time zones that requests have named.
type cache struct {
	mu     sync.Mutex
	loaded map[string]*time.Location
}

var zones cache

// Load returns the time zone with a name of the IANA time zone database, such as Europe/Berlin. It
// reports false for an unknown name, and for Local, the zone of the server.
func Load(name string) (*time.Location, bool) { return zones.load(name) }

func (c *cache) load(text string) (*time.Location, bool) {
	if len(text) > nameMax || !name.MatchString(text) {
		return nil, false
	}
	c.mu.Lock()
	zone, ok := c.loaded[text]
	c.mu.Unlock()
	if ok {
		return zone, true
	}
	zone, err := time.LoadLocation(text)
	if err != nil || zone == time.Local {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded == nil || len(c.loaded) >= zonesMax {
		c.loaded = map[string]*time.Location{}
	}
	c.loaded[text] = zone
	return zone, true
}

// StartOfDay returns the first moment of a day in the zone. day is midnight of the same date in
// UTC.
func StartOfDay(zone *time.Location, day time.Time) time.Time {
	if moment, ok := MomentAt(zone, day); ok {
		return moment
	}
	_, offset := day.Add(-24 * time.Hour).In(zone).Zone()
	start, _ := day.Add(-time.Duration(offset) * time.Second).In(zone).ZoneBounds() // clocks skip midnight of this day
	return start
}

// MomentAt returns the moment at which clocks in the zone show the date and time of wall. The zone
// of wall must be UTC. If clocks show this time twice, MomentAt returns the earlier moment. If
// clocks skip this time, MomentAt returns false.
func MomentAt(zone *time.Location, wall time.Time) (moment time.Time, ok bool) {
	for _, away := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // before and after a change of clocks
		_, offset := wall.Add(away).In(zone).Zone()
		moment = wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, got := moment.Zone(); got == offset {
			return moment, true
		}
	}
	return time.Time{}, false
}
