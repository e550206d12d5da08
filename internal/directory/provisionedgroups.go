package directory

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/store"
)

// ProvisionedGroup is a group of a directory.
type ProvisionedGroup struct {
	rolecall.Group
	Members []rolecall.UserID // nil if they were not read, or if there are more than DirectoryMembersMax
}

// MemberChange is a change of the members of a group.
type MemberChange struct {
	Users   []rolecall.UserID
	Removes bool // the users are removed
	Others  bool // all other members are removed
}

// GroupChange is a change of a group by its directory.
type GroupChange struct {
	Name       rolecall.Optional[string]
	ExternalID rolecall.Optional[*string]
	Members    []MemberChange // in this order
}

// source returns the source of the groups of the directory.
func (p *Provider) source() rolecall.MemberSource { return rolecall.SourceOf(p.Directory.ID) }

// group returns the group with the id if its source is the directory. Otherwise, it returns ErrNotFound.
func (p *Provider) group(tx *store.Tx, id rolecall.GroupID) (g rolecall.Group, err error) {
	g, err = tx.GroupByID(id)
	if err == nil && g.Source != p.source() {
		g, err = rolecall.Group{}, rolecall.ErrNotFound
	}
	return g, err
}

// withMembers adds the members to the group, unless there are more than DirectoryMembersMax.
func (p *Provider) withMembers(tx *store.Tx, g rolecall.Group, members bool) (ProvisionedGroup, error) {
	provisioned := ProvisionedGroup{Group: g}
	if !members {
		return provisioned, nil
	}
	ids, err := tx.MemberIDs(g.ID, rolecall.DirectoryMembersMax+1)
	if err == nil && len(ids) <= rolecall.DirectoryMembersMax {
		provisioned.Members, err = p.own(tx, ids)
	}
	return provisioned, err
}

// own returns the given users that belong to the directory, sorted.
func (p *Provider) own(tx *store.Tx, users []rolecall.UserID) ([]rolecall.UserID, error) {
	own, err := tx.AmongDirectoryUsers(p.Directory.ID, users)
	slices.SortFunc(own, func(a, b rolecall.UserID) int { return slices.Compare(a[:], b[:]) })
	return own, err
}

// ProvisionedGroup returns the group with the id, with its members if requested. It returns ErrNotFound if the source of the
// group is not the directory.
func (s *Service) ProvisionedGroup(ctx context.Context, p Provider, id rolecall.GroupID, members bool) (g ProvisionedGroup, err error) {
	return access.Read(ctx, s.access, p.Caller, func(tx *store.Tx) (ProvisionedGroup, error) {
		group, err := p.group(tx, id)
		if err != nil {
			return ProvisionedGroup{}, err
		}
		return p.withMembers(tx, group, members)
	})
}

// ProvisionedGroupQuery selects groups of a directory, sorted by id. A field with its zero value does not filter.
type ProvisionedGroupQuery struct {
	ID         rolecall.GroupID
	Name       string // without regard to case
	ExternalID string
	Member     rolecall.UserID // only with ID
	After      rolecall.GroupID
	Offset     int
	Limit      int
	Members    bool // whether to read the members
}

// ProvisionedGroups returns the groups of the directory that q selects, and their number.
func (s *Service) ProvisionedGroups(ctx context.Context, p Provider, q ProvisionedGroupQuery) (groups []ProvisionedGroup, total int, err error) {
	err = s.access.View(ctx, p.Caller, func(tx *store.Tx) error {
		groups = nil
		all, err := tx.AllGroupsOfSource(p.source())
		if err != nil {
			return err
		}
		selected := slices.DeleteFunc(all, func(g rolecall.Group) bool {
			return !q.ID.IsZero() && g.ID != q.ID || q.Name != "" && g.NameKey() != (&rolecall.Group{Name: q.Name}).NameKey() ||
				q.ExternalID != "" && (g.ExternalID == nil || *g.ExternalID != q.ExternalID)
		})
		if !q.Member.IsZero() && len(selected) > 0 {
			_, err := tx.Membership(q.Member, q.ID)
			if isMember, err := access.Found(err); err != nil {
				return err
			} else if !isMember {
				selected = nil
			}
		}
		total = len(selected)
		if !q.After.IsZero() {
			selected = from(selected, func(g rolecall.Group) bool { return slices.Compare(g.ID[:], q.After[:]) > 0 })
		}
		selected = selected[min(q.Offset, len(selected)):]
		for _, g := range selected[:min(q.Limit, len(selected))] {
			provisioned, err := p.withMembers(tx, g, q.Members)
			if err != nil {
				return err
			}
			groups = append(groups, provisioned)
		}
		return nil
	})
	return groups, total, err
}

