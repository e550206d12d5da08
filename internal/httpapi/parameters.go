package httpapi

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
)

// The parameters that operations take.
var (
	userID = &parameter{in: inPath, name: "id", about: "The user.", required: true, schema: uuid(),
		read: func(in *input, text string) (string, string) { return readID(&in.user, text) }}
	roleID = &parameter{in: inPath, name: "id", about: "The role.", required: true, schema: uuid(),
		read: func(in *input, text string) (string, string) { return readID(&in.role, text) }}
	passkeyID      = &parameter{in: inPath, name: "passkeyId", about: "The passkey.", required: true, schema: text(1, passkeyIDLength), read: readPasskeyID}
	assignedRoleID = &parameter{in: inPath, name: "roleId", about: "The role that is held.", required: true, schema: uuid(), read: roleID.read}
	sessionID      = &parameter{in: inPath, name: "sessionId", about: "The session.", required: true, schema: uuid(),
		read: func(in *input, text string) (string, string) { return readID(&in.session, text) }}

	namedTenant = &parameter{in: inPath, name: "name", about: "The tenant.", required: true, schema: tenantNameSchema(),
		read: func(in *input, text string) (string, string) {
			if !rolecall.IsTenantName(text) {
				return "format", tenantNameDetail
			}
			in.tenant = text
			return "", ""
		}}

	serviceAccountID = &parameter{in: inPath, name: "id", about: "The service account.", required: true, schema: uuid(),
		read: func(in *input, text string) (string, string) { return readID(&in.account, text) }}
	tokenID = &parameter{in: inPath, name: "tokenId", about: "The API token.", required: true, schema: uuid(),
		read: func(in *input, text string) (string, string) { return readID(&in.token, text) }}

	idempotencyKey = &parameter{in: inHeader, name: "idempotency-key", key: "Idempotency-Key", required: true, schema: text(1, keyLength),
		about: "Makes the request safe to repeat: with the same key it has one effect and one answer, for a day. Visible ASCII; the quoted structured-field form is the same key.",
		read:  readKey}
	ifMatch = &parameter{in: inHeader, name: "if-match", key: "If-Match", schema: anyText(),
		about: "Entity tags, or *. The change is made only if one of them is the current one; else 412.",
		read:  func(in *input, text string) (string, string) { return readTags(&in.ifMatch, text) }}
	requiredIfMatch = &parameter{in: inHeader, name: "if-match", key: "If-Match", required: true, schema: anyText(),
		about: "Entity tags, or *. The change is made only if one of them is the current one; else 412. Without it the answer is 428.",
		read:  ifMatch.read}
	ifNoneMatch = &parameter{in: inHeader, name: "if-none-match", key: "If-None-Match", schema: anyText(),
		about: "Entity tags, or *. If one of them is the current one the answer is 304.",
		read:  func(in *input, text string) (string, string) { return readTags(&in.ifNoneMatch, text) }}

	limit = &parameter{in: inQuery, name: "limit", schema: &huma.Schema{Type: "integer", Minimum: new(1.0), Default: rolecall.DefaultLimit},
		about: "How many items a page has at most. Values above 200 are treated as 200. A page may be shorter, even empty, while nextCursor is not null.",
		read:  readLimit}
	cursor = &parameter{in: inQuery, name: "cursor", schema: anyText(),
		about: "The nextCursor of the page before. It holds for the same user, filters and order.",
		read:  readCursor}
	count = &parameter{in: inQuery, name: "count", schema: boolean(false),
		about: "Whether to answer the total, exact up to 10,000.",
		read:  func(in *input, text string) (string, string) { return readBool(&in.count, text) }}
	sortUsers = &parameter{in: inQuery, name: "sort", schema: enum("name", "-name", "email", "-email", "createdAt", "-createdAt"),
		about: "The order; - reverses it. Without it users come in the order of their creation.",
		read:  readSort("name", "email", "createdAt")}
	sortRoles = &parameter{in: inQuery, name: "sort", schema: enum("name", "-name", "createdAt", "-createdAt"),
		about: "The order; - reverses it. Without it roles come in the order of their creation.",
		read:  readSort("name", "createdAt")}
	sortServiceAccounts = &parameter{in: inQuery, name: "sort", schema: sortRoles.schema,
		about: "The order; - reverses it. Without it service accounts come in the order of their creation.",
		read:  sortRoles.read}
	search = &parameter{in: inQuery, name: "q", schema: text(1, searchLength),
		about: "Up to 8 words, each of which must begin a word of the name or, for users, of the address.",
		read:  readSearch}
	filterEmail = &parameter{in: inQuery, name: "email", schema: text(1, rolecall.EmailMax), about: "Only the user of this address.",
		read: func(in *input, text string) (string, string) { return readText(&in.email, text, rolecall.EmailMax) }}
	filterExternalID = &parameter{in: inQuery, name: "externalId", schema: text(1, rolecall.ExternalIDMax), about: "Only the user of this external id.",
		read: func(in *input, text string) (string, string) {
			return readText(&in.externalID, text, rolecall.ExternalIDMax)
		}}
	filterDepartment = &parameter{in: inQuery, name: "department", schema: text(1, rolecall.DepartmentMax), about: "Only users of this department, compared without regard to case and marks.",
		read: func(in *input, text string) (string, string) {
			return readText(&in.department, text, rolecall.DepartmentMax)
		}}
	filterStatus = &parameter{in: inQuery, name: "status", values: append(userStatuses[:len(userStatuses):len(userStatuses)], string(rolecall.UserDeleted)),
		about:   "Only users of this status. deleted lists who can still be restored, the last deleted first; it needs users:restore and goes with limit and cursor only.",
		unknown: "must be pending, active, suspended or deleted",
		read:    readStatus}
	filterHolderStatus = &parameter{in: inQuery, name: "status", values: userStatuses,
		about: "Only users of this status.", unknown: "must be pending, active or suspended", read: readStatus}
	filterTenantStatus = &parameter{in: inQuery, name: "status", values: []string{string(rolecall.TenantActive), string(rolecall.TenantSuspended), string(rolecall.TenantDeleted)},
		about:   "Only tenants of this status. deleted lists those that can still be restored. Without it all tenants that are not deleted are listed.",
		unknown: "must be active, suspended or deleted", read: readStatus}
	filterRole = &parameter{in: inQuery, name: "role", schema: uuid(), about: "Only users who hold this role. Needs roles:read.",
		read: func(in *input, text string) (string, string) { return readFilterID(&in.holds, text) }}
	filterKey = &parameter{in: inQuery, name: "key", schema: text(1, 63), about: "Only the role of this key.",
		read: func(in *input, text string) (string, string) { return readText(&in.roleKey, text, 63) }}
	force = &parameter{in: inQuery, name: "force", schema: boolean(false),
		about: "Whether to take the role from everybody who holds it first.",
		read:  func(in *input, text string) (string, string) { return readBool(&in.force, text) }}
	includeExpired = &parameter{in: inQuery, name: "includeExpired", schema: boolean(false),
		about: "Whether to list the assignments that have expired too, after the others, the last expired first.",
		read:  func(in *input, text string) (string, string) { return readBool(&in.expired, text) }}
	touch = &parameter{in: inQuery, name: "touch", schema: boolean(true),
		about: "Whether this counts as a use of the session.",
		read: func(in *input, text string) (string, string) {
			touched := true
			code, detail := readBool(&touched, text)
			in.untouched = !touched
			return code, detail
		}}
)

