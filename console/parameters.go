package console

import (
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/timezone"
	"github.com/rolecall/rolecall/internal/web"
)

// parameters are the values from the path and the query of an address.
type parameters struct {
	userID    rolecall.UserID // of the path, like the other ids
	roleID    rolecall.RoleID
	accountID rolecall.ServiceAccountID
	groupID   rolecall.GroupID
	tokenID   rolecall.APITokenID // or the id of a token of a directory
	sessionID rolecall.SessionID
	passkeyID []byte
	jobID     rolecall.JobID
	webhookID rolecall.WebhookID
	eventID   rolecall.EventID

	connectionID rolecall.ConnectionID
	directoryID  rolecall.DirectoryID
	identityID   rolecall.IdentityID

	result string

	limit  int // of the query, like all further fields
	cursor string
	after  *rolecall.Position // the position in the cursor
	sort   string             // the member to sort by; empty for the default order
	desc   bool
	words  []string
	email  string
	rolecall.TextFilter
	department string
	status     string
	holds      rolecall.RoleID  // only users with this role
	memberOf   rolecall.GroupID // only members of this group
	roleKey    string
	permission rolecall.Permission // zero unless the address names a known permission without wildcards
	count      bool
	include    directory.Include // the additional columns of the list of users
	view       string            // the name of the saved view
	eventType  string
	actor      rolecall.AnyID
	subject    rolecall.AnyID
	dayZone    *time.Location // the time zone of the days in from and to
	from, to   rolecall.Time
}

// pathReader reads one parameter of a path. It reports whether the text is valid.
type pathReader struct {
	name string
	read func(p *parameters, text string) bool
}

// readersOf returns the readers of the parameters that the path names.
func readersOf(path string) (readers []pathReader) {
	for _, known := range []struct {
		part, name string
		read       func(p *parameters, text string) bool
	}{
		{"/users/{id}", "id", func(p *parameters, text string) bool { return readID(&p.userID, text) }},
		{"/roles/{id}", "id", func(p *parameters, text string) bool { return readID(&p.roleID, text) }},
		{"/service-accounts/{id}", "id", func(p *parameters, text string) bool { return readID(&p.accountID, text) }},
		{"/groups/{id}", "id", func(p *parameters, text string) bool { return readID(&p.groupID, text) }},
		{"/{userId}", "userId", func(p *parameters, text string) bool { return readID(&p.userID, text) }},
		{"/jobs/{id}", "id", func(p *parameters, text string) bool { return readID(&p.jobID, text) }},
		{"/webhooks/{id}", "id", func(p *parameters, text string) bool { return readID(&p.webhookID, text) }},
		{"/connections/{id}", "id", func(p *parameters, text string) bool { return readID(&p.connectionID, text) }},
		{"/directories/{id}", "id", func(p *parameters, text string) bool { return readID(&p.directoryID, text) }},
		{"/{identityId}", "identityId", func(p *parameters, text string) bool { return readID(&p.identityID, text) }},
		{"/{eventId}", "eventId", func(p *parameters, text string) bool { return readID(&p.eventID, text) }},
		{"/{roleId}", "roleId", func(p *parameters, text string) bool { return readID(&p.roleID, text) }},
		{"/{tokenId}", "tokenId", func(p *parameters, text string) bool { return readID(&p.tokenID, text) }},
		{"/{sessionId}", "sessionId", func(p *parameters, text string) bool { return readID(&p.sessionID, text) }},
		{"/{passkeyId}", "passkeyId", readPasskeyID},
	} {
		if strings.Contains(path, known.part) {
			readers = append(readers, pathReader{known.name, known.read})
		}
	}
	return readers
}

func readID[T any](into *rolecall.ID[T], text string) bool {
	id, err := rolecall.ParseID[T](text)
	*into = id
	return err == nil
}

// passkeyIDLength is the maximum length of the id of a passkey in an address, in
// characters.
const passkeyIDLength = 1364

func readPasskeyID(p *parameters, text string) bool {
	id, err := base64.RawURLEncoding.Strict().DecodeString(text)
	p.passkeyID = id
	return err == nil && len(text) <= passkeyIDLength && len(id) > 0
}

// readPath reads the parameters of the path, and reports whether all are valid.
func (v *pageContext) readPath() bool {
	for _, reader := range v.page.pathReaders {
		if !reader.read(&v.parameters, v.request.PathValue(reader.name)) {
			return false
		}
	}
	return true
}

// parameter is a parameter of the query. read returns the code and the detail of a field
// error, or two empty strings if the value is valid.
type parameter struct {
	name string
	read func(p *parameters, text string) (code, detail string)
}

