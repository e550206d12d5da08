package console

import (
	"net/http"
	"time"

	"github.com/rolecall/rolecall/internal/timezone"
	"github.com/rolecall/rolecall/internal/web"
)

// zoneCookie is the name of the cookie in which console.js stores the browser's time zone.
const zoneCookie = "rolecall_time_zone"

// theme returns the theme that the reader has chosen, as web.ThemeOf does.
func (v *pageContext) theme() string { return web.ThemeOf(v.request) }

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
