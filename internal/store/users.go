package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rolecall/rolecall"
)

// columnOf returns the column of a member, such as external_id for externalId.
func columnOf(m rolecall.UserMember) string {
	var column strings.Builder
	for _, r := range m.String() {
		if unicode.IsUpper(r) {
			column.WriteByte('_')
		}
		column.WriteRune(unicode.ToLower(r))
	}
	return column.String()
}

// memberColumns returns the results of the function for the columns of the members, separated by commas.
func memberColumns(members rolecall.UserMembers, sql func(column string) string) string {
	var columns []string
	for m := range members.All() {
		columns = append(columns, sql(columnOf(m)))
	}
	return strings.Join(columns, ", ")
}

// updatedMembers are the members that updateUser sets.
const updatedMembers = rolecall.AllUserMembers &^ (1 << rolecall.MemberCreatedAt)

var (
	userColumns = `r.id, ` + memberColumns(rolecall.AllUserMembers, func(column string) string { return "r." + column }) + `, r.version`

	// holderColumns are userColumns of a user r in a query with a row for each assignment a. Only the first
	// row has the metadata, which can be larger than all other columns.
	holderColumns = strings.Replace(userColumns, `r.metadata`, `case when `+followsAssignment+` then null else r.metadata end`, 1)

	// memberUserColumns are userColumns without the metadata, for a row of holderColumns that is not the first.
	memberUserColumns = strings.Replace(userColumns, `r.metadata`, `null`, 1)

	// accountColumns are userColumns of a service account r.
	accountColumns = `r.id, ` + memberColumns(rolecall.AllUserMembers, func(column string) string {
		switch column {
		case "email":
			return "''"
		case "metadata":
			return "'{}'"
		case "name", "status", "created_at", "updated_at":
			return "r." + column
		}
		return "null"
	}) + `, r.version`

	selectUsers = `select ` + userColumns + ` from users r where r.tenant_id = $1`

	selectUser = selectUsers + ` and r.id = $2`

	selectUserByEmail = `select ` + userColumns + `, coalesce(p.hash, '')
		from users r left join passwords p on p.tenant_id = r.tenant_id and p.user_id = r.id
		where r.tenant_id = $1 and r.email_key = $2`

	// A DuplicateEmailKey is greater than the EmailKey.
	selectUserBySpelling = `select ` + userColumns + `, coalesce(p.hash, '')
		from users r left join passwords p on p.tenant_id = r.tenant_id and p.user_id = r.id
		where r.tenant_id = $1 and r.email_key in ($2, $3) order by r.email_key desc limit 1`

	releaseEmail = `update users set email_key = $1 where tenant_id = $2 and email_key = (
		select min(email_key) from users where tenant_id = $2 and email_key > $3 and email_key < $4)`

	insertUsers = `insert into users (tenant_id, id, ` + memberColumns(rolecall.AllUserMembers, strings.Clone) + `,
			email_key, name_key, department_key, words, version, last_login_at)
		values `

	// insertedUser is the row of one user, after the tenant.
	insertedUser = strings.Repeat(`, ?`, len(insertedValues(&rolecall.User{}, nil))) + `, 0)`

	insertUser = insertUsers + numbered(`(?`+insertedUser)

	// updateUser begins with the email address, so that $1 is the new one.
	updateUser = numbered(`update users set ` + memberColumns(updatedMembers, func(column string) string { return column + " = ?" }) + `,
			email_key = case when email = $1 then email_key else ? end, name_key = ?, department_key = ?, words = ?, version = ?
		where tenant_id = ? and id = ? and version = ? returning version`)
)

const (
	deleteUser = `delete from users where tenant_id = $1 and id = $2 and version = $3 returning version`

	upsertPassword = `insert into passwords (tenant_id, user_id, hash, changed_at) values ($1, $2, $3, $4)
		on conflict (tenant_id, user_id) do update set hash = excluded.hash, changed_at = excluded.changed_at`

	replacePassword = `update passwords set hash = $1, changed_at = case when hash = $1 then changed_at else $2 end
		where tenant_id = $3 and user_id = $4 and hash = $5 returning user_id`

	lockActiveUser = `update users set version = version where tenant_id = $1 and id = $2 and status = $3 returning id`

	selectLastLogin = `select last_login_at from users where tenant_id = $1 and id = $2`

	selectPassword = `select hash from passwords where tenant_id = $1 and user_id = $2`

	// The recursion finds each department through the index, as the next one after the
	// previous department. So the cost does not depend on the number of users.
	selectDepartments = `with recursive departments (key) as (
			select min(department_key) from users where tenant_id = $1 and department_key is not null
			union all
			select (select min(u.department_key) from users u where u.tenant_id = $1 and u.department_key > departments.key)
			from departments where departments.key is not null)
		select (select u.department from users u where u.tenant_id = $1 and u.department_key = departments.key order by u.id limit 1)
		from departments where departments.key is not null limit 200`
)