// The parameters of the lists.
var (
	pageParameters = []parameter{{"limit", readLimit}, {"cursor", readCursor}}

	userQuery = slices.Concat([]parameter{
		{"sort", readSort("name", "email", "createdAt")}, {"q", readSearch},
		{"email", readText(rolecall.EmailMax, func(p *parameters) *string { return &p.email })},
		departmentParameter,
		{"count", readCount},
	}, textParameters(), pageParameters)
	usersQuery = append([]parameter{
		{"status", readChoice([]string{"pending", "active", "suspended", "deleted"}, "problem.status-or-deleted", func(p *parameters) *string { return &p.status })},
		{"role", readFilterID(func(p *parameters) *rolecall.RoleID { return &p.holds })}, groupParameter,
		{fieldColumns, readColumns}, viewParameter,
	}, userQuery...)
	holdersQuery = append([]parameter{
		{"status", readChoice([]string{"pending", "active", "suspended"}, "problem.status", func(p *parameters) *string { return &p.status })},
	}, userQuery...)
	rolesQuery = append([]parameter{
		{"sort", readSort("name", "createdAt")}, {"q", readSearch}, {"count", readCount},
		{"key", readText(63, func(p *parameters) *string { return &p.roleKey })}, viewParameter,
	}, pageParameters...)
	groupsQuery          = append([]parameter{{"sort", readSort("name", "createdAt")}, {"q", readSearch}, {"count", readCount}, viewParameter}, pageParameters...)
	groupParameter       = parameter{"group", readFilterID(func(p *parameters) *rolecall.GroupID { return &p.memberOf })}
	viewParameter        = parameter{fieldView, readText(viewNameMax, func(p *parameters) *string { return &p.view })}
	departmentParameter  = parameter{"department", readText(rolecall.DepartmentMax, func(p *parameters) *string { return &p.department })}
	accessQuery          = append([]parameter{{"permission", readPermission}, departmentParameter}, pageParameters...)
	userAccessQuery      = append([]parameter{departmentParameter}, pageParameters...)
	serviceAccountsQuery = append([]parameter{{"sort", readSort("name", "createdAt")}, {"q", readSearch}, {"count", readCount}, viewParameter}, pageParameters...)
	userEventsQuery      = append([]parameter{
		{"type", readChoice(eventTypes(), "problem.event-type", func(p *parameters) *string { return &p.eventType })},
		{"actor", readFilterID(func(p *parameters) *rolecall.AnyID { return &p.actor })},
		{"from", readTime(func(p *parameters) *rolecall.Time { return &p.from })},
		{"to", readTime(func(p *parameters) *rolecall.Time { return &p.to })},
		{fieldTimeZone, readTimeZone},
	}, pageParameters...)
	eventsQuery = append([]parameter{viewParameter, {"subject", readFilterID(func(p *parameters) *rolecall.AnyID { return &p.subject })}}, userEventsQuery...)
)

// textParameters returns a parameter for each member of rolecall.TextFilter.
func textParameters() (list []parameter) {
	for m := range rolecall.FilterableTexts.All() {
		list = append(list, parameter{m.String(), readText(m.LengthMax(), func(p *parameters) *string { return m.OfFilter(&p.TextFilter) })})
	}
	return list
}

func eventTypes() (types []string) {
	for _, d := range rolecall.EventDescriptions() {
		types = append(types, string(d.Type))
	}
	return types
}

// readQuery reads the query parameters that the page knows. It ignores empty parameters,
// because browsers send them for empty fields of a form.
func (v *pageContext) readQuery() {
	v.limit, v.dayZone = rolecall.DefaultLimit, v.zone
	if zone, ok := timezone.Load(v.request.URL.Query().Get(fieldTimeZone)); ok {
		v.dayZone = zone // before the days in the query are read
	}
	v.readParameters(v.page.query, v.request.URL.RawQuery)
}

// readParameters reads the known parameters of the query, and adds the field errors.
func (v *pageContext) readParameters(known []parameter, query string) {
	var seen uint32
	var unknown rolecall.FieldErrors
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		text, textErr := url.QueryUnescape(text)
		i := slices.IndexFunc(known, func(p parameter) bool { return p.name == name })
		if i < 0 {
			continue
		}
		fault := rolecall.FieldError{Parameter: name}
		switch {
		case text == "":
		case nameErr != nil || textErr != nil || !utf8.ValidString(text):
			fault.Code, fault.Detail = "encoding", msg("problem.encoding")
		case seen&(1<<i) != 0:
			fault.Code, fault.Detail = "repeated", msg("problem.repeated")
		default:
			fault.Code, fault.Detail = known[i].read(&v.parameters, text)
		}
		seen |= 1 << i
		switch fault.Code {
		case "":
		case codeUnknownValue:
			unknown = append(unknown, fault)
		default:
			v.faults = append(v.faults, fault)
		}
	}
	v.faults = append(v.faults, unknown...)
}

