package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var isolationCases = []testCase{
	{"A tenant changes nothing by the IDs of another tenant", func(f *fixture) {
		c := f.fill()
		before := f.state(c)
		other := f.in(f.newTenant("other"))
		changesNothing(other, c)
		changesNoMachine(other, c)
		changesNoSession(other, c)
		changesNoDirectory(other, c)
		same(f, f.state(c), before)
	}},
	{"Without a tenant nothing can be written", func(f *fixture) {
		none := f.in(rolecall.TenantID{})
		for name, write := range map[string]func(*store.Tx){
			"user":            func(tx *store.Tx) { tx.InsertUser(aUser("Ada Lovelace")) },
			"role":            func(tx *store.Tx) { tx.InsertRole(aRole("Support")) },
			"key":             func(tx *store.Tx) { tx.InsertKey(f.aKey()) },
			"event":           func(tx *store.Tx) { tx.InsertEvent(anEvent(aUser("Ada Lovelace").ID)) },
			"token":           func(tx *store.Tx) { tx.InsertOneTimeToken(aReset(aUser("Ada Lovelace")), aHash()) },
			"service account": func(tx *store.Tx) { tx.InsertServiceAccount(aServiceAccount("Import")) },
		} {
			if none.tryWrite(write) == nil {
				f.Errorf("a %s was written without a tenant", name)
			}
		}
	}},
	{"Tenants list, search and count only their own rows", func(f *fixture) {
		f.crowd(20)
		other := f.in(f.newTenant("other"))
		users := other.crowd(7)
		q := everyone()
		q.Limit, q.Count, q.Words = 3, true, []string{"example"}
		same(f, ids(other.readAll(q, nil)), ids(expected(users, nil, q)))
		page := read(other, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) })
		same(f, page.Total, &rolecall.Total{Count: 7, Exact: true})
	}},
	{"Concurrent tenants read only their own rows", func(f *fixture) {
		const tenants, rounds = 6, 15
		fixtures := make([]*fixture, tenants)
		for i := range fixtures {
			fixtures[i] = f.in(f.newTenant(fmt.Sprintf("t-%d", i)))
		}
		for _, err := range parallel(4*tenants, func(i int) error { return fixtures[i%tenants].writeAndReadAll(i%tenants, rounds) }) {
			f.is(err, nil)
		}
	}},
}

// writeAndReadAll inserts users whose names contain the mark, and reads all users of the
// tenant after each insert. It returns an error if a user's name does not contain the
// mark, because that user belongs to another tenant.
func (f *fixture) writeAndReadAll(mark, rounds int) error {
	name := fmt.Sprintf("Canary %d", mark)
	for round := range rounds {
		if err := f.tryWrite(func(tx *store.Tx) { tx.InsertUser(aUser(name)) }); err != nil {
			return err
		}
		page, err := tryRead(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(everyone()) })
		if err != nil {
			return err
		}
		if len(page.Items) <= round {
			return fmt.Errorf("%d users after %d were written", len(page.Items), round+1)
		}
		for _, u := range page.Items {
			if u.Name != name {
				return fmt.Errorf("%s in the list of %s", u.Name, name)
			}
		}
	}
	return nil
}

// Isolated returns the database. After each View, it repeats the statements that have read rows with the ID of an empty
// tenant in place of the own one, and fails the test if data is read then: the conditions of a statement must hide the
// rows of other tenants.
func Isolated(t testing.TB, db store.Database) store.Database { return isolated{db, t, false} }

// RowSecured returns the database. After each View, it repeats the statements that have read rows in a View of an empty
// tenant, with the same arguments, and fails the test if data is read then: row security must hide the rows.
func RowSecured(t testing.TB, db store.Database) store.Database { return isolated{db, t, true} }

type isolated struct {
	store.Database
	t           testing.TB
	rowSecurity bool
}

// readStatement is a statement that has read rows.
type readStatement struct {
	query   string
	args    []any
	columns int // zero if the rows were only counted
}

