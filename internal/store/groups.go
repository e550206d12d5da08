package store

import (
	"slices"

	"github.com/rolecall/rolecall"
)

const (
	groupColumns = `r.id, r.name, r.description, r.external_id, r.source, r.created_at, r.updated_at, r.version`

	selectGroups = `select ` + groupColumns + ` from groups r where r.tenant_id = $1 and r.deletion is null`

	selectGroup = selectGroups + ` and r.id = $2`

	insertGroup = `insert into groups (tenant_id, id, name, name_key, words, description, external_id, source, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	updateGroup = `update groups set name = $1, name_key = $2, words = $3, description = $4, external_id = $5, updated_at = $6, version = $7
		where tenant_id = $8 and id = $9 and version = $10 and deletion is null returning version`

	// hideGroup makes the name and the external id available to other groups. It replaces the key of the name with
	// one that begins with a space, which a valid name cannot do.
	hideGroup = `update groups set name_key = $1, external_id = null, deletion = $2
		where tenant_id = $3 and id = $4 and version = $5 and deletion is null returning version`

	// If the event was purged, its type is empty.
	selectHiddenGroup = `select r.id, r.name, r.deletion, coalesce(e.type, ''), coalesce(e.actor_type, ''), e.actor_id, coalesce(e.actor_via, ''), e.actor_token,
			coalesce(e.request_id, ''), e.session_id, coalesce(e.source, '')
		from groups r left join events e on e.tenant_id = r.tenant_id and e.id = r.deletion
		where r.tenant_id = $1 and r.deletion is not null order by r.deletion limit 1`

	deleteHiddenGroup = `delete from groups where tenant_id = $1 and id = $2 and deletion is not null
		and not exists (select 1 from group_members where tenant_id = $1 and group_id = $2)`

	countGroupRoles = `select count(*) from (select 1 from group_roles where tenant_id = $1 limit $2) c`

	selectRolesOfGroups = `select 1 from group_roles where tenant_id = $1 limit 1`

	selectGroupsOfRole = `select 1 from group_roles where tenant_id = $1 and role_id = $2 limit 1`

	insertMembers = `insert into group_members (tenant_id, user_id, group_id, added_by, added_at) values `

	insertMember = insertMembers + `($1, $2, $3, $4, $5) on conflict do nothing returning group_id`

	deleteMember = `delete from group_members where tenant_id = $1 and user_id = $2 and group_id = $3 returning group_id`

	selectMembershipsOf = `select m.user_id, g.id, g.name, m.added_by, m.added_at
		from group_members m join groups g on g.tenant_id = m.tenant_id and g.id = m.group_id
		where m.tenant_id = $1 and m.user_id = $2 and g.deletion is null`

	selectMemberships = selectMembershipsOf + ` order by g.id`

	selectMembership = selectMembershipsOf + ` and g.id = $3`

	selectMembers = `select user_id from group_members where tenant_id = $1 and group_id = $2 order by user_id limit $3`

	deleteMembers = `delete from group_members where tenant_id = $1 and group_id = $2 and user_id <= $3 returning user_id, added_by, added_at`

	deleteMembersOfUser = `delete from group_members where tenant_id = $1 and user_id = $2`

	selectGroupsOfMember = `select 1, ` + groupColumns + ` from group_members m join groups r on r.tenant_id = m.tenant_id and r.id = m.group_id
		where m.tenant_id = $1 and r.source = $2 and m.user_id = $3 and r.deletion is null`

	selectGroupsIn = `select 0, ` + groupColumns + ` from groups r where r.tenant_id = $1 and r.source = $2 and r.deletion is null`

	// endMembers copies memberships to the table of past ones. The caller then deletes them. If the clock was set
	// back, a membership can end before it began. It is not copied.
	endMembers = `insert into past_group_members (tenant_id, user_id, group_id, group_name, added_by, added_at, ended_at)
		select m.tenant_id, m.user_id, m.group_id, g.name, m.added_by, m.added_at, cast($1 as bigint)
		from group_members m join groups g on g.tenant_id = m.tenant_id and g.id = m.group_id
		where m.tenant_id = $2 and m.added_at < $1`

	endMember        = endMembers + ` and m.user_id = $3 and m.group_id = $4 on conflict do nothing`
	endMembersOfUser = endMembers + ` and m.user_id = $3 on conflict do nothing`
	endMembersUpTo   = endMembers + ` and m.group_id = $3 and m.user_id <= $4 on conflict do nothing`
)

func groupDest(g *rolecall.Group) []any {
	return []any{&g.ID, &g.Name, &g.Description, &g.ExternalID, &g.Source, &g.CreatedAt, &g.UpdatedAt, &g.Version}
}

func membershipDest(m *rolecall.Membership) []any {
	return []any{&m.User, &m.Group.ID, &m.Group.Name, &m.AddedBy, &m.AddedAt}
}

// GroupByID returns the group with this id, or ErrNotFound.
func (t *Tx) GroupByID(id rolecall.GroupID) (g rolecall.Group, err error) {
	err = t.row(selectGroup, []any{t.tenant, id}, groupDest(&g)...)
	return g, err
}

// GroupsByID returns the groups with these ids that exist, in no particular order.
func (t *Tx) GroupsByID(ids []rolecall.GroupID) ([]rolecall.Group, error) {
	return byIDs(t, selectGroups, "r.id", ids, groupDest)
}

// Groups returns a page of the groups that q selects. It reads a bounded number of rows.
func (t *Tx) Groups(q rolecall.GroupQuery) (rolecall.Page[rolecall.Group], error) {
	l := &listing[rolecall.Group]{
		tx: t, table: "groups", columns: groupColumns, dest: groupDest,
		id:   func(g *rolecall.Group) rolecall.AnyID { return rolecall.AnyID(g.ID) },
		desc: q.Desc, after: q.After, limit: q.Limit,
		indexScan: source{table: "groups", id: "id"}, common: []condition{where("r.deletion is null")},
	}
	if q.ByName {
		l.key = "name_key"
	}
	for _, word := range q.Words {
		l.conditions = append(l.conditions, nameWord(word))
	}
	var candidates []source
	if q.ExternalID != "" {
		l.conditions = append(l.conditions, where("r.external_id = ?", q.ExternalID))
		candidates = []source{{table: "groups", id: "id", conditions: []condition{where("external_id = ?", q.ExternalID)}}}
	}
	if q.Source != (rolecall.MemberSource{}) {
		l.conditions = append(l.conditions, where("r.source = ?", q.Source))
		candidates = append(candidates, source{table: "groups", id: "id", conditions: []condition{where("source = ?", q.Source)}})
	}
	return l.serve(candidates, q.Count)
}

// InsertGroup inserts a group. Update returns ErrGroupNameTaken or ErrGroupExternalIDTaken if another group of the
// tenant has the name or the external id.
func (t *Tx) InsertGroup(g rolecall.Group) {
	t.q.Exec(insertGroup, t.tenant, g.ID, g.Name, g.NameKey(), NameWords(g.Name), g.Description, g.ExternalID, g.Source, g.CreatedAt, g.UpdatedAt, g.Version)
}

// UpdateGroup stores changed in place of old. It returns false if the stored version is not old.Version, or if the
// group does not exist. Update returns ErrGroupNameTaken or ErrGroupExternalIDTaken if another group has the new name
// or external id. If the name changed, UpdateGroup invalidates all cached data of the tenant, because any user can be in
// the group.
func (t *Tx) UpdateGroup(old, changed rolecall.Group) (bool, error) {
	ok, err := t.updateVersioned(updateGroup, old.ID, old.Version, changed.Name, changed.NameKey(), NameWords(changed.Name), changed.Description,
		changed.ExternalID, changed.UpdatedAt, changed.Version)
	if ok && old.Name != changed.Name {
		t.invalidate(t.tenant)
	}
	return ok, err
}

// HideGroup removes the roles of the group and makes it disappear, so that its many memberships can be deleted later,
// step by step. It invalidates all cached data of the tenant. It returns false if the stored version is not g.Version,
// or if the group does not exist. It can have written something then, so the caller must return an error from Update,
// such as that of CheckVersion. From then on, only HiddenGroup finds the group, and only DeleteMembers its
// memberships. The argument deletion is the id of the event that records the deletion.
func (t *Tx) HideGroup(g rolecall.Group, deletion rolecall.EventID, at rolecall.Time) (bool, error) {
	t.q.Exec(endRolesOfGroup, at, t.tenant, g.ID)
	t.q.Exec(deleteRolesOfGroup, t.tenant, g.ID)
	ok, err := t.updateVersioned(hideGroup, g.ID, g.Version, " "+g.ID.String(), deletion)
	return t.invalidateIf(ok, err, t.tenant)
}

// HiddenGroup returns the id and the name of a hidden group and the event that records its deletion. It returns
// ErrNotFound if the tenant has no hidden group. Of the event, only the id, the type, the actor and the data of the
// request are set. If the event was purged, only the id is set.
func (t *Tx) HiddenGroup() (g rolecall.GroupName, deletion rolecall.Event, err error) {
	e := &deletion
	err = t.row(selectHiddenGroup, []any{t.tenant}, &g.ID, &g.Name, &e.ID, &e.Type, &e.Actor.Type, &e.Actor.ID, &e.Actor.Via, &e.Actor.Token,
		&e.RequestID, &e.SessionID, &e.Source)
	return g, deletion, err
}

// DeleteHiddenGroup deletes the hidden group, if it has no members.
func (t *Tx) DeleteHiddenGroup(id rolecall.GroupID) { t.q.Exec(deleteHiddenGroup, t.tenant, id) }

// CountGroupRoles returns the number of assignments of roles to all groups of the tenant, with the expired ones. It
// counts at most GroupRolesMax of them.
func (t *Tx) CountGroupRoles() (n int, err error) {
	err = t.row(countGroupRoles, []any{t.tenant, rolecall.GroupRolesMax}, &n)
	return n, err
}

// AddMember adds a user to a group and reports whether the user was not a member before. Update returns ErrNotFound if
// the user or the group does not exist. The caller must have found that the group is not hidden.
func (t *Tx) AddMember(m rolecall.Membership) (bool, error) {
	ok, err := t.changed(insertMember, t.tenant, m.User, m.Group.ID, m.AddedBy, m.AddedAt)
	return t.invalidateIf(ok, err, m.User)
}

// InsertMemberships inserts many memberships with few statements. The same Update must insert their users, because
// InsertMemberships invalidates no cached data. Update returns ErrNotFound if a user or a group does not exist.
func (t *Tx) InsertMemberships(memberships []rolecall.Membership) {
	insertRows(t, insertMembers, memberships, func(b *builder, m rolecall.Membership) {
		b.write("($1, ?, ?, ?, ?)", m.User, m.Group.ID, m.AddedBy, m.AddedAt)
	})
}

// JoinGroups is InsertMemberships for users who exist already: it invalidates their cached data.
func (t *Tx) JoinGroups(memberships []rolecall.Membership) {
	t.InsertMemberships(memberships)
	for i := range memberships {
		t.invalidate(memberships[i].User)
	}
}

// LeaveGroups removes the user from the groups at the time.
func (t *Tx) LeaveGroups(user rolecall.UserID, groups []rolecall.GroupID, at rolecall.Time) {
	for chunk := range slices.Chunk(groups, rowsAtOnce) {
		b := &builder{args: []any{at, t.tenant, user}}
		b.write(endMembers + " and m.user_id = $3")
		b.all([]condition{oneOf("m.group_id", chunk)})
		b.write(" on conflict do nothing")
		b.exec(t.q)
		b = &builder{args: []any{t.tenant, user}}
		b.write(deleteMembersOfUser)
		b.all([]condition{oneOf("group_id", chunk)})
		b.exec(t.q)
	}
	t.invalidate(user)
}

// GroupsOfSource returns the groups of the source that the user is in, and the groups of the source that the values
// name: by their NameKey or by their external id. It reads a bounded number of rows, if the values have a bound. The
// lists are not sorted.
func (t *Tx) GroupsOfSource(source rolecall.MemberSource, user rolecall.UserID, by rolecall.GroupMatch, values []string) (joined, named []rolecall.Group, err error) {
	b := &builder{args: []any{t.tenant, source, user}}
	b.write(selectGroupsOfMember)
	if len(values) > 0 {
		column := "r.name_key"
		if by == rolecall.MatchExternalID {
			column = "r.external_id"
		}
		b.write(" union all " + selectGroupsIn)
		b.all([]condition{oneOf(column, values)})
	}
	_, err = b.query(t.q, func(scan func(dest ...any) error) error {
		var isMember int64
		var g rolecall.Group
		err := scan(append([]any{&isMember}, groupDest(&g)...)...)
		if isMember == 1 {
			joined = append(joined, g)
		} else {
			named = append(named, g)
		}
		return err
	})
	return joined, named, err
}

// RemoveMember removes the user from the group at the time, and reports whether the user was a member.
func (t *Tx) RemoveMember(user rolecall.UserID, group rolecall.GroupID, at rolecall.Time) (bool, error) {
	t.q.Exec(endMember, at, t.tenant, user, group)
	ok, err := t.changed(deleteMember, t.tenant, user, group)
	return t.invalidateIf(ok, err, user)
}

// Memberships returns the memberships of the user, sorted by the id of the group. There are at most GroupsOfUserMax.
func (t *Tx) Memberships(user rolecall.UserID) (all []rolecall.Membership, err error) {
	_, err = t.q.Query(selectMemberships, []any{t.tenant, user}, into(&all, membershipDest))
	return all, err
}

// Membership returns the membership of the user in the group, or ErrNotFound.
func (t *Tx) Membership(user rolecall.UserID, group rolecall.GroupID) (m rolecall.Membership, err error) {
	err = t.row(selectMembership, []any{t.tenant, user, group}, membershipDest(&m)...)
	return m, err
}

// DeleteMembers deletes up to limit memberships of a hidden group, which end at the time, and returns them. It
// invalidates no cached data, because HideGroup has already invalidated the cached data of the tenant.
func (t *Tx) DeleteMembers(group rolecall.GroupName, at rolecall.Time, limit int) ([]rolecall.Membership, error) {
	var last rolecall.UserID
	_, err := t.q.Query(selectMembers, []any{t.tenant, group.ID, limit}, func(scan func(dest ...any) error) error { return scan(&last) })
	if err != nil || last.IsZero() {
		return nil, err
	}
	t.q.Exec(endMembersUpTo, at, t.tenant, group.ID, last)
	var deleted []rolecall.Membership
	_, err = t.q.Query(deleteMembers, []any{t.tenant, group.ID, last}, into(&deleted, func(m *rolecall.Membership) []any {
		m.Group = group
		return []any{&m.User, &m.AddedBy, &m.AddedAt}
	}))
	return deleted, err
}