const codeUnknownValue = "unknown-value"

// readChoice returns a parser that accepts only the given values. key is the message key of
// the error for all other values.
func readChoice(values []string, key string, into func(*parameters) *string) func(*parameters, string) (string, string) {
	return func(p *parameters, text string) (string, string) {
		if !slices.Contains(values, text) {
			return codeUnknownValue, msg(key)
		}
		*into(p) = text
		return "", ""
	}
}

// readPermission reads a permission. A text that is not a permission is valid too: it
// searches for permissions.
func readPermission(p *parameters, text string) (code, detail string) {
	permission, err := rolecall.ParsePermission(text)
	if err == nil && permission.Known() && !permission.HasWildcard() {
		p.permission = permission
	}
	return "", ""
}

// readFilterID returns a parser of ids. It refuses the zero UUID, because a zero id would
// select everything.
func readFilterID[T any](into func(*parameters) *rolecall.ID[T]) func(*parameters, string) (string, string) {
	return func(p *parameters, text string) (string, string) {
		id, err := rolecall.ParseID[T](text)
		switch {
		case err != nil:
			return "format", msg("problem.uuid")
		case id.IsZero():
			return "format", msg("problem.nil-uuid")
		}
		*into(p) = id
		return "", ""
	}
}

func readText(longest int, into func(*parameters) *string) func(*parameters, string) (string, string) {
	return func(p *parameters, text string) (code, detail string) {
		*into(p) = text
		return rolecall.CheckText(text, 1, longest)
	}
}

// readTime returns a parser of timestamps and days. A day becomes its first moment.
func readTime(into func(*parameters) *rolecall.Time) func(*parameters, string) (string, string) {
	return func(p *parameters, text string) (string, string) {
		if len(text) == len(time.DateOnly) {
			day, err := time.Parse(time.DateOnly, text)
			if err != nil {
				return "format", msg("problem.time")
			}
			text = rolecall.TimeOf(timezone.StartOfDay(p.dayZone, day)).String()
		}
		if err := into(p).UnmarshalText([]byte(text)); err != nil {
			return "format", msg("problem.time")
		}
		return "", ""
	}
}

// readTimeZone accepts the names of time zones that readQuery could load.
func readTimeZone(_ *parameters, text string) (code, detail string) {
	if _, ok := timezone.Load(text); !ok {
		return "format", msg("problem.time-zone")
	}
	return "", ""
}

func readCount(p *parameters, text string) (code, detail string) {
	if text != "true" && text != "false" {
		return "format", msg("problem.boolean")
	}
	p.count = text == "true"
	return "", ""
}

func readLimit(p *parameters, text string) (code, detail string) {
	n, err := strconv.ParseUint(text, 10, 63)
	if errors.Is(err, strconv.ErrRange) {
		n, err = rolecall.MaxLimit, nil
	}
	switch {
	case err != nil:
		return "format", msg("problem.limit")
	case n < 1:
		return "range", msg("problem.limit")
	}
	p.limit = int(min(n, rolecall.MaxLimit))
	return "", ""
}

func readCursor(p *parameters, text string) (code, detail string) {
	p.cursor = text
	return "", ""
}

func readSort(members ...string) func(*parameters, string) (string, string) {
	return func(p *parameters, text string) (code, detail string) {
		member, isDesc := strings.CutPrefix(text, "-")
		if !slices.Contains(members, member) {
			return "format", msg("problem.sort")
		}
		p.sort, p.desc = member, isDesc
		return "", ""
	}
}

const (
	searchLength = 200
	searchWords  = 8
)

func readSearch(p *parameters, text string) (code, detail string) {
	if utf8.RuneCountInString(text) > searchLength {
		return "length", msg("problem.search-length")
	}
	p.words = rolecall.Words(text)
	switch {
	case len(p.words) == 0:
		return "no-word", msg("problem.search-empty")
	case len(p.words) > searchWords:
		return "too-many", msg("problem.search-words")
	}
	return "", ""
}

// keyLength is the maximum length of an idempotency key.
const keyLength = 255