// View runs fn, and repeats its statements for another tenant.
func (d isolated) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	var reads []readStatement
	err := d.Database.View(ctx, tenant, func(q store.Querier) error { return fn(readRecorder{q, tenant, &reads}) })
	for _, r := range reads {
		reader := tenant
		if d.rowSecurity {
			if table := readTable.FindStringSubmatch(r.query); table != nil && table[1] == "tenants" {
				continue // this table has no row security, because a request begins with it
			}
			reader = rolecall.NewID[rolecall.Tenant](start)
		} else {
			r.args = slices.Clone(r.args)
			for i := range r.args {
				if r.args[i] == any(tenant) {
					r.args[i] = rolecall.NewID[rolecall.Tenant](start)
				}
			}
		}
		if err := d.Database.View(context.WithoutCancel(ctx), reader, func(q store.Querier) error { return d.readsNothing(q, r) }); err != nil {
			d.t.Errorf("another tenant: %v", err)
		}
	}
	return err
}

// readsNothing fails the test if the statement returns a value other than null, zero and constants of the statement.
func (d isolated) readsNothing(q store.Querier, r readStatement) error {
	_, err := q.Query(r.query, r.args, func(scan func(dest ...any) error) error {
		if r.columns == 0 {
			d.t.Errorf("another tenant gets a row by: %s", r.query)
			return nil
		}
		row, dest := make([]any, r.columns), make([]any, r.columns)
		for i := range row {
			dest[i] = &row[i]
		}
		err := scan(dest...)
		if slices.ContainsFunc(row, func(value any) bool {
			return value != nil && fmt.Sprint(value) != "0" && !strings.Contains(r.query, fmt.Sprintf("select %v, ", value))
		}) {
			d.t.Errorf("another tenant reads %v by: %s", row, r.query)
		}
		return err
	})
	return err
}

// readRecorder records the statements about a tenant that read rows.
type readRecorder struct {
	store.Querier
	tenant rolecall.TenantID
	reads  *[]readStatement
}

// Query runs the statement.
func (r readRecorder) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	columns := 0
	n, err := r.Querier.Query(query, args, func(scan func(dest ...any) error) error {
		return each(func(dest ...any) error {
			columns = len(dest)
			return scan(dest...)
		})
	})
	if err == nil && n > 0 && slices.Contains(args, any(r.tenant)) {
		*r.reads = append(*r.reads, readStatement{query, args, columns})
	}
	return n, err
}

