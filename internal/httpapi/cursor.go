package httpapi

import (
	"net/url"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

const (
	cursorPurpose = "cursor"
	cursorDetail  = "must be the nextCursor of a page of the same list, by the same user, with the same filters and order"
	cursorVersion = 1
)

// sealCursor returns the position as an opaque text that only this user can use,
// and only for this list.
func (x *exchange) sealCursor(at *rolecall.Position) string {
	return x.server.service.Keys().Seal(cursorPurpose, appendPosition(nil, at), x.walk())
}

// openCursor sets the position that the cursor of the request stands for.
func (x *exchange) openCursor(faults *rolecall.Faults) {
	plain, err := x.server.service.Keys().Open(cursorPurpose, x.in.cursor, x.walk())
	at, ok := parsePosition(plain)
	if err != nil || !ok {
		*faults = append(*faults, cursor.fault("cursor", cursorDetail))
		return
	}
	x.in.after = at
}

// appendPosition appends what a cursor holds: a version, an id and a sort key.
func appendPosition(b []byte, at *rolecall.Position) []byte {
	b = append(b, cursorVersion)
	b = append(b, at.ID[:]...)
	return append(b, at.Key...)
}

// parsePosition reads what appendPosition wrote.
func parsePosition(plain []byte) (*rolecall.Position, bool) {
	var at rolecall.Position
	if len(plain) < 1+len(at.ID) || plain[0] != cursorVersion {
		return nil, false
	}
	copy(at.ID[:], plain[1:])
	at.Key = string(plain[1+len(at.ID):])
	return &at, true
}

// walk identifies whose list in what order a cursor belongs to.
func (x *exchange) walk() []byte {
	in, p := &x.in, x.call.Principal
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