// checkKey adds a field error if the form's idempotency key is missing or invalid.
func (v *pageContext) checkKey() {
	if !v.page.needsKey {
		return
	}
	key := v.form.Get(fieldKey)
	fault := rolecall.FieldError{Header: fieldKey, Detail: msg("problem.idempotency-key")}
	switch {
	case len(key) < 1 || len(key) > keyLength:
		fault.Code = "length"
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		fault.Code = "format"
	default:
		return
	}
	v.faults = append(v.faults, fault)
}

// userListing returns the query of a list of users.
func (v *pageContext) userListing() directory.UserListing {
	p := &v.parameters
	l := directory.UserListing{
		TextFilter: p.TextFilter, Email: p.email, Department: p.department, Status: p.status, Role: p.holds, Group: p.memberOf,
		Words: p.words, Desc: p.desc, After: p.after, Limit: p.limit, Count: p.count, Include: p.include,
	}
	switch p.sort {
	case "name":
		l.Sort = rolecall.SortByName
	case "email":
		l.Sort = rolecall.SortByEmail
	case "createdAt":
		l.ByCreation = true
	}
	return l
}

// roleListing returns the query of a list of roles.
func (v *pageContext) roleListing() directory.RoleListing {
	p := &v.parameters
	return directory.RoleListing{Key: p.roleKey, Words: p.words, ByName: p.sort == "name", Desc: p.desc, After: p.after, Limit: p.limit, Count: p.count}
}

// serviceAccountQuery returns the query of a list of service accounts.
func (v *pageContext) serviceAccountQuery() rolecall.ServiceAccountQuery {
	p := &v.parameters
	return rolecall.ServiceAccountQuery{Words: p.words, ByName: p.sort == "name", Desc: p.desc, After: p.after, Limit: p.limit, Count: p.count}
}

// groupQuery returns the query of a list of groups.
func (v *pageContext) groupQuery() rolecall.GroupQuery {
	p := &v.parameters
	return rolecall.GroupQuery{Words: p.words, ByName: p.sort == "name", Desc: p.desc, After: p.after, Limit: p.limit, Count: p.count}
}

// eventListing returns the query of a list of events.
func (v *pageContext) eventListing() directory.EventListing {
	p := &v.parameters
	return directory.EventListing{Type: p.eventType, Actor: p.actor, Subject: p.subject, From: p.from, To: p.to, After: p.after, Limit: p.limit}
}

// sealCursor returns the cursor of the next page. The cursor is valid only for this caller
// and this list.
func (v *pageContext) sealCursor(at *rolecall.Position) string {
	return web.SealCursor(v.console.access.Keys, at, v.listDigest())
}

// openCursor verifies the cursor and sets v.after to its position. If the cursor is
// invalid, it adds a field error.
func (v *pageContext) openCursor() {
	at, ok := web.OpenCursor(v.console.access.Keys, v.cursor, v.listDigest())
	if !ok {
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "cursor", Code: "cursor", Detail: web.CursorDetail})
		return
	}
	v.after = at
}

// listDigest returns a hash of the list, its filters, its order and the caller. Cursors
// contain it.
func (v *pageContext) listDigest() []byte {
	p, principal := &v.parameters, v.call.Principal
	order := p.sort
	if p.desc {
		order = "-" + order
	}
	parts := [][]byte{
		principal.Tenant.ID[:], principal.User.ID[:], []byte(v.page.label()), p.userID[:], p.roleID[:], p.accountID[:], p.groupID[:], p.jobID[:],
		[]byte(order), []byte(p.email),
	}
	for m := range rolecall.FilterableTexts.All() {
		parts = append(parts, []byte(*m.OfFilter(&p.TextFilter)))
	}
	parts = append(parts, []byte(p.department), []byte(p.status),
		p.holds[:], p.memberOf[:], []byte(p.roleKey), []byte(p.permission.String()), []byte(strings.Join(p.words, " ")),
		[]byte(p.eventType), p.actor[:], p.subject[:], []byte(p.from.String()), []byte(p.to.String()))
	return secret.Digest(parts...)
}

// parameterName returns the name of the parameter in error messages.
func parameterName(parameter string) string {
	switch parameter {
	case "q":
		return msg("problem.search")
	case "cursor":
		return msg("problem.page")
	}
	return msg("problem.parameter", "Parameter", parameter)
}

// suggestedBytes is the maximum total length of the suggestions for a field, in bytes.
// Without a limit, the suggestions could become longer than the page.
const suggestedBytes = 1 << 10

// suggested returns the first words, as many as fit into suggestedBytes.
func suggested(words []string) []string {
	size := 0
	for i, word := range words {
		if size += len(word); size > suggestedBytes {
			return words[:i]
		}
	}
	return words
}