func changesNothing(f *fixture, c contents) {
	f.Helper()
	u, role, key, factors := c.users[0], c.roles[0], c.keys[0], c.factors[0]
	changed, changedRole := u, role
	changed.Name, changed.Version = "Another Name", u.Version+1
	changedRole.Name, changedRole.Version = "Something Else", role.Version+1
	for name, try := range map[string]func(*store.Tx) (bool, error){
		"UpdateUser":         func(tx *store.Tx) (bool, error) { return tx.UpdateUser(u, changed) },
		"DeleteUser":         func(tx *store.Tx) (bool, error) { return tx.DeleteUser(u, start) },
		"ReplacePassword":    func(tx *store.Tx) (bool, error) { return tx.ReplacePassword(u.ID, "hash", "stolen", start) },
		"LockActiveUser":     func(tx *store.Tx) (bool, error) { return tx.LockActiveUser(u.ID) },
		"UpdateRole":         func(tx *store.Tx) (bool, error) { return tx.UpdateRole(role, changedRole) },
		"DeleteRole":         func(tx *store.Tx) (bool, error) { return tx.DeleteRole(role) },
		"HideRole":           func(tx *store.Tx) (bool, error) { return tx.HideRole(role, rolecall.NewID[rolecall.Event](start)) },
		"DeleteAssignment":   func(tx *store.Tx) (bool, error) { return tx.DeleteAssignment(rolecall.HolderOf(u.ID), role.ID, start) },
		"DeleteInvitation":   func(tx *store.Tx) (bool, error) { return tx.DeleteInvitation(c.invitations[0]) },
		"DeleteInvitationOf": func(tx *store.Tx) (bool, error) { return tx.DeleteInvitationOf(u.ID) },
		"DeleteOneTimeToken": func(tx *store.Tx) (bool, error) { return tx.DeleteOneTimeToken(c.oneTimeTokens[0]) },
		"UseTOTP": func(tx *store.Tx) (bool, error) {
			return tx.UseTOTP(u.ID, factors.TOTP.Sealed, factors.TOTP.Sealed, 1000)
		},
		"ConfirmTOTP":      func(tx *store.Tx) (bool, error) { return tx.ConfirmTOTP(u.ID, factors.TOTP.Sealed, 1000, start) },
		"UsePasskey":       func(tx *store.Tx) (bool, error) { return tx.UsePasskey(factors.Passkeys[0], factors.Passkeys[0]) },
		"RenamePasskey":    func(tx *store.Tx) (bool, error) { return tx.RenamePasskey(factors.Passkeys[0]) },
		"DeletePasskey":    func(tx *store.Tx) (bool, error) { return tx.DeletePasskey(u.ID, factors.Passkeys[0].ID) },
		"UpdateConnection": func(tx *store.Tx) (bool, error) { return tx.UpdateConnection(c.connection, c.connection) },
		"TouchIdentity":    func(tx *store.Tx) (bool, error) { return tx.TouchIdentity(c.identity.ID, "stolen", start) },
		"DeleteIdentity":   func(tx *store.Tx) (bool, error) { _, ok, err := tx.DeleteIdentity(u.ID, c.identity.ID); return ok, err },
		"DeleteConnection": func(tx *store.Tx) (bool, error) {
			identities, _, ok, err := tx.DeleteConnection(c.connection)
			return ok || identities > 0, err
		},
		"DeleteTombstone": func(tx *store.Tx) (bool, error) { return deletesTombstone(tx, c.deleted.ID) },
		"UpdateGroup":     func(tx *store.Tx) (bool, error) { return tx.UpdateGroup(c.group, c.group) },
		"HideGroup": func(tx *store.Tx) (bool, error) {
			return tx.HideGroup(c.group, rolecall.NewID[rolecall.Event](start), start)
		},
		"RemoveMember":     func(tx *store.Tx) (bool, error) { return tx.RemoveMember(u.ID, c.group.ID, start+day) },
		"DeleteGroupRoles": func(tx *store.Tx) (bool, error) { return deletesAny(tx.DeleteGroupRoles(role.ID, start+day)) },
		"DeleteMembers": func(tx *store.Tx) (bool, error) {
			deleted, err := tx.DeleteMembers(nameOf(c.group), start+day, 10)
			return len(deleted) > 0, err
		},
		"DeleteAssignments": func(tx *store.Tx) (bool, error) { return deletesAny(tx.DeleteAssignments(role.ID, start, 10)) },
		"PurgeExpired": func(tx *store.Tx) (bool, error) {
			n, err := tx.PurgeExpired(start+1000*day, start+1000*day, 1000)
			return n > 0, err
		},
	} {
		if change(f, try) {
			f.Errorf("%s reached another tenant", name)
		}
	}
	assignment := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
	for name, write := range map[string]func(*store.Tx){
		"SetPassword":          func(tx *store.Tx) { tx.SetPassword(u.ID, "stolen", start) },
		"UpsertAssignment":     func(tx *store.Tx) { tx.UpsertAssignment(assignment) },
		"UpsertGroupRole":      func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(c.group, role)) },
		"InsertMemberships":    func(tx *store.Tx) { tx.InsertMemberships([]rolecall.Membership{{Group: nameOf(c.group), User: u.ID}}) },
		"JoinGroups":           func(tx *store.Tx) { tx.JoinGroups([]rolecall.Membership{{Group: nameOf(c.group), User: u.ID}}) },
		"UpsertInvitation":     func(tx *store.Tx) { tx.UpsertInvitation(anInvitation(u), aHash()) },
		"UpsertPendingTOTP":    func(tx *store.Tx) { tx.UpsertPendingTOTP(u.ID, aHash()) },
		"InsertPasskey":        func(tx *store.Tx) { tx.InsertPasskey(aPasskey(u)) },
		"InsertIdentity":       func(tx *store.Tx) { tx.InsertIdentity(anIdentity(u, c.connection, "2")) },
		"ReplaceRecoveryCodes": func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash()}) },
	} {
		if err := f.tryWrite(write); rolecall.KindOf(err) != rolecall.NotFound {
			f.Errorf("%s: got %v, want not found", name, err)
		}
	}
	f.write(func(tx *store.Tx) { tx.DeleteKey(key, key.ExpiresAt+1) })
	f.write(func(tx *store.Tx) { tx.LockOwners() })
	f.write(func(tx *store.Tx) { tx.LeaveGroups(u.ID, []rolecall.GroupID{c.group.ID}, start+day) })
	f.write(func(tx *store.Tx) { tx.DeleteOneTimeTokens(u.ID, rolecall.TokenPasswordReset) })
	f.write(func(tx *store.Tx) { tx.DeleteAllOneTimeTokens(u.ID) })
	f.write(func(tx *store.Tx) { tx.DeleteTOTP(u.ID) })
	f.write(func(tx *store.Tx) { tx.DeleteFactors(u.ID) })
}

