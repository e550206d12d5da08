package console

import (
	"bytes"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// nameOf returns what to call the user, as far as the caller may read it.
func nameOf(v *pageContext, u *rolecall.User) string {
	if v.call.Sight(u).Has(rolecall.MemberName) {
		return u.Name
	}
	return u.ID.String()
}

// names are what to call those whom a page names by their ids.
type names map[rolecall.AnyID]directory.Named

// namesIn returns the names of all who are in the events, and of the others.
func (c *console) namesIn(v *pageContext, events []rolecall.Event, others ...rolecall.AnyID) (names, error) {
	for i := range events {
		e := &events[i]
		others = append(others, rolecall.AnyID(e.Actor.ID), e.Subject.ID)
		others = append(others, idsWithin(e)...)
	}
	return c.namesOf(v, others)
}

// namesOf returns the names of those with the ids, by one look-up.
func (c *console) namesOf(v *pageContext, ids []rolecall.AnyID) (names, error) {
	ids = slices.DeleteFunc(ids, func(id rolecall.AnyID) bool { return id.IsZero() })
	slices.SortFunc(ids, func(a, b rolecall.AnyID) int { return bytes.Compare(a[:], b[:]) })
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil, nil
	}
	return c.directory.Names(v.ctx, v.call, ids)
}

// missingRole is the name to show for a role if the page knows only the id.
func (f frame) missingRole() string {
	if f.may(rolecall.RolesRead) {
		return "a deleted role"
	}
	return "a role you can't view"
}

// missingUser is the name to show for a user if the page knows only the id.
func (f frame) missingUser() string {
	if f.call.Visible().IsEverywhere() {
		return "a deleted user"
	}
	return "a user you can't view"
}

// missingAccount is the name to show for a service account if the page knows only the id.
func (f frame) missingAccount() string {
	if f.may(rolecall.ServiceAccountsRead) {
		return "a deleted service account"
	}
	return "a service account you can't view"
}

// missingGiver is the name to show for a grantor, who is a user or a service account, if
// the page knows only the id.
func (f frame) missingGiver() string {
	if f.call.Visible().IsEverywhere() && f.may(rolecall.ServiceAccountsRead) {
		return "a deleted user or service account"
	}
	return "somebody you can't view"
}

func roleIDs(assignments []rolecall.Assignment) []rolecall.AnyID {
	ids := make([]rolecall.AnyID, len(assignments))
	for i := range assignments {
		ids[i] = rolecall.AnyID(assignments[i].Role.ID)
	}
	return ids
}

func roleNames(roles []rolecall.Role) (names []string) {
	for i := range roles {
		names = append(names, roles[i].Name)
	}
	return names
}
