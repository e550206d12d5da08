package console

import (
	"net/url"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// undo is the button that reverses the last action, in the message about this action. The
// zero value shows no button.
type undo struct {
	action   string      // the address of the form
	fields   [][2]string // names and values of its hidden fields
	restores string      // the address of the form that restores a deleted user
}

// The query parameters that describe the last action in an address: the removed assignment
// or the deleted user.
const (
	undoDepartment = "undo-department"
	undoEnd        = "undo-end"
	undoDeleted    = "undo-deleted"
)

// undoMax is the maximum length of the query parameters about a removed assignment, in
// bytes.
const undoMax = 2 << 10

// canUndo reports whether the page may offer to reverse the action. This is so only after a
// form of this origin, because a link on another site must not offer a change.
func (v *pageContext) canUndo(done string) bool {
	return v.request.URL.Query().Get("done") == done && v.request.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// undoRemoval returns the query parameters that describe the removed assignment. It returns
// an empty text if they are longer than undoMax.
func undoRemoval(a *rolecall.Assignment) string {
	query := url.Values{undoEnd: {a.ExpiresAt.String()}}
	if a.ExpiresAt == rolecall.Never {
		query.Set(undoEnd, "")
	}
	if !a.Reach.IsEverywhere() {
		query[undoDepartment] = a.Reach.Departments()
	}
	if text := "&" + query.Encode(); len(text) <= undoMax {
		return text
	}
	return ""
}

// undoTaken offers to assign the removed role again, with the same departments and the same
// expiry. It offers nothing if the caller may not assign the role.
func (c *console) undoTaken(v *pageContext, h holder) {
	query := v.request.URL.Query()
	if !v.canUndo("role-taken") || !query.Has(undoEnd) || !h.assigns {
		return
	}
	id, err := rolecall.ParseID[rolecall.Role](query.Get("role"))
	if err != nil {
		return
	}
	v.roleID = id
	role, err := c.roleToGive(v)
	if err != nil {
		return
	}
	end, fields := rolecall.Never, [][2]string{}
	if text := query.Get(undoEnd); text != "" {
		if end.UnmarshalText([]byte(text)) != nil || end <= c.access.Now() {
			return
		}
		shown := v.savedDate(end)
		fields = append(fields, [2]string{"expiresAt", shown.text}, [2]string{"was-expiresAt", shown.saved}, [2]string{fieldTimeZone, v.formZone().String()})
	}
	reach := rolecall.Everywhere()
	if departments := query[undoDepartment]; departments != nil {
		reach = rolecall.Within(departments...)
		fields = append(fields, [2]string{"where", whereDepartments})
		for _, department := range departments {
			fields = append(fields, [2]string{"reach/departments", department})
		}
	} else {
		fields = append(fields, [2]string{"where", whereEverywhere})
	}
	if authz.AssignableReach(v.call.Principal, h.gains(frame{pageContext: v}), &role, end).Covers(reach) {
		v.undo = undo{action: h.home + "/roles/" + id.String(), fields: fields}
	}
}

// undoSuspended offers to resume the suspended user or service account. It offers nothing
// if the caller may not do so.
func undoSuspended(v *pageContext, done string, allowed []string, home string) {
	if v.canUndo(done) && slices.Contains(allowed, "resume") {
		v.undo = undo{action: home + "/resume"}
	}
}

// undoDeletion offers to restore the deleted user. It offers nothing if the caller may not
// do so.
func (c *console) undoDeletion(v *pageContext) {
	id, err := rolecall.ParseID[rolecall.User](v.request.URL.Query().Get(undoDeleted))
	if err != nil || !v.canUndo("deleted") {
		return
	}
	if _, err := c.directory.DeletedUser(v.ctx, v.call, id); err == nil {
		v.undo = undo{restores: userAddress(v, id, "/restore")}
	}
}
