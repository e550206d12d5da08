package client

import (
	"slices"
	"strings"
)

// maxPermission is the maximum length of a permission, and maxPart that of one of its parts.
const (
	maxPermission = 200
	maxPart       = 64
)

// permission has the parts of a permission. application and field can be empty.
type permission struct{ application, resource, field, action string }

// readPermission reads [application/]resource[.field]:action. Each part can be a *.
func readPermission(text string) (p permission, ok bool) {
	if len(text) > maxPermission {
		return p, false
	}
	hasApplication, hasField := false, false
	rest, ok := text, false
	if p.application, rest, hasApplication = strings.Cut(text, "/"); !hasApplication {
		p.application, rest = "", text
	}
	if rest, p.action, ok = strings.Cut(rest, ":"); !ok {
		return p, false
	}
	p.resource, p.field, hasField = strings.Cut(rest, ".")
	return p, isPart(p.resource) && isPart(p.action) && (!hasApplication || isPart(p.application)) && (!hasField || isPart(p.field))
}

// isPart reports whether the text is * or a name that begins with a lower-case letter.
func isPart(text string) bool {
	if text == "*" {
		return true
	}
	if text == "" || len(text) > maxPart || text[0] < 'a' || text[0] > 'z' {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func (p permission) covers(asked permission) bool {
	fits := func(held, asked string) bool { return held == "*" || held == asked }
	return (p.application == "") == (asked.application == "") && fits(p.application, asked.application) &&
		fits(p.resource, asked.resource) && fits(p.action, asked.action) && (p.field == "" || fits(p.field, asked.field))
}

// Covers reports whether the permission held covers the permission asked. It is false for malformed
// permissions. docs/permissions.md has the rules and a table of cases.
func Covers(held, asked string) bool {
	h, okHeld := readPermission(held)
	a, okAsked := readPermission(asked)
	return okHeld && okAsked && h.covers(a)
}

// Can reports without a request whether the caller has the permission: in the whole tenant, or for one
// department if department is not empty. The permission has no wildcards, such as
// shop/invoices:approve. Pass the department of the object of the action, not of the user.
//
// Of permissions that are limited to departments, only those of applications count. Check Rolecall's
// own permissions, such as users:read, for a department with CheckPermissions. A nil caller has no
// permission.
func Can(caller *Principal, asked, department string) bool {
	a, ok := readPermission(asked)
	if !ok || caller == nil {
		return false
	}
	if anyCovers(caller.Permissions, a) {
		return true
	}
	if a.application == "" || department == "" {
		return false
	}
	for i := range caller.ScopedPermissions {
		scoped := &caller.ScopedPermissions[i]
		if slices.Contains(scoped.Reach.Departments, department) && anyCovers(scoped.Permissions, a) {
			return true
		}
	}
	return false
}

// anyCovers reports whether one of the permissions covers the permission asked.
func anyCovers(permissions []string, asked permission) bool {
	return slices.ContainsFunc(permissions, func(held string) bool {
		h, ok := readPermission(held)
		return ok && h.covers(asked)
	})
}