// The parameters of events and of checks.
var (
	checkedPermission = &parameter{in: inQuery, name: "permission", required: true, schema: text(1, rolecall.PermissionLength),
		about: "The permission that is asked for, without wildcards, such as shop/invoices:approve.",
		read:  readPermission}
	checkedDepartment = &parameter{in: inQuery, name: "department", schema: text(1, rolecall.DepartmentMax),
		about: "The department of the user or thing that it is asked for; without it the whole tenant.",
		read:  filterDepartment.read}
	filterType = &parameter{in: inQuery, name: "type", values: eventTypes(),
		about:   "Only events of this type, such as user.updated. Later versions add types.",
		unknown: "must be a known type of event, such as user.updated; /docs/events lists all types",
		read: func(in *input, text string) (string, string) {
			in.eventType = text
			return "", ""
		}}
	filterActor = &parameter{in: inQuery, name: "actor", schema: uuid(), about: "Only what this user did.",
		read: func(in *input, text string) (string, string) { return readFilterID(&in.actor, text) }}
	filterSubject = &parameter{in: inQuery, name: "subject", schema: uuid(), about: "Only what was done to this user, role or tenant.",
		read: func(in *input, text string) (string, string) { return readFilterID(&in.subject, text) }}
	filterFrom = &parameter{in: inQuery, name: "from", schema: moment(), about: "Only what happened at this moment or later.",
		read: func(in *input, text string) (string, string) { return readMoment(&in.from, text) }}
	filterTo = &parameter{in: inQuery, name: "to", schema: moment(), about: "Only what happened before this moment.",
		read: func(in *input, text string) (string, string) { return readMoment(&in.to, text) }}
)

// userStatuses are those of living users.
var userStatuses = []string{string(rolecall.UserPending), string(rolecall.UserActive), string(rolecall.UserSuspended)}

func readStatus(in *input, text string) (code, detail string) {
	in.status = text
	return "", ""
}

