package store

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall"
)

const (
	directoryUserColumns = `d.user_id, d.directory_id, d.external_id, d.active, d.suspended, d.removed, d.attributes`

	selectDirectoryUser = `select ` + directoryUserColumns + ` from directory_users d where d.tenant_id = $1 and d.user_id = $2`

	upsertDirectoryUser = `insert into directory_users (tenant_id, user_id, directory_id, removed, user_name_key, external_id, work_email_key, active, suspended, attributes)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		on conflict (tenant_id, user_id) do update set directory_id = excluded.directory_id, removed = excluded.removed,
			user_name_key = excluded.user_name_key, external_id = excluded.external_id, work_email_key = excluded.work_email_key,
			active = excluded.active, suspended = excluded.suspended, attributes = excluded.attributes`

	setSuspension = `update directory_users set suspended = $1 where tenant_id = $2 and user_id = $3`

	selectUsersOfDirectory = `select user_id from directory_users where tenant_id = $1`

	touchGroup = `update groups set updated_at = case when updated_at < $1 then $1 else updated_at + 1 end, version = version + 1
		where tenant_id = $2 and id = $3 and version = $4 and deletion is null returning version`

	selectMemberIDs = `select user_id from group_members where tenant_id = $1 and group_id = $2 order by user_id limit $3`

	endMembersIn = endMembers + ` and m.group_id = $3`

	deleteMembersIn = `delete from group_members where tenant_id = $1 and group_id = $2`
)

func directoryUserDest(u *rolecall.DirectoryUser) []any {
	return []any{&u.User, &u.Directory, &u.ExternalID, (*flag)(&u.Active), (*flag)(&u.Suspended), (*flag)(&u.Removed), &u.Attributes}
}

// DirectoryUser returns the data of the directory of the user. It returns ErrNotFound if the user has no directory, or if
// the user does not exist. UserName and WorkEmail of the result are not set, because only their keys are stored.
func (t *Tx) DirectoryUser(id rolecall.UserID) (u rolecall.DirectoryUser, err error) {
	err = t.row(selectDirectoryUser, []any{t.tenant, id}, directoryUserDest(&u)...)
	return u, err
}

// SetDirectoryUser stores the data of the directory of a user. The caller must also store the directory in the user with
// InsertUser or UpdateUser, which invalidates cached data. Update returns ErrUserNameTaken if another user of the
// directory has the userName, and ErrNotFound if the user or the directory does not exist.
func (t *Tx) SetDirectoryUser(u rolecall.DirectoryUser) {
	var nameKey, emailKey *string
	if !u.Removed {
		nameKey = new(u.UserNameKey())
	}
	if u.WorkEmail != "" {
		emailKey = new(rolecall.EmailKey(u.WorkEmail))
	}
	t.q.Exec(upsertDirectoryUser, t.tenant, u.User, u.Directory, flag(u.Removed), nameKey, u.ExternalID, emailKey, flag(u.Active), flag(u.Suspended), u.Attributes)
}

// SetSuspension stores whether the directory has suspended the user. It invalidates no cached data, because the status of
// the user says whether the user is suspended.
func (t *Tx) SetSuspension(u rolecall.DirectoryUser) {
	t.q.Exec(setSuspension, flag(u.Suspended), t.tenant, u.User)
}

// DirectoryUsers returns the users that q selects, without those that the directory has deleted.
func (t *Tx) DirectoryUsers(q rolecall.DirectoryUserQuery) ([]rolecall.DirectoryEntry, error) {
	b := newBuilder(t.tenant)
	b.write("select " + userColumns + ", " + directoryUserColumns + " from (")
	b.write("select user_id from directory_users where tenant_id = $1")
	b.all(directoryConditions(&q))
	if !q.After.IsZero() {
		b.write(" and user_id > ?", q.After)
	}
	b.write(" order by user_id")
	b.limit(q.Limit)
	if q.Offset > 0 {
		b.text.WriteString(" offset " + strconv.Itoa(q.Offset))
	}
	b.write(") c join directory_users d on d.tenant_id = $1 and d.user_id = c.user_id join users r on r.tenant_id = $1 and r.id = c.user_id order by c.user_id")
	entries := []rolecall.DirectoryEntry{}
	_, err := b.query(t.q, into(&entries, func(e *rolecall.DirectoryEntry) []any {
		return slices.Concat(userDest(&e.User), directoryUserDest(&e.Of))
	}))
	return entries, err
}

// CountDirectoryUsers returns the number of users that q selects.
func (t *Tx) CountDirectoryUsers(q rolecall.DirectoryUserQuery) (n int, err error) {
	b := newBuilder(t.tenant)
	b.write("select count(*) from directory_users where tenant_id = $1")
	b.all(directoryConditions(&q))
	return n, t.row(b.text.String(), b.args, &n)
}

