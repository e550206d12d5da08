package console

import (
	"net/http"
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // for machines without time zone files
)

// zoneCookie is the cookie in which console.js keeps the name of the browser's time zone.
const zoneCookie = "rolecall_time_zone"

// zoneName matches the names of the IANA time zone database, such as America/Argentina/Ushuaia.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// Limits of time zones from requests. The database has about 600 names.
const (
	zoneNameMax = 64
	zonesMax    = 1000
)

// zoneCache holds the time zones that requests have named.
type zoneCache struct {
	mu     sync.Mutex
	loaded map[string]*time.Location
}

var timeZones zoneCache

// load returns the time zone with the name. It reports false for an unknown name, and for Local, the
// zone of the server.
func (z *zoneCache) load(name string) (*time.Location, bool) {
	if len(name) > zoneNameMax || !zoneName.MatchString(name) {
		return nil, false
	}
	z.mu.Lock()
	zone, ok := z.loaded[name]
	z.mu.Unlock()
	if ok {
		return zone, true
	}
	zone, err := time.LoadLocation(name)
	if err != nil || zone == time.Local {
		return nil, false
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.loaded == nil || len(z.loaded) >= zonesMax {
		z.loaded = map[string]*time.Location{}
	}
	z.loaded[name] = zone
	return zone, true
}

// zoneOf returns the reader's time zone: that of the cookie, or UTC. It reads one cookie only, because
// loading an unknown name takes 0.1 ms.
func zoneOf(r *http.Request) *time.Location {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil {
		return time.UTC
	}
	if zone, ok := timeZones.load(cookie.Value); ok {
		return zone
	}
	return time.UTC
}

// momentAt returns the moment at which clocks in the zone show the wall time, which is given in
// UTC. If they show it twice, it returns the earlier moment. It reports false if they skip it.
func momentAt(zone *time.Location, wall time.Time) (moment time.Time, ok bool) {
	for _, away := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // before and after a change of clocks
		_, offset := wall.Add(away).In(zone).Zone()
		moment = wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, got := moment.Zone(); got == offset {
			return moment, true
		}
	}
	return time.Time{}, false
}

// startOfDay returns the first moment of the day in the zone. The day is given as its midnight in
// UTC.
func startOfDay(zone *time.Location, day time.Time) time.Time {
	if moment, ok := momentAt(zone, day); ok {
		return moment
	}
	_, offset := day.Add(-24 * time.Hour).In(zone).Zone()
	start, _ := day.Add(-time.Duration(offset) * time.Second).In(zone).ZoneBounds() // clocks skip midnight
	return start
}