func eventTypes() (types []string) {
	for _, d := range rolecall.EventDescriptions() {
		types = append(types, string(d.Type))
	}
	return types
}

// eventFilters are the parameters of every list of events.
var eventFilters = []*parameter{limit, cursor, filterType, filterActor, filterFrom, filterTo}

func readMoment(into *rolecall.Time, text string) (code, detail string) {
	if err := into.UnmarshalText([]byte(text)); err != nil {
		return "format", "must be a moment in RFC 3339, such as 2030-01-31T12:00:00Z"
	}
	return "", ""
}

func readPermission(in *input, text string) (code, detail string) {
	in.permission, code, detail = askedPermission(text)
	return code, detail
}

// askedPermission reads a permission to check. Code and detail say what is wrong with
// it; both are empty if nothing is.
func askedPermission(text string) (p rolecall.Permission, code, detail string) {
	p, err := rolecall.ParsePermission(text)
	switch {
	case err != nil:
		return p, "format", err.Error()
	case p.Application == "*" || p.Resource == "*" || p.Field == "*" || p.Action == "*":
		return p, "wildcard", "must name one permission, without wildcards"
	case !p.Known():
		return p, "unknown-permission", "is not one of Rolecall's own permissions; those of an application are written application/resource:action"
	}
	return p, "", ""
}

// userFilters are the parameters of every list of users.
var userFilters = []*parameter{limit, cursor, sortUsers, search, filterEmail, filterExternalID, filterDepartment, count}

const (
	keyLength    = 255
	searchLength = 200
	searchWords  = 8
)

func readID[T any](into *rolecall.ID[T], text string) (code, detail string) {
	id, err := rolecall.ParseID[T](text)
	if err != nil {
		return "format", "must be a UUID"
	}
	*into = id
	return "", ""
}

// readFilterID refuses the nil UUID, which is nobody's and would filter nothing.
func readFilterID[T any](into *rolecall.ID[T], text string) (code, detail string) {
	if code, detail := readID(into, text); code != "" || !into.IsZero() {
		return code, detail
	}
	return "format", "must not be the nil UUID"
}

func readText(into *string, text string, most int) (code, detail string) {
	code, detail = rolecall.CheckText(text, 1, most)
	*into = text
	return code, detail
}

func readBool(into *bool, text string) (code, detail string) {
	switch text {
	case "true", "false":
		*into = text == "true"
		return "", ""
	}
	return "format", "must be true or false"
}

func readLimit(in *input, text string) (code, detail string) {
	const what = "must be a whole number from 1 on"
	n, err := strconv.ParseUint(text, 10, 63)
	if text != "" && errors.Is(err, strconv.ErrSyntax) {
		whole, ok := wholeNumber(text)
		if !ok || whole < 0 {
			return "format", what
		}
		n = uint64(whole)
	}
	if n < 1 {
		return "range", what
	}
	in.limit = int(min(n, rolecall.MaxLimit))
	return "", ""
}

func readCursor(in *input, text string) (code, detail string) {
	if text == "" {
		return "cursor", cursorDetail
	}
	in.cursor = text
	return "", ""
}

func readSort(members ...string) func(*input, string) (string, string) {
	return func(in *input, text string) (code, detail string) {
		by, desc := text, false
		if text != "" && text[0] == '-' {
			by, desc = text[1:], true
		}
		for _, m := range members {
			if m == by {
				in.sort = order{by, desc}
				return "", ""
			}
		}
		return "format", "must be an order of this list, such as name or -name"
	}
}

func readSearch(in *input, text string) (code, detail string) {
	if n := utf8.RuneCountInString(text); n < 1 || n > searchLength {
		return "length", "must have 1 to 200 characters"
	}
	in.words = rolecall.Words(text)
	switch {
	case len(in.words) == 0:
		return "no-word", "must hold a letter or a digit"
	case len(in.words) > searchWords:
		return "too-many", "must hold at most 8 words"
	}
	return "", ""
}

// readKey reads an idempotency key, in the bare form or as a quoted string of a
// structured field (RFC 8941, 3.3.3): both are the same key.
func readKey(in *input, text string) (code, detail string) {
	const what = "must be 1 to 255 visible ASCII characters"
	key := text
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		unquoted := make([]byte, 0, len(text))
		quoted := text[1 : len(text)-1]
		for i := 0; i < len(quoted); i++ {
			if quoted[i] == '\\' {
				i++
				if i == len(quoted) || quoted[i] != '"' && quoted[i] != '\\' {
					return "format", what
				}
			} else if quoted[i] == '"' {
				return "format", what
			}
			unquoted = append(unquoted, quoted[i])
		}
		key = string(unquoted)
	}
	if len(key) < 1 || len(key) > keyLength {
		return "length", what
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return "format", what
		}
	}
	in.key = key
	return "", ""
}
