package console

import (
	"net/http"
	"time"

	"github.com/rolecall/rolecall/internal/timezone"
)

// zoneCookie is the name of the cookie in which console.js stores the browser's time zone.
const zoneCookie = "rolecall_time_zone"

// themeCookie is the name of the cookie in which console.js stores the theme that the
// reader has chosen.
const themeCookie = "rolecall_theme"

// theme returns the theme that the reader has chosen: light or dark. It returns an empty
// text if the theme of the system applies.
func (v *pageContext) theme() string {
	cookie, err := v.request.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

// zoneOf returns the reader's time zone from the cookie, or UTC. If the request has several
// such cookies, it reads only one, because loading an unknown name takes 0.1 ms.
func zoneOf(r *http.Request) *time.Location {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil {
		return time.UTC
	}
	if zone, ok := timezone.Load(cookie.Value); ok {
		return zone
	}
	return time.UTC
}
