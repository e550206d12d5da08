package httpapi

import (
	"net/url"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

const cursorDetail = web.CursorDetail

// sealCursor returns the position as an opaque text that only this user can use,
// and only for this list.
func (x *exchange) sealCursor(at *rolecall.Position) string {
	return web.SealCursor(x.server.service.Keys(), at, x.walk())
}

// openCursor sets the position that the cursor of the request stands for.
func (x *exchange) openCursor(faults *rolecall.Faults) {
	at, ok := web.OpenCursor(x.server.service.Keys(), x.in.cursor, x.walk())
	if !ok {
		*faults = append(*faults, cursor.fault("cursor", cursorDetail))
		return
	}
	x.in.after = at
}

// walk identifies whose list in what order a cursor belongs to.
func (x *exchange) walk() []byte {
	in, p := &x.in, x.call.Principal
	if x.route.endpoint != nil {
		return secret.Digest(p.Tenant.ID[:], p.User.ID[:], []byte(x.route.id), []byte(x.request.URL.Path), []byte(x.filters()))
	}
	order := in.sort.by
	if in.sort.desc {
		order = "-" + order
	}
	return secret.Digest(
		p.Tenant.ID[:], p.User.ID[:], []byte(x.route.id), in.role[:], in.account[:],
		[]byte(order), []byte(in.email), []byte(in.externalID), []byte(in.department), []byte(in.status),
		in.holds[:], []byte(in.roleKey), []byte(strings.Join(in.words, " ")),
		in.user[:], []byte(in.eventType), in.actor[:], in.subject[:], []byte(in.from.String()), []byte(in.to.String()),
	)
}

// filters returns the filters and the order of the query, in one spelling.
func (x *exchange) filters() string {
	query := x.request.URL.Query()
	for _, name := range []string{"cursor", "limit", "count"} {
		query.Del(name)
	}
	return query.Encode()
}

// link returns the Link header that leads to the next page: the same query with
// the new cursor.
func (x *exchange) link(next string) string {
	var b strings.Builder
	b.WriteByte('<')
	b.WriteString(x.request.URL.EscapedPath())
	b.WriteString("?cursor=")
	b.WriteString(url.QueryEscape(next))
	for pair := range strings.SplitSeq(x.request.URL.RawQuery, "&") {
		name, text, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		text, textErr := url.QueryUnescape(text)
		if name == "" || name == cursor.name || nameErr != nil || textErr != nil {
			continue
		}
		b.WriteByte('&')
		b.WriteString(url.QueryEscape(name))
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(text))
	}
	b.WriteString(`>; rel="next"`)
	return b.String()
}