// changesNoDirectory does the same as changesNothing, for directories and the members of groups.
func changesNoDirectory(f *fixture, c contents) {
	f.Helper()
	d, member := c.directory, []rolecall.UserID{c.users[0].ID}
	for name, try := range map[string]func(*store.Tx) (bool, error){
		"UpdateDirectory":      func(tx *store.Tx) (bool, error) { return tx.UpdateDirectory(d, d) },
		"HideDirectory":        func(tx *store.Tx) (bool, error) { return tx.HideDirectory(d, rolecall.NewID[rolecall.Event](start)) },
		"DeleteDirectoryToken": func(tx *store.Tx) (bool, error) { return tx.DeleteDirectoryToken(d.ID, c.directoryID) },
		"WarnDirectoryTokens": func(tx *store.Tx) (bool, error) {
			tokens, err := tx.WarnDirectoryTokens(start+day, start)
			return len(tokens) > 0, err
		},
		"ReleaseUsers": func(tx *store.Tx) (bool, error) {
			n, err := tx.ReleaseUsers(d.ID, 10)
			return n > 0, err
		},
		"TouchGroup": func(tx *store.Tx) (bool, error) { return tx.TouchGroup(c.group, start+day) },
		"RemoveMembers": func(tx *store.Tx) (bool, error) {
			removed, err := tx.RemoveMembers(c.group.ID, member, start+day)
			return len(removed) > 0, err
		},
		"AmongDirectoryUsers": func(tx *store.Tx) (bool, error) {
			found, err := tx.AmongDirectoryUsers(d.ID, []rolecall.UserID{c.managed.ID})
			return len(found) > 0, err
		},
		"MemberIDs": func(tx *store.Tx) (bool, error) {
			found, err := tx.MemberIDs(c.group.ID, 10)
			return len(found) > 0, err
		},
	} {
		if change(f, try) {
			f.Errorf("%s reached another tenant", name)
		}
	}
	token := rolecall.DirectoryToken{ID: rolecall.NewID[rolecall.DirectoryToken](start), DirectoryID: d.ID, Name: "Stolen", CreatedAt: start, ExpiresAt: start + day}
	for name, try := range map[string]func(*store.Tx) error{
		"InsertDirectoryToken": func(tx *store.Tx) error { tx.InsertDirectoryToken(token, aHash()); return nil },
		"SetDirectoryUser":     func(tx *store.Tx) error { tx.SetDirectoryUser(ofDirectory(d, c.managed)); return nil },
		"RecordDirectoryRequests": func(tx *store.Tx) error {
			return tx.RecordDirectoryRequests(d.ID, []rolecall.DirectoryRequest{{At: start, Method: "GET", Path: "/Groups", Status: 200}})
		},
		"AddMembers": func(tx *store.Tx) error {
			_, err := tx.AddMembers(c.group.ID, member, rolecall.UserID{}, start)
			return err
		},
	} {
		if err := f.tryUpdate(try); rolecall.KindOf(err) != rolecall.NotFound {
			f.Errorf("%s: got %v, want not found", name, err)
		}
	}
	f.write(func(tx *store.Tx) { tx.TouchDirectoryToken(c.directoryID, start+day) })
	f.update(func(tx *store.Tx) error {
		return tx.ReleaseGroups(rolecall.SourceOf(d.ID), func(g rolecall.Group) string { return g.Name })
	})
}

