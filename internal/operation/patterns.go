package operation

import (
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
)

// Regular expressions of strings in the OpenAPI document. They use only features that the regular
// expressions of all languages have, so no Unicode classes. For this reason, they also match some
// strings that the API rejects: those with only blank characters from outside of Latin-1. The
// descriptions in the document say that a visible character is necessary.
const (
	// visibleText matches texts with a visible character and without control characters.
	visibleText = `^[ \xa0\xad]*[^\x00-\x20\x7f-\xa0\xad][^\x00-\x1f\x7f-\x9f]*$`
	// emptyOrVisibleText also matches the empty text.
	emptyOrVisibleText = `^([ \xa0\xad]*[^\x00-\x20\x7f-\xa0\xad][^\x00-\x1f\x7f-\x9f]*)?$`
	// searchPattern matches texts with a letter or a digit.
	searchPattern = `[^\x00-/:-@\[-` + "`" + `{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7]`
	// keyPattern matches idempotency keys, bare or as a quoted string of a structured field.
	keyPattern = `^([!#-~][!-~]*|"|"[!-~]*[!#-~]|"([!#-\[\]-~]|\\["\\])+")$`
	// tagsPattern matches * and lists of entity tags.
	tagsPattern = `^[ \t]*(\*[ \t]*|(W/)?"[^\x00-\x20"\x7f]*"([ \t]*,[ \t,]*(W/)?"[^\x00-\x20"\x7f]*")*[ \t,]*)$`
	// permissionPart matches the name of an application, resource, field or action in a
	// permission.
	permissionPart = `[a-z][A-Za-z0-9_-]{0,63}`
)

// mustBeVisible is the description of strings with the pattern visibleText, which does not
// express this rule completely.
const mustBeVisible = "Must contain a visible character."

// permissionSchemas returns the schemas of permissions in requests, by component name.
func permissionSchemas() properties {
	permission := func(about string, hasWildcards bool) *huma.Schema {
		return &huma.Schema{Type: "string", Description: about, MaxLength: new(rolecall.PermissionLength), Pattern: permissionPattern(hasWildcards)}
	}
	return properties{
		"Permission":       permission("[application/]resource[.field]:action, each part a name or *. Without an application, it is one of Rolecall's own permissions or covers one.", true),
		"SinglePermission": permission("[application/]resource[.field]:action, each part a name. Without an application, it is one of Rolecall's own permissions.", false),
	}
}

// permissionPattern returns a regular expression that matches Rolecall's own permissions and all
// permissions of applications. If hasWildcards is true, it also matches permissions with the
// wildcard *.
func permissionPattern(hasWildcards bool) string {
	part, wildcard, anyField := permissionPart, "", ""
	if hasWildcards {
		part, wildcard, anyField = `(\*|`+permissionPart+`)`, `|\*`, `(\.\*)?`
	}
	actions := map[string][]string{} // by resource
	fields := map[string][]string{}  // actions by field of users
	for _, p := range rolecall.OwnPermissions() {
		actions[p.Resource] = append(actions[p.Resource], p.Action)
		actions[`\*`] = append(actions[`\*`], p.Action)
		if p.Field != "" {
			fields[p.Field] = append(fields[p.Field], p.Action)
		}
	}
	oneOf := func(texts []string) string {
		slices.Sort(texts)
		return "(" + strings.Join(slices.Compact(texts), "|") + wildcard + ")"
	}
	kinds := []string{part + "/" + part + `(\.` + part + ")?:" + part}
	for _, resource := range slices.Sorted(maps.Keys(actions)) {
		if resource != `\*` || hasWildcards {
			kinds = append(kinds, resource+anyField+":"+oneOf(actions[resource]))
		}
	}
	withActions := map[string][]string{} // fields, by the pattern of their actions
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		of := oneOf(fields[field])
		withActions[of] = append(withActions[of], field)
	}
	for _, of := range slices.Sorted(maps.Keys(withActions)) {
		kinds = append(kinds, "(users"+wildcard+`)\.(`+strings.Join(withActions[of], "|")+"):"+of)
	}
	return "^(" + strings.Join(kinds, "|") + ")$"
}