// ProvisionGroup creates a group with members. It can fail with ErrGroupNameTaken, ErrGroupExternalIDTaken,
// ErrLimitReached, ErrUnknownMember and ErrOwnerProtected.
func (s *Service) ProvisionGroup(ctx context.Context, p Provider, draft rolecall.GroupDraft, members []rolecall.UserID) (g ProvisionedGroup, err error) {
	draft.Source = p.source()
	err = s.provision(ctx, p, func(tx *store.Tx, p Provider) error {
		group := draft.Group(s.now())
		tx.LockOwners()
		stored, err := tx.Groups(rolecall.GroupQuery{Limit: 1, Count: true})
		if err != nil {
			return err
		}
		if stored.Total.Count >= rolecall.GroupsMax {
			return errTooManyGroups
		}
		tx.InsertGroup(group)
		event, err := changeEvent[rolecall.Group](s, p.Caller, rolecall.EventGroupCreated, rolecall.About(group.ID), nil, &group, nil)
		if err != nil {
			return err
		}
		tx.InsertEvent(*event)
		if err := s.addProvisioned(tx, p, &group, members); err != nil {
			return err
		}
		g, err = p.withMembers(tx, group, true)
		return err
	})
	return g, err
}

// ChangeProvisionedGroup changes a group of the directory. It can fail with ErrNotFound, ErrPreconditionFailed,
// ErrGroupNameTaken, ErrGroupExternalIDTaken, ErrLimitReached, ErrUnknownMember and ErrOwnerProtected.
func (s *Service) ChangeProvisionedGroup(ctx context.Context, p Provider, id rolecall.GroupID, match Match[rolecall.Group], change GroupChange) (g ProvisionedGroup, err error) {
	err = s.provision(ctx, p, func(tx *store.Tx, p Provider) error {
		if len(change.Members) > 0 && p.Directory.Matching == rolecall.MatchEmail { // before other rows, because members can be taken over
			tx.LockOwners()
		}
		old, err := p.group(tx, id)
		if err != nil {
			return err
		}
		if err := match.Check(&old); err != nil {
			return err
		}
		patch := rolecall.GroupPatch{Name: change.Name, ExternalID: change.ExternalID}
		changed, members := patch.Apply(old, s.now())
		if members != nil {
			if err := store.CheckVersion(tx.UpdateGroup(old, changed)); err != nil {
				return err
			}
			event, err := changeEvent(s, p.Caller, rolecall.EventGroupUpdated, rolecall.About(id), &old, &changed, members)
			if err != nil {
				return err
			}
			tx.InsertEvent(*event)
		}
		var moved bool
		for _, c := range change.Members {
			isChanged, err := s.changeMembers(tx, p, &changed, c)
			if err != nil {
				return err
			}
			moved = moved || isChanged
		}
		if moved {
			if err := store.CheckVersion(tx.TouchGroup(changed, s.now())); err != nil {
				return err
			}
			if changed, err = tx.GroupByID(id); err != nil {
				return err
			}
		}
		g, err = p.withMembers(tx, changed, true)
		return err
	})
	return g, err
}

// changeMembers changes the members of the group, and reports whether a membership changed.
func (s *Service) changeMembers(tx *store.Tx, p Provider, g *rolecall.Group, c MemberChange) (changed bool, err error) {
	var leaving []rolecall.UserID
	switch {
	case c.Removes:
		leaving = c.Users
	case c.Others:
		staying := map[rolecall.UserID]bool{}
		for _, id := range c.Users {
			staying[id] = true
		}
		all, err := tx.MemberIDs(g.ID, maxReplaced+1)
		if err != nil {
			return false, err
		}
		if len(all) > maxReplaced {
			return false, errManyReplaced
		}
		if leaving, err = p.own(tx, slices.DeleteFunc(all, func(id rolecall.UserID) bool { return staying[id] })); err != nil {
			return false, err
		}
	}
	removed, err := tx.RemoveMembers(g.ID, leaving, s.now())
	if err != nil {
		return false, err
	}
	if err := s.recordMembers(tx, p, g, removed, false); err != nil || c.Removes {
		return len(removed) > 0, err
	}
	added, err := s.addMembers(tx, p, g, c.Users)
	return len(removed)+len(added) > 0, err
}

