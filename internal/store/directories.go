package store

import (
	"bytes"
	"slices"

	"github.com/rolecall/rolecall"
)

const (
	directoryColumns = `r.id, r.name, r.matching, r.deprovisioning, r.paused, r.created_at, r.updated_at, r.version`

	selectDirectories = `select ` + directoryColumns + ` from directories r where r.tenant_id = $1 and r.deletion is null order by r.id limit $2`

	selectDirectory = `select ` + directoryColumns + ` from directories r where r.tenant_id = $1 and r.id = $2 and r.deletion is null`

	insertDirectory = `insert into directories (tenant_id, id, name, name_key, matching, deprovisioning, paused, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

	updateDirectory = `update directories set name = $1, name_key = $2, matching = $3, deprovisioning = $4, paused = $5, updated_at = $6, version = $7
		where tenant_id = $8 and id = $9 and version = $10 and deletion is null returning version`

	// hideDirectory makes the name available to other directories, as hideGroup does.
	hideDirectory = `update directories set name_key = $1, deletion = $2
		where tenant_id = $3 and id = $4 and version = $5 and deletion is null returning version`

	selectHiddenDirectory = `select id from directories where tenant_id = $1 and deletion is not null order by deletion limit 1`

	deleteHiddenDirectory = `delete from directories where tenant_id = $1 and id = $2 and deletion is not null
		and not exists (select 1 from directory_users where tenant_id = $1 and directory_id = $2)`

	deleteTokensOfDirectory = `delete from directory_tokens where tenant_id = $1 and directory_id = $2`

	directoryTokenColumns = `r.id, r.directory_id, r.name, r.created_by, r.created_at, r.expires_at, r.last_used_at`

	selectDirectoryTokens = `select ` + directoryTokenColumns + ` from directory_tokens r where r.tenant_id = $1 and r.directory_id = $2 order by r.expires_at desc, r.id limit $3`

	selectDirectoryToken = `select ` + directoryTokenColumns + ` from directory_tokens r where r.tenant_id = $1 and r.directory_id = $2 and r.id = $3`

	selectDirectoryByToken = `select ` + directoryTokenColumns + `, d.id, d.name, d.matching, d.deprovisioning, d.paused, d.created_at, d.updated_at, d.version
		from directory_tokens r join directories d on d.tenant_id = r.tenant_id and d.id = r.directory_id and d.deletion is null
		where r.tenant_id = $1 and r.hash = $2`

	insertDirectoryToken = `insert into directory_tokens (tenant_id, id, directory_id, hash, name, created_by, created_at, expires_at, last_used_at, warned)
		values ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0)`

	touchDirectoryToken = `update directory_tokens set last_used_at = $1 where tenant_id = $2 and id = $3 and last_used_at <= $4`

	deleteDirectoryToken = `delete from directory_tokens where tenant_id = $1 and directory_id = $2 and id = $3 returning id`

	warnDirectoryTokens = `update directory_tokens set warned = 1 where tenant_id = $1 and warned = 0 and expires_at <= $2 and expires_at > $3
		returning id, directory_id, name, created_by, created_at, expires_at, last_used_at`

	insertDirectoryRequest = `insert into directory_requests (tenant_id, directory_id, n, at, method, path, status, detail)
		values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`

	selectLastRequest = `select n from directory_requests where tenant_id = $1 and directory_id = $2 order by n desc limit 1`

	deleteDirectoryRequests = `delete from directory_requests where tenant_id = $1 and directory_id = $2 and n <= $3`

	selectDirectoryRequests = `select directory_id, at, method, path, status, detail from directory_requests
		where tenant_id = $1 and directory_id = $2 order by n desc limit $3`

	deleteReleased = `delete from directory_users where tenant_id = $1
		and user_id in (select user_id from directory_users where tenant_id = $1 and directory_id = $2 order by removed, user_id limit $3) returning user_id`

	releaseUsers = `update users set managed_by = null, version = version + 1 where tenant_id = $1 and managed_by = $2`

	selectGroupsOfSource = `select ` + groupColumns + ` from groups r where r.tenant_id = $1 and r.source = $2 and r.deletion is null order by r.name_key`

	releaseGroup = `update groups set source = '', name = $1, name_key = $2, words = $3, external_id = $4, version = version + 1 where tenant_id = $5 and id = $6`

	// With one condition for both, PostgreSQL reads all groups.
	selectGroupConflict = `select r.name_key, '' from groups r where r.tenant_id = $1 and r.source = '' and r.name_key = $2
		union all select '', r.external_id from groups r where r.tenant_id = $1 and r.source = '' and r.external_id = $3`
)

func directoryDest(d *rolecall.Directory) []any {
	return []any{&d.ID, &d.Name, (*string)(&d.Matching), (*string)(&d.Deprovisioning), (*flag)(&d.Paused), &d.CreatedAt, &d.UpdatedAt, &d.Version}
}

func directoryTokenDest(t *rolecall.DirectoryToken) []any {
	return []any{&t.ID, &t.DirectoryID, &t.Name, &t.CreatedBy, &t.CreatedAt, &t.ExpiresAt, &t.LastUsedAt}
}

// Directories returns all directories of the tenant, the oldest first.
func (t *Tx) Directories() ([]rolecall.Directory, error) {
	all := []rolecall.Directory{}
	_, err := t.q.Query(selectDirectories, []any{t.tenant, rolecall.DirectoriesMax}, into(&all, directoryDest))
	return all, err
}

// Directory returns the directory with the id, or ErrNotFound.
func (t *Tx) Directory(id rolecall.DirectoryID) (d rolecall.Directory, err error) {
	err = t.row(selectDirectory, []any{t.tenant, id}, directoryDest(&d)...)
	return d, err
}

// InsertDirectory inserts a directory. Update returns ErrDirectoryNameTaken if another directory of the tenant has the
// name.
func (t *Tx) InsertDirectory(d rolecall.Directory) {
	t.q.Exec(insertDirectory, t.tenant, d.ID, d.Name, d.NameKey(), string(d.Matching), string(d.Deprovisioning), flag(d.Paused), d.CreatedAt, d.UpdatedAt, d.Version)
}

// UpdateDirectory stores changed in place of old. It returns false if the stored version is not old.Version, or if the
// directory does not exist. Update returns ErrDirectoryNameTaken if another directory has the new name.
func (t *Tx) UpdateDirectory(old, changed rolecall.Directory) (bool, error) {
	return t.updateVersioned(updateDirectory, old.ID, old.Version, changed.Name, changed.NameKey(), string(changed.Matching), string(changed.Deprovisioning),
		flag(changed.Paused), changed.UpdatedAt, changed.Version)
}

// HideDirectory deletes the tokens of the directory and makes it disappear, so that its many users can be released
// later, step by step. It returns false if the stored version is not d.Version, or if the directory does not exist. It
// can have written something then, so the caller must return an error from Update, such as that of CheckVersion. The
// argument deletion is the id of the event that records the deletion.
func (t *Tx) HideDirectory(d rolecall.Directory, deletion rolecall.EventID) (bool, error) {
	t.q.Exec(deleteTokensOfDirectory, t.tenant, d.ID)
	return t.updateVersioned(hideDirectory, d.ID, d.Version, " "+d.ID.String(), deletion)
}

// HiddenDirectory returns the id of a directory whose deletion is unfinished. It returns ErrNotFound if the tenant has
// no such directory.
func (t *Tx) HiddenDirectory() (id rolecall.DirectoryID, err error) {
	err = t.row(selectHiddenDirectory, []any{t.tenant}, &id)
	return id, err
}

// ReleaseUsers makes up to limit users of a hidden directory users without a directory, and returns their number. It
// deletes the directory if it has no users.
func (t *Tx) ReleaseUsers(id rolecall.DirectoryID, limit int) (int, error) {
	var released []rolecall.UserID
	if _, err := t.q.Query(deleteReleased, []any{t.tenant, id, limit}, into(&released, oneColumn)); err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(released, rowsAtOnce) {
		b := &builder{args: []any{t.tenant, id}}
		b.write(releaseUsers)
		b.all([]condition{oneOf("id", chunk)})
		b.exec(t.q)
	}
	t.invalidateUsers(released)
	if len(released) == 0 {
		t.q.Exec(deleteHiddenDirectory, t.tenant, id)
	}
	return len(released), nil
}

// ReleaseGroups makes the groups of a source groups without a source. If a group without a source has the name of such
// a group, this one gets the suffix. If a group without a source has its external id, this one loses it. The suffix must
// make the names unique.
func (t *Tx) ReleaseGroups(from rolecall.MemberSource, suffix func(rolecall.Group) string) error {
	groups, err := t.AllGroupsOfSource(from)
	if err != nil {
		return err
	}
	for _, g := range groups {
		var externalID string
		if g.ExternalID != nil {
			externalID = *g.ExternalID
		}
		var nameTaken, idTaken bool
		_, err := t.q.Query(selectGroupConflict, []any{t.tenant, g.NameKey(), externalID}, func(scan func(dest ...any) error) error {
			var nameKey, other string
			err := scan(&nameKey, &other)
			nameTaken = nameTaken || nameKey == g.NameKey()
			idTaken = idTaken || other != "" && other == externalID
			return err
		})
		if err != nil {
			return err
		}
		if nameTaken {
			g.Name = suffix(g) // not during the query, because it can query too
		}
		if idTaken {
			g.ExternalID = nil
		}
		t.q.Exec(releaseGroup, g.Name, g.NameKey(), NameWords(g.Name), g.ExternalID, t.tenant, g.ID)
	}
	if len(groups) > 0 {
		t.invalidate(t.tenant)
	}
	return nil
}

// DirectoryTokens returns the tokens of the directory, the oldest first, also those that expired in the last 30 days. It
// returns at most maxDirectoryTokens, those that expire last.
func (t *Tx) DirectoryTokens(directory rolecall.DirectoryID) ([]rolecall.DirectoryToken, error) {
	all := []rolecall.DirectoryToken{}
	_, err := t.q.Query(selectDirectoryTokens, []any{t.tenant, directory, maxDirectoryTokens}, into(&all, directoryTokenDest))
	slices.SortFunc(all, func(a, b rolecall.DirectoryToken) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all, err
}

// maxDirectoryTokens is the maximum number of tokens in a list. The list always has those that have not expired, because
// there are at most DirectoryTokensMax of them.
const maxDirectoryTokens = 100

// DirectoryByToken returns the token with this hash and its directory, or ErrNotFound. The token can have expired.
func (t *Tx) DirectoryByToken(hash []byte) (d rolecall.Directory, token rolecall.DirectoryToken, err error) {
	err = t.row(selectDirectoryByToken, []any{t.tenant, hash}, slices.Concat(directoryTokenDest(&token), directoryDest(&d))...)
	return d, token, err
}

// DirectoryToken returns the token of the directory with the id, or ErrNotFound.
func (t *Tx) DirectoryToken(directory rolecall.DirectoryID, id rolecall.DirectoryTokenID) (token rolecall.DirectoryToken, err error) {
	err = t.row(selectDirectoryToken, []any{t.tenant, directory, id}, directoryTokenDest(&token)...)
	return token, err
}

// InsertDirectoryToken inserts a token with the hash of its secret. Update returns ErrNotFound if the directory does not
// exist.
func (t *Tx) InsertDirectoryToken(token rolecall.DirectoryToken, hash []byte) {
	t.q.Exec(insertDirectoryToken, t.tenant, token.ID, token.DirectoryID, hash, token.Name, token.CreatedBy, token.CreatedAt, token.ExpiresAt)
}

// TouchDirectoryToken stores at as the time of the token's last use. It writes nothing if the stored time is less than
// TouchInterval before at.
func (t *Tx) TouchDirectoryToken(id rolecall.DirectoryTokenID, at rolecall.Time) {
	t.q.Exec(touchDirectoryToken, at, t.tenant, id, at.Add(-rolecall.TouchInterval))
}

// DeleteDirectoryToken deletes the token of the directory and reports whether it existed.
func (t *Tx) DeleteDirectoryToken(directory rolecall.DirectoryID, id rolecall.DirectoryTokenID) (bool, error) {
	return t.changed(deleteDirectoryToken, t.tenant, directory, id)
}

// WarnDirectoryTokens returns the tokens that expire until the given time, and have not expired at now. It returns each
// token only once.
func (t *Tx) WarnDirectoryTokens(until, now rolecall.Time) (tokens []rolecall.DirectoryToken, err error) {
	_, err = t.q.Query(warnDirectoryTokens, []any{t.tenant, until, now}, into(&tokens, directoryTokenDest))
	return tokens, err
}

func directoryRequestDest(r *rolecall.DirectoryRequest) []any {
	return []any{&r.DirectoryID, &r.At, &r.Method, &r.Path, &r.Status, &r.Detail}
}

// RecordDirectoryRequests stores requests of the directory, the oldest first, and forgets the oldest stored ones above
// DirectoryRequestsMax. If another process stores requests at the same time, some can be lost. Update returns ErrNotFound
// if the directory does not exist.
func (t *Tx) RecordDirectoryRequests(directory rolecall.DirectoryID, requests []rolecall.DirectoryRequest) error {
	var n int64
	_, err := t.q.Query(selectLastRequest, []any{t.tenant, directory}, func(scan func(dest ...any) error) error { return scan(&n) })
	for _, r := range requests {
		n++
		t.q.Exec(insertDirectoryRequest, t.tenant, directory, n, r.At, r.Method, r.Path, r.Status, r.Detail)
	}
	t.q.Exec(deleteDirectoryRequests, t.tenant, directory, n-rolecall.DirectoryRequestsMax)
	return err
}

// DirectoryRequests returns the last requests of the directory, the newest first.
func (t *Tx) DirectoryRequests(directory rolecall.DirectoryID) ([]rolecall.DirectoryRequest, error) {
	all := []rolecall.DirectoryRequest{}
	_, err := t.q.Query(selectDirectoryRequests, []any{t.tenant, directory, rolecall.DirectoryRequestsMax}, into(&all, directoryRequestDest))
	return all, err
}