// changesNoSession does the same as changesNothing, for sessions.
func changesNoSession(f *fixture, c contents) {
	f.Helper()
	u, session, token := c.users[0], c.sessions[0], c.tokens[0]
	for name, try := range map[string]func(*store.Tx) (bool, error){
		"ConfirmSession": func(tx *store.Tx) (bool, error) { return tx.ConfirmSession(session.ID, start+day) },
		"LockSession":    func(tx *store.Tx) (bool, error) { return tx.LockSession(session.ID) },
		"DeleteSession":  func(tx *store.Tx) (bool, error) { return tx.DeleteSession(session.ID) },
		"DeleteSessions": func(tx *store.Tx) (bool, error) {
			ended, err := tx.DeleteSessions(u.ID, rolecall.SessionID{})
			return len(ended) > 0, err
		},
		"DeleteUserSession": func(tx *store.Tx) (bool, error) {
			return tx.DeleteUserSession(u.ID, session.ID, rolecall.TenantSettings{}, start)
		},
		"DeleteOldestSessions": func(tx *store.Tx) (bool, error) {
			ended, err := tx.DeleteOldestSessions(u.ID, 0, rolecall.TenantSettings{}, start)
			return len(ended) > 0, err
		},
	} {
		if change(f, try) {
			f.Errorf("%s reached another tenant", name)
		}
	}
	late := session
	late.ID = rolecall.NewID[rolecall.Session](start)
	if err := f.tryWrite(func(tx *store.Tx) { tx.InsertSession(late, aHash()) }); rolecall.KindOf(err) != rolecall.NotFound {
		f.Errorf("InsertSession: got %v, want not found", err)
	}
	if err := f.tryWrite(func(tx *store.Tx) { tx.InsertIDToken(session.ID, "sealed") }); rolecall.KindOf(err) != rolecall.NotFound {
		f.Errorf("InsertIDToken: got %v, want not found", err)
	}
	f.write(func(tx *store.Tx) { tx.TouchSession(session.ID, start+day, rolecall.TouchInterval) })
	f.write(func(tx *store.Tx) { tx.ConfirmGeneration(session.ID, 2, start+day) })

	// SealSuccessor can return an error or false. In both cases, it stores no token for a
	// session of another tenant.
	err := f.tryUpdate(func(tx *store.Tx) error {
		sealed, err := tx.SealSuccessor(session.ID, rolecall.SessionToken{Hash: token, Generation: 1}, aHash(), aHash())
		if err == nil && !sealed {
			return errRefused
		}
		return err
	})
	if err == nil {
		f.Error("SealSuccessor reached another tenant")
	}
}

// changesNoMachine does the same as changesNothing, for service accounts and API tokens.
func changesNoMachine(f *fixture, c contents) {
	f.Helper()
	account, token, role := c.accounts[0], c.tokenIDs[0], c.roles[0]
	for name, try := range map[string]func(*store.Tx) (bool, error){
		"UpdateServiceAccount": func(tx *store.Tx) (bool, error) {
			return tx.UpdateServiceAccount(account, account.WithStatus(rolecall.ServiceAccountSuspended, start))
		},
		"DeleteServiceAccount": func(tx *store.Tx) (bool, error) { return tx.DeleteServiceAccount(account) },
		"UpdateWebhook":        func(tx *store.Tx) (bool, error) { return tx.UpdateWebhook(c.webhook, c.webhook, start) },
		"DeleteWebhook":        func(tx *store.Tx) (bool, error) { return tx.DeleteWebhook(c.webhook) },
		"DeleteAssignment": func(tx *store.Tx) (bool, error) {
			return tx.DeleteAssignment(rolecall.HolderOf(account.ID), role.ID, start)
		},
		"DeleteServiceAccountRoles": func(tx *store.Tx) (bool, error) { return deletesAny(tx.DeleteServiceAccountRoles(role.ID, 10)) },
		"LockAPIToken":              func(tx *store.Tx) (bool, error) { return tx.LockAPIToken(token) },
		"DeleteAPIToken":            func(tx *store.Tx) (bool, error) { return tx.DeleteAPIToken(token) },
		"DeleteUserAPITokens": func(tx *store.Tx) (bool, error) {
			revoked, err := tx.DeleteUserAPITokens(c.users[0].ID, start)
			return len(revoked) > 0, err
		},
	} {
		if change(f, try) {
			f.Errorf("%s reached another tenant", name)
		}
	}
	held := rolecall.Assignment{Holder: rolecall.HolderOf(account.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
	for name, write := range map[string]func(*store.Tx){
		"UpsertAssignment of a service account": func(tx *store.Tx) { tx.UpsertAssignment(held) },
		"InsertAPIToken of a user":              func(tx *store.Tx) { tx.InsertAPIToken(tokenOfUser(c.users[0]), aHash()) },
		"InsertAPIToken of a service account":   func(tx *store.Tx) { tx.InsertAPIToken(tokenOfAccount(account), aHash()) },
	} {
		if err := f.tryWrite(write); rolecall.KindOf(err) != rolecall.NotFound {
			f.Errorf("%s: got %v, want not found", name, err)
		}
	}
	f.write(func(tx *store.Tx) { tx.TouchAPIToken(token, start+day) })
}
