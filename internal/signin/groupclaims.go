package signin

import (
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/store"
)

// The reasons in events of claims that were not applied. With one of the last two, only some values were ignored.
const (
	claimAbsent      = "claim-absent"
	claimUnavailable = "claim-unavailable" // the userinfo endpoint does not respond, or refuses
	claimOverage     = "overage"           // the provider sent a reference to the groups
	claimInvalid     = "invalid-claim"     // neither a text nor a list of texts
	tooManyGroups    = "too-many-groups"
	valueInvalid     = "invalid-value" // a group would have to be created, and the value cannot be its name
	nameTaken        = "name-taken"    // a group would have to be created, and another group of the connection has the name
)

// groupPlan has the changes of a user's groups that a claim causes.
type groupPlan struct {
	join   []rolecall.Group
	leave  []rolecall.Group
	create []rolecall.Group // the user joins them too
	reason string           // of the event of a claim that was not applied, or not in full; empty: no such event
}

func (g *groupPlan) changes() bool { return len(g.join)+len(g.leave)+len(g.create) > 0 }

// claimedValue is a value of a claim that can name a group.
type claimedValue struct {
	text string
	key  string // by which the store finds the group
}

// planGroups compares the claim of the person with the groups of the user. The result does not consider the limits, and
// new groups whose names are taken. For a claim that changes nothing, planGroups runs one statement.
func (s *Service) planGroups(tx *store.Tx, p *authenticated, user rolecall.UserID) (plan groupPlan, err error) {
	rules := p.connection.Groups
	if rules == nil || rules.Claim != p.claim { // the connection was changed after the provider had sent the claim
		return plan, nil
	}
	values, reason := p.claimedValues(rules.MatchBy)
	if reason != "" && reason != valueInvalid {
		return groupPlan{reason: reason}, nil
	}
	keys := make([]string, len(values))
	for i := range values {
		keys[i] = values[i].key
	}
	source := rolecall.SourceOf(p.connection.ID)
	joined, named, err := tx.GroupsOfSource(source, user, rules.MatchBy, keys)
	if err != nil {
		return plan, err
	}
	if rules.MatchBy == rolecall.MatchName { // a provider can have groups whose names differ only in case or width
		named = slices.DeleteFunc(named, func(g rolecall.Group) bool {
			return !slices.ContainsFunc(values, func(v claimedValue) bool { return rolecall.TrimName(v.text) == g.Name })
		})
	}
	plan.join, plan.leave = without(named, joined), without(joined, named)
	if !rules.Create {
		return plan, nil
	}
	plan.reason = reason
	now := s.now()
	for _, value := range values {
		draft := rolecall.GroupDraft{Name: value.text, Source: source}
		if rules.MatchBy == rolecall.MatchExternalID {
			draft.ExternalID = &value.text
		}
		switch {
		case slices.ContainsFunc(named, func(g rolecall.Group) bool { return keyOf(&g, rules.MatchBy) == value.key }):
		case draft.Check(rolecall.NameLeast) != nil:
			plan.reason = valueInvalid
		default:
			plan.create = append(plan.create, draft.Group(now))
		}
	}
	return plan, nil
}

// claimedValues returns the values of the claim, without duplicates and values that cannot name a group. The reason says
// why the claim cannot be applied. It is valueInvalid if values were left out, and empty if the result is complete.
func (p *authenticated) claimedValues(by rolecall.GroupMatch) (values []claimedValue, reason string) {
	switch list := &p.claims.List; {
	case p.claimFailed:
		return nil, claimUnavailable
	case list.State == oidc.ListAbsent:
		return nil, claimAbsent
	case list.State == oidc.ListOmitted:
		return nil, claimOverage
	case list.State == oidc.ListInvalid:
		return nil, claimInvalid
	}
	known := map[string]bool{}
	for _, text := range p.claims.List.Values {
		var code string
		if by == rolecall.MatchExternalID {
			code, _ = rolecall.CheckText(text, 1, rolecall.ExternalIDMax)
		} else {
			code, _ = rolecall.CheckName(text, rolecall.NameLeast, rolecall.GroupNameMax)
		}
		if code != "" {
			reason = valueInvalid
			continue
		}
		key := keyOf(&rolecall.Group{Name: rolecall.TrimName(text), ExternalID: &text}, by)
		if known[key] {
			continue
		}
		if known[key] = true; len(known) > rolecall.GroupsOfUserMax {
			return nil, tooManyGroups
		}
		values = append(values, claimedValue{text, key})
	}
	if len(values) == 0 && reason != "" { // a wrong mapper at the provider must not remove the user from all groups
		return nil, claimInvalid
	}
	return values, reason
}