func userDest(u *rolecall.User) []any {
	dest := append(make([]any, 0, rolecall.UserMemberCount+2), &u.ID)
	for m := range rolecall.UserMemberCount {
		dest = append(dest, m.Of(u))
	}
	return append(dest, &u.Version)
}

// storedValue returns the value of the member for its column.
func storedValue(u *rolecall.User, m rolecall.UserMember) any {
	switch value := m.Of(u).(type) {
	case *string:
		return *value
	case **string:
		return *value
	case *rolecall.UserStatus:
		return string(*value)
	case *rolecall.Metadata:
		return *value
	case *rolecall.Time:
		return *value
	case **rolecall.DirectoryID:
		if *value == nil {
			return nil
		}
		return **value
	default:
		panic(fmt.Sprintf("store: the member %v has the type %T", m, value))
	}
}

// storedValues appends the values of the members and of the keys, the words and the version to list.
func storedValues(list []any, u *rolecall.User, members rolecall.UserMembers, words Words) []any {
	for m := range members.All() {
		list = append(list, storedValue(u, m))
	}
	return append(list, u.EmailKey(), u.NameKey(), u.DepartmentKey(), words.Text(), u.Version)
}

// insertedValues returns the values of insertedUser.
func insertedValues(u *rolecall.User, words Words) []any {
	return storedValues([]any{u.ID}, u, rolecall.AllUserMembers, words)
}

// holderDest is userDest for holderColumns.
func holderDest(u *rolecall.User) []any {
	dest := userDest(u)
	dest[slices.Index(dest, any(&u.Metadata))] = once{&u.Metadata}
	return dest
}

// UserByID returns the user with this id, or ErrNotFound.
func (t *Tx) UserByID(id rolecall.UserID) (u rolecall.User, err error) {
	err = t.row(selectUser, []any{t.tenant, id}, userDest(&u)...)
	return u, err
}

// UsersByID returns the users with these ids that exist, in no particular order.
func (t *Tx) UsersByID(ids []rolecall.UserID) ([]rolecall.User, error) {
	return byIDs(t, selectUsers, "r.id", ids, userDest)
}

// UserByEmail returns the user with this address and the hash of the user's password. The
// hash is empty if the user has no password. UserByEmail returns ErrNotFound if no user
// has the address. Of users with different spellings of the domain, it returns the one with
// the same spelling.
func (t *Tx) UserByEmail(email string) (u rolecall.User, passwordHash string, err error) {
	key := rolecall.EmailKey(email)
	statement, args := selectUserByEmail, []any{t.tenant, key}
	if rolecall.CanHaveDuplicates(key) {
		statement, args = selectUserBySpelling, append(args, rolecall.DuplicateEmailKey(email))
	}
	err = t.row(statement, args, append(userDest(&u), &passwordHash)...)
	return u, passwordHash, err
}

// emailIs returns an SQL condition that is true if the address in the column has the key.
func emailIs(column, key string) condition {
	if rolecall.CanHaveDuplicates(key) {
		return where(column+" >= ? and "+column+" < ?", key, key+"!") // the character after the space
	}
	return where(column+" = ?", key)
}

// releaseEmail gives the address of a user, who no longer has it, to a user with another spelling of it.
func (t *Tx) releaseEmail(key string) {
	if rolecall.CanHaveDuplicates(key) {
		t.q.Exec(releaseEmail, key, t.tenant, key+" ", key+"!")
	}
}