// directoryConditions returns the conditions of q on a row of directory_users.
func directoryConditions(q *rolecall.DirectoryUserQuery) []condition {
	all := []condition{where("directory_id = ?", q.Directory), where("removed = 0")}
	if !q.ID.IsZero() {
		all = append(all, where("user_id = ?", q.ID))
	}
	if q.UserName != "" {
		all = append(all, where("user_name_key = ?", rolecall.TextKey(q.UserName)))
	}
	if q.ExternalID != "" {
		all = append(all, where("external_id = ?", q.ExternalID))
	}
	if q.WorkEmail != "" {
		all = append(all, where("work_email_key = ?", rolecall.EmailKey(q.WorkEmail)))
	}
	if q.Active.Set {
		all = append(all, where("active = ?", flag(q.Active.Value)))
	}
	return all
}

// AmongDirectoryUsers returns the given users that belong to the directory and that it has not deleted, in no particular
// order.
func (t *Tx) AmongDirectoryUsers(directory rolecall.DirectoryID, users []rolecall.UserID) ([]rolecall.UserID, error) {
	return byIDs(t, selectUsersOfDirectory, "user_id", users, oneColumn[rolecall.UserID], where("directory_id = ?", directory), where("removed = 0"))
}

// TouchGroup increments the version of the group, because its members have changed. It returns false if the stored
// version is not g.Version, or if the group does not exist.
func (t *Tx) TouchGroup(g rolecall.Group, at rolecall.Time) (bool, error) {
	return t.updateVersioned(touchGroup, g.ID, g.Version, at)
}

// MemberIDs returns the ids of up to limit members of the group, sorted.
func (t *Tx) MemberIDs(group rolecall.GroupID, limit int) (ids []rolecall.UserID, err error) {
	_, err = t.q.Query(selectMemberIDs, []any{t.tenant, group, limit}, into(&ids, oneColumn))
	return ids, err
}

// AllGroupsOfSource returns all groups of the source, sorted by id. There are at most GroupsMax.
func (t *Tx) AllGroupsOfSource(from rolecall.MemberSource) (groups []rolecall.Group, err error) {
	_, err = t.q.Query(selectGroupsOfSource, []any{t.tenant, from}, into(&groups, groupDest))
	slices.SortFunc(groups, func(a, b rolecall.Group) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return groups, err
}

// CrowdedUsers returns those of the users who are in more than GroupsOfUserMax groups, in no particular order.
func (t *Tx) CrowdedUsers(users []rolecall.UserID) (crowded []rolecall.UserID, err error) {
	for chunk := range slices.Chunk(users, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write("select user_id from group_members where tenant_id = $1")
		b.all([]condition{oneOf("user_id", chunk)})
		b.write(" group by user_id having count(*) > ?", rolecall.GroupsOfUserMax)
		if _, err := b.query(t.q, into(&crowded, oneColumn)); err != nil {
			return nil, err
		}
	}
	return crowded, nil
}

// AddMembers adds users to the group, and returns those who were not members before. Update returns ErrNotFound if a user
// or the group does not exist. The caller must have found that the group is not hidden.
func (t *Tx) AddMembers(group rolecall.GroupID, users []rolecall.UserID, by rolecall.UserID, at rolecall.Time) (added []rolecall.UserID, err error) {
	for chunk := range slices.Chunk(users, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write(insertMembers)
		for i, user := range chunk {
			if i > 0 {
				b.write(", ")
			}
			b.write("($1, ?, ?, ?, ?)", user, group, by, at)
		}
		b.write(" on conflict do nothing returning user_id")
		before := len(added)
		if _, err := b.query(t.q, into(&added, oneColumn)); err != nil {
			return nil, err
		}
		t.invalidateUsers(added[before:])
	}
	return added, nil
}

// RemoveMembers removes users from the group at the time, and returns those who were members.
func (t *Tx) RemoveMembers(group rolecall.GroupID, users []rolecall.UserID, at rolecall.Time) (removed []rolecall.UserID, err error) {
	for chunk := range slices.Chunk(users, rowsAtOnce) {
		b := &builder{args: []any{at, t.tenant, group}}
		b.write(endMembersIn)
		b.all([]condition{oneOf("m.user_id", chunk)})
		b.write(" on conflict do nothing")
		b.exec(t.q)
		b = &builder{args: []any{t.tenant, group}}
		b.write(deleteMembersIn)
		b.all([]condition{oneOf("user_id", chunk)})
		b.write(" returning user_id")
		before := len(removed)
		if _, err := b.query(t.q, into(&removed, oneColumn)); err != nil {
			return nil, err
		}
		t.invalidateUsers(removed[before:])
	}
	return removed, nil
}

func (t *Tx) invalidateUsers(users []rolecall.UserID) {
	for _, user := range users {
		t.invalidate(user)
	}
}