// keyOf returns the key by which values of claims are compared with the group.
func keyOf(g *rolecall.Group, by rolecall.GroupMatch) string {
	if by == rolecall.MatchName {
		return g.NameKey()
	}
	if g.ExternalID == nil {
		return ""
	}
	return *g.ExternalID
}

// without returns the groups that are not among the others.
func without(groups, others []rolecall.Group) []rolecall.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g rolecall.Group) bool {
		return slices.ContainsFunc(others, func(other rolecall.Group) bool { return other.ID == g.ID })
	})
}

// limitGroups removes new groups whose names are taken from the plan. If the plan exceeds a limit, the result changes
// nothing. The transaction must have called LockOwners before planGroups.
func (s *Service) limitGroups(tx *store.Tx, p *authenticated, user rolecall.UserID, plan groupPlan) (groupPlan, error) {
	if len(plan.create) > 0 {
		keys := make([]string, len(plan.create))
		for i := range plan.create {
			keys[i] = plan.create[i].NameKey()
		}
		_, named, err := tx.GroupsOfSource(rolecall.SourceOf(p.connection.ID), rolecall.UserID{}, rolecall.MatchName, keys)
		if err != nil {
			return plan, err
		}
		taken := map[string]bool{}
		for i := range named {
			taken[named[i].NameKey()] = true
		}
		kept := plan.create[:0]
		for _, g := range plan.create {
			if taken[g.NameKey()] {
				plan.reason = nameTaken
				continue
			}
			taken[g.NameKey()], kept = true, append(kept, g)
		}
		plan.create = kept
	}
	if len(plan.create) > 0 {
		stored, err := tx.Groups(rolecall.GroupQuery{Limit: 1, Count: true})
		if err != nil {
			return plan, err
		}
		if stored.Total.Count+len(plan.create) > rolecall.GroupsMax {
			return groupPlan{reason: tooManyGroups}, nil
		}
	}
	if len(plan.join)+len(plan.create) > 0 {
		memberships, err := tx.Memberships(user)
		if err != nil {
			return plan, err
		}
		if len(memberships)-len(plan.leave)+len(plan.join)+len(plan.create) > rolecall.GroupsOfUserMax {
			return groupPlan{reason: tooManyGroups}, nil
		}
	}
	return plan, nil
}

// applyGroups changes the groups of the user as planned, with the events. The actor of the events is the user, as of all
// changes of a sign-in, and their reason names the connection.
func (s *Service) applyGroups(tx *store.Tx, a *access.Anonymous, p *authenticated, user *rolecall.User, plan groupPlan) error {
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: *user})
	now, reason := s.now(), "claim of "+p.connection.Name
	for i := range plan.create {
		g := &plan.create[i]
		tx.InsertGroup(*g)
		event := s.access.Event(c, rolecall.EventGroupCreated, rolecall.About(g.ID))
		event.Reason = reason
		var err error
		if event.Values, err = after(g); err != nil {
			return err
		}
		tx.InsertEvent(*event)
	}
	var joined []rolecall.Membership
	for _, g := range slices.Concat(plan.join, plan.create) {
		m := rolecall.Membership{Group: rolecall.GroupName{ID: g.ID, Name: g.Name}, User: user.ID, AddedAt: now}
		event := s.access.Event(c, rolecall.EventMemberAdded, rolecall.About(user.ID))
		event.Reason = reason
		if err := access.SetMembership(event, nil, &m.Group); err != nil {
			return err
		}
		tx.InsertEvent(*event)
		joined = append(joined, m)
	}
	if len(joined) > 0 {
		tx.JoinGroups(joined)
	}
	var left []rolecall.GroupID
	for _, g := range plan.leave {
		event := s.access.Event(c, rolecall.EventMemberRemoved, rolecall.About(user.ID))
		event.Reason = reason
		if err := access.SetMembership(event, &rolecall.GroupName{ID: g.ID, Name: g.Name}, nil); err != nil {
			return err
		}
		tx.InsertEvent(*event)
		left = append(left, g.ID)
	}
	if len(left) > 0 {
		tx.LeaveGroups(user.ID, left, now)
	}
	if plan.reason != "" {
		event := s.access.Event(c, rolecall.EventGroupsSkipped, rolecall.About(p.connection.ID))
		event.Reason = plan.reason
		tx.InsertEvent(*event)
	}
	return nil
}