// UsersWithAddress returns up to limit users with the address in the tenants that are not deleted and have
// one of the names, after the tenant, in the order of the ids of the tenants. Nil names are all names.
// Only these ids, the ids of the users and their status are set. The statement selects the tenants before
// the limit, so that a limited key does not see by the end of a page that others have the address. It can
// only be called in a View of the zero tenant.
func (t *Tx) UsersWithAddress(emailKey string, names []string, after rolecall.TenantID, limit int) (users []rolecall.UserInTenant, err error) {
	t.q.AllowAddressInAllTenants(emailKey)
	var b builder
	b.write("select r.tenant_id, r.id, r.status from users r cross join tenants t where r.email_key = ? and t.id = r.tenant_id"+
		" and t.status <> 'deleted' and t.status <> 'purged'", emailKey)
	if names != nil {
		b.all([]condition{oneOf("t.name", names)})
	}
	if !after.IsZero() {
		b.write(" and r.tenant_id > ?", after)
	}
	b.write(" order by r.tenant_id limit ?", limit)
	_, err = b.query(t.q, into(&users, func(u *rolecall.UserInTenant) []any { return []any{&u.Tenant.ID, &u.UserID, &u.Status} }))
	return users, err
}

// InsertUser inserts a user and the search words of the name and the address. Update
// returns ErrEmailTaken or ErrExternalIDTaken if another user of the tenant has the
// address or the external id.
func (t *Tx) InsertUser(u rolecall.User) {
	words := WordsOf(&u)
	t.q.Exec(insertUser, slices.Concat([]any{t.tenant}, insertedValues(&u, words))...)
	t.insertWords(u.ID, words.Rows())
}

// UpdateUser stores changed in place of old. It returns false if the stored version is not
// old.Version, or if the user does not exist. Update returns the same errors as for
// InsertUser.
func (t *Tx) UpdateUser(old, changed rolecall.User) (bool, error) {
	before, after := WordsOf(&old), WordsOf(&changed)
	ok, err := t.updateVersioned(updateUser, old.ID, old.Version, storedValues(nil, &changed, updatedMembers, after)...)
	if ok && old.EmailKey() != changed.EmailKey() {
		t.releaseEmail(old.EmailKey())
	}
	if ok {
		gone, come := before.Rows(), after.Rows()
		if !slices.Equal(gone, come) { // each row contains the beginnings of all words
			t.deleteWords(old.ID, gone)
			t.insertWords(old.ID, come)
		}
	}
	return t.invalidateIf(ok, err, old.ID)
}

// DeleteUser deletes the user and all rows that depend on the user, and inserts a
// tombstone. It returns false if the stored version is not u.Version, or if the user does
// not exist. It can have written something then, so the caller must return an error from
// Update, such as that of CheckVersion.
func (t *Tx) DeleteUser(u rolecall.User, at rolecall.Time) (bool, error) {
	assignments, err := t.DirectAssignments(u.ID)
	if err != nil {
		return false, err
	}
	memberships, err := t.Memberships(u.ID)
	if err != nil {
		return false, err
	}
	t.q.Exec(endAssignmentsOfUser, at, t.tenant, u.ID)
	t.q.Exec(endMembersOfUser, at, t.tenant, u.ID)
	ok, err := t.updateVersioned(deleteUser, u.ID, u.Version)
	if !ok || err != nil {
		return false, err
	}
	t.releaseEmail(u.EmailKey())
	t.insertTombstone(u, assignments, memberships, at)
	t.deleteWords(u.ID, WordsOf(&u).Rows())
	t.DeleteAllOneTimeTokens(u.ID)
	t.q.Exec(deleteMailsOfUser, t.tenant, u.ID)
	t.invalidate(u.ID)
	return true, nil
}

// SetPassword stores the hash of the user's password. It replaces an earlier hash. Update
// returns ErrNotFound if the user does not exist.
func (t *Tx) SetPassword(id rolecall.UserID, hash string, at rolecall.Time) {
	t.q.Exec(upsertPassword, t.tenant, id, hash, at)
}

// ReplacePassword replaces the hash of the user's password. It returns false if the stored
// hash is not old. A call with hash equal to old only locks the hash until the end of this
// Update, so that no other Update changes it.
func (t *Tx) ReplacePassword(id rolecall.UserID, old, hash string, at rolecall.Time) (bool, error) {
	return t.changed(replacePassword, hash, at, t.tenant, id, old)
}

// LockActiveUser reports whether the user is active, and prevents changes of the
// user until the end of this Update.
func (t *Tx) LockActiveUser(id rolecall.UserID) (bool, error) {
	return t.changed(lockActiveUser, t.tenant, id, string(rolecall.UserActive))
}

