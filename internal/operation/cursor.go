package operation

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

const (
	cursorName   = "cursor"
	cursorDetail = web.CursorDetail
)

// openCursor decrypts the cursor and stores its position in cursor.At. If the cursor is invalid
// or was issued for another list, openCursor adds a field error to faults.
func (s *Runner) openCursor(op *Operation, r *http.Request, cursor *Cursor, faults *rolecall.FieldErrors) {
	if cursor.text == "" {
		return
	}
	at, ok := web.OpenCursor(s.Access.Keys, cursor.text, listDigest(op, r.URL, web.RequestOf(r).Principal))
	if !ok {
		*faults = append(*faults, rolecall.FieldError{Parameter: cursorName, Code: "cursor", Detail: cursorDetail})
		return
	}
	cursor.At = at
}

// listDigest returns a hash that identifies a list: its operation, path, filters and sort order,
// its tenant and its caller. A cursor is valid only for the list with the same hash.
func listDigest(op *Operation, u *url.URL, p *authz.Principal) []byte {
	return secret.Digest(p.Tenant.ID[:], p.User.ID[:], []byte(op.ID), []byte(u.Path), []byte(filtersOf(u)))
}

// filtersOf returns the filters and the sort order in the query of u. Queries that differ only in
// the order of their parameters have the same result.
func filtersOf(u *url.URL) string {
	query := u.Query()
	for _, name := range []string{cursorName, "limit", "count", "include"} {
		query.Del(name)
	}
	return query.Encode()
}

// nextLink returns the Link header with the URL of the next page. This URL is u with next as its
// cursor.
func nextLink(u *url.URL, next string) string {
	var b strings.Builder
	b.WriteByte('<')
	b.WriteString(u.EscapedPath())
	b.WriteString("?cursor=")
	b.WriteString(url.QueryEscape(next))
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, text, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		text, textErr := url.QueryUnescape(text)
		if name == "" || name == cursorName || nameErr != nil || textErr != nil {
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