// maxReplaced is the maximum number of members of a group whose members a request can replace.
const maxReplaced = 5000

var errManyReplaced = rolecall.ErrLimitReached.With("This group has more than 5,000 members, which one request cannot replace. Add and remove members instead.")

// addProvisioned adds the users to the group.
func (s *Service) addProvisioned(tx *store.Tx, p Provider, g *rolecall.Group, users []rolecall.UserID) error {
	_, err := s.addMembers(tx, p, g, users)
	return err
}

// addMembers adds the users to the group, and returns those who were not members. They must be users of the directory, or
// users that it can take over.
func (s *Service) addMembers(tx *store.Tx, p Provider, g *rolecall.Group, users []rolecall.UserID) ([]rolecall.UserID, error) {
	if len(users) == 0 {
		return nil, nil
	}
	if err := s.takeOver(tx, p, users); err != nil {
		return nil, err
	}
	added, err := tx.AddMembers(g.ID, users, p.User.ID, s.now())
	if err != nil || len(added) == 0 {
		return nil, err
	}
	crowded, err := tx.CrowdedUsers(added)
	if err != nil {
		return nil, err
	}
	if len(crowded) > 0 {
		return nil, errTooManyGroupsOfUser
	}
	return added, s.recordMembers(tx, p, g, added, true)
}

// takeOver takes over the given users that have no directory. It returns ErrUnknownMember if one of them cannot be taken
// over or does not exist.
func (s *Service) takeOver(tx *store.Tx, p Provider, users []rolecall.UserID) error {
	own, err := tx.AmongDirectoryUsers(p.Directory.ID, users)
	if err != nil || len(own) == len(users) {
		return err
	}
	isOwn := make(map[rolecall.UserID]bool, len(own))
	for _, id := range own {
		isOwn[id] = true
	}
	for _, id := range users {
		if isOwn[id] {
			continue
		}
		entry, err := p.entry(tx, id)
		if there, err := access.Found(err); err != nil {
			return err
		} else if !there {
			return rolecall.ErrUnknownMember
		}
		if err := s.applyProvisioned(tx, p, &entry, unchanged(&entry.User)); err != nil {
			return err
		}
	}
	return nil
}

// recordMembers writes an event for each added or removed user.
func (s *Service) recordMembers(tx *store.Tx, p Provider, g *rolecall.Group, users []rolecall.UserID, added bool) error {
	name := rolecall.GroupName{ID: g.ID, Name: g.Name}
	for _, id := range users {
		kind, before, after := rolecall.EventMemberRemoved, &name, (*rolecall.GroupName)(nil)
		if added {
			kind, before, after = rolecall.EventMemberAdded, nil, &name
		}
		event := s.access.Event(p.Caller, kind, rolecall.About(id))
		if err := access.SetMembership(event, before, after); err != nil {
			return err
		}
		tx.InsertEvent(*event)
	}
	return nil
}

// DeprovisionGroup deletes a group of the directory with its roles. It can fail with ErrNotFound and
// ErrPreconditionFailed.
func (s *Service) DeprovisionGroup(ctx context.Context, p Provider, id rolecall.GroupID, match Match[rolecall.Group]) error {
	var more bool
	err := s.provision(ctx, p, func(tx *store.Tx, p Provider) error {
		if _, err := p.group(tx, id); err != nil {
			return err
		}
		event, unfinished, err := s.deleteGroup(tx, p.Caller, id, true, match)
		if more = unfinished; err == nil {
			tx.InsertEvent(*event)
		}
		return err
	})
	if err == nil && more {
		s.access.Unfinished(p.Tenant.ID)
	}
	return err
}