// LastLogin returns when the user last signed in, or ErrNotFound. The result is zero if
// the user has never signed in.
func (t *Tx) LastLogin(id rolecall.UserID) (at rolecall.Time, err error) {
	err = t.row(selectLastLogin, []any{t.tenant, id}, &at)
	return at, err
}

// PasswordHash returns the hash of the user's password. It returns "" if the user has no
// password or does not exist.
func (t *Tx) PasswordHash(id rolecall.UserID) (hash string, err error) {
	err = t.row(selectPassword, []any{t.tenant, id}, &hash)
	if errors.Is(err, rolecall.ErrNotFound) {
		return "", nil
	}
	return hash, err
}

// Departments returns the names of up to 200 departments of users, in the order of their
// keys. Users can spell a department differently. Departments returns the spelling of the
// oldest user in it. It reads a bounded number of rows.
func (t *Tx) Departments() (list []string, err error) {
	_, err = t.q.Query(selectDepartments, []any{t.tenant}, func(scan func(dest ...any) error) error {
		var department string
		err := scan(&department)
		list = append(list, department)
		return err
	})
	return list, err
}

const selectSignInDetails = `select r.id, r.last_login_at,
		(select count(*) from totp where tenant_id = $1 and user_id = r.id and sealed is not null),
		(select count(*) from (select 1 from passkeys where tenant_id = $1 and user_id = r.id limit 100) k)
	from users r where r.tenant_id = $1`

// selectRoleNames reads at most RoleNamesMax+1 unexpired assignments of each user.
var selectRoleNames = `select a.user_id, o.id, o."key", o.name
	from users r
	join assignments a on a.tenant_id = $1 and a.user_id = r.id and a.expires_at > ? and a.role_id <= coalesce((
		select b.role_id from assignments b where b.tenant_id = $1 and b.user_id = r.id and b.expires_at > ?
		order by b.role_id limit 1 offset ` + strconv.Itoa(rolecall.RoleNamesMax) + `), ?)
	join roles o on o.tenant_id = $1 and o.id = a.role_id and o.deletion is null
	where r.tenant_id = $1`

// selectGroupRoleNames begins the statement that reads at most RoleNamesMax+1 roles that each user has through groups, and
// endGroupRoleNames ends it, after the condition on the users r.
const selectGroupRoleNames = `select h.user_id, o.id, o."key", o.name
	from (select user_id, role_id, row_number() over (partition by user_id order by role_id) as place
		from (select distinct m.user_id, a.role_id from users r
			join group_members m on m.tenant_id = $1 and m.user_id = r.id
			join group_roles a on a.tenant_id = $1 and a.group_id = m.group_id and a.expires_at > ?
			where r.tenant_id = $1`

var endGroupRoleNames = `) d) h
	join roles o on o.tenant_id = $1 and o.id = h.role_id and o.deletion is null
	where h.place <= ` + strconv.Itoa(rolecall.RoleNamesMax+1)

// lastID is the greatest id.
var lastID = rolecall.RoleID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// SignInDetails returns the last sign-in and the second factors of the users, in no particular
// order. It counts at most 100 passkeys of a user.
func (t *Tx) SignInDetails(ids []rolecall.UserID) ([]rolecall.SignInDetails, error) {
	return byIDs(t, selectSignInDetails, "r.id", ids, func(d *rolecall.SignInDetails) []any {
		return []any{&d.User, &d.LastLoginAt, &d.TOTP, &d.Passkeys}
	})
}

// heldRole is a role of a user.
type heldRole struct {
	user rolecall.UserID
	role rolecall.Role
}

// RoleNames returns the roles that each user has directly or through groups, by assignments that have not expired at now,
// sorted by id. Of each role, only the id, the key and the name are set. RoleNames returns
// at most RoleNamesMax+1 roles of a user, so that the caller can see whether a user has
// more than RoleNamesMax.
func (t *Tx) RoleNames(ids []rolecall.UserID, now rolecall.Time) (map[rolecall.UserID][]rolecall.Role, error) {
	var held []heldRole
	for chunk := range slices.Chunk(ids, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write(selectRoleNames, now, now, lastID)
		b.all([]condition{oneOf("r.id", chunk)})
		through := newBuilder(t.tenant)
		through.write(selectGroupRoleNames, now)
		through.all([]condition{oneOf("r.id", chunk)})
		through.write(endGroupRoleNames)
		for _, b := range []*builder{b, through} {
			if _, err := b.query(t.q, into(&held, func(h *heldRole) []any { return []any{&h.user, &h.role.ID, &h.role.Key, &h.role.Name} })); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(held, func(a, b heldRole) int { return bytes.Compare(a.role.ID[:], b.role.ID[:]) })
	roles := map[rolecall.UserID][]rolecall.Role{}
	for _, h := range held {
		of := roles[h.user]
		if len(of) <= rolecall.RoleNamesMax && (len(of) == 0 || of[len(of)-1].ID != h.role.ID) { // not twice
			roles[h.user] = append(of, h.role)
		}
	}
	return roles, nil
}

// These letters say in which member of a user a word occurs.
const (
	memberOfName   = "n"
	memberOfEmail  = "e"
	memberOfEither = "_" // in a pattern
)

const insertWords = `insert into user_words (tenant_id, word, user_id, beginnings) values `

// Words are search words. Before each word of a user is the letter of the member that contains it.
type Words []string

// WordsOf returns the search words of the user.
func WordsOf(u *rolecall.User) Words {
	var all Words
	for _, word := range rolecall.WordsToFind(u.Name) {
		all = append(all, memberOfName+word)
	}
	for _, word := range rolecall.WordsToFind(u.Email) {
		all = append(all, memberOfEmail+word)
	}
	return all
}

// WordsIn returns the words of a text that Text returned.
func WordsIn(text string) Words { return strings.Fields(text) }

// Text returns the words as the column words of the table users contains them. A search
// checks this column in addition to the index of words.
func (w Words) Text() string {
	if len(w) == 0 {
		return ""
	}
	return " " + strings.Join(w, " ")
}

// Rows returns the words as the table user_words contains them: each word once, without
// the letter of its member. A separate condition on the user checks whether the caller may
// search the member with the word.
func (w Words) Rows() Words {
	var rows Words
	for _, word := range w {
		rows = append(rows, word[1:])
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// Beginnings returns a set of bits for the first letters of the words, similar to a Bloom
// filter. If each search word is the beginning of a word of a user, the user has all bits
// of the search words. Other users rarely have all of these bits.
func (w Words) Beginnings() (bits int64) {
	const letters = 4 // per word; more letters would set too many bits
	for _, word := range w {
		hash := uint64(0)
		n := 0
		for _, letter := range word {
			if n++; n > letters {
				break
			}
			hash = (hash + uint64(letter)) * 0x9E3779B97F4A7C15 // an odd number without a pattern
			bits |= 1 << (hash >> 58)
		}
	}
	return bits
}

// insertWords inserts all words of the user with one statement. The statement has the
// user's id as an argument only once.
func (t *Tx) insertWords(id rolecall.UserID, rows Words) {
	if len(rows) == 0 {
		return
	}
	b := newBuilder(t.tenant)
	b.write(insertWords+"($1, ?, ?, ?)", rows[0], id, rows.Beginnings())
	for _, word := range rows[1:] {
		b.write(", ($1, ?, $3, $4)", word)
	}
	b.exec(t.q)
}

func (t *Tx) deleteWords(id rolecall.UserID, rows Words) {
	if len(rows) == 0 {
		return
	}
	b := newBuilder(t.tenant)
	b.write("delete from user_words where tenant_id = $1")
	b.all([]condition{oneOf("word", rows), where("user_id = ?", id)})
	b.exec(t.q)
}

// InsertUsers inserts many users with few statements. Update returns the same errors as
// for InsertUser.
func (t *Tx) InsertUsers(users []rolecall.User) {
	var found []foundBy
	insertRows(t, insertUsers, users, func(b *builder, u rolecall.User) {
		words := WordsOf(&u)
		rows := words.Rows()
		for _, word := range rows {
			found = append(found, foundBy{word, u.ID, rows.Beginnings()})
		}
		b.write("($1"+insertedUser, insertedValues(&u, words)...)
	})
	// If the words are inserted in the order of the index, each page of the index is
	// visited once.
	slices.SortStableFunc(found, func(a, b foundBy) int { return cmp.Compare(a.word, b.word) })
	insertRows(t, insertWords, found, func(b *builder, f foundBy) { b.write("($1, ?, ?, ?)", f.word, f.user, f.beginnings) })
}

// foundBy is a row of user_words.
type foundBy struct {
	word       string
	user       rolecall.UserID
	beginnings int64
}
