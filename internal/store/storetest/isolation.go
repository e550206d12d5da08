package storetest

import (
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var isolationCases = []testCase{
	{"A tenant reads nothing by the IDs of another tenant", func(f *fixture) {
		c := f.fill()
		readsNothing(f.in(f.newTenant("other")), c)
	}},
	{"Without a tenant nothing can be read", func(f *fixture) {
		c := f.fill()
		readsNothing(f.in(rolecall.TenantID{}), c)
	}},
	{"A tenant that does not exist reads nothing", func(f *fixture) {
		c := f.fill()
		readsNothing(f.in(rolecall.NewID[rolecall.Tenant](start)), c)
	}},
	{"A tenant changes nothing by the IDs of another tenant", func(f *fixture) {
		c := f.fill()
		before := f.state(c)
		other := f.in(f.newTenant("other"))
		changesNothing(other, c)
		changesNoMachine(other, c)
		changesNoSession(other, c)
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

func readsNothing(f *fixture, c contents) {
	f.Helper()
	for i, u := range c.users {
		for name, look := range map[string]func(*store.Tx) error{
			"user by id":      func(tx *store.Tx) error { _, err := tx.UserByID(u.ID); return err },
			"user by address": func(tx *store.Tx) error { _, _, err := tx.UserByEmail(u.EmailKey()); return err },
			"role":            func(tx *store.Tx) error { _, err := tx.RoleByID(c.roles[0].ID); return err },
			"assignment":      func(tx *store.Tx) error { _, err := tx.Assignment(rolecall.HolderOf(u.ID), c.roles[0].ID); return err },
			"session":         func(tx *store.Tx) error { _, err := tx.SessionByToken(c.tokens[i]); return err },
			"caller":          func(tx *store.Tx) error { _, err := tx.SessionWithRoles(c.tokens[i], 1000); return err },
			"job":             func(tx *store.Tx) error { _, err := tx.Job(c.job.ID); return err },
			"logo":            func(tx *store.Tx) error { _, err := tx.LogoFile(); return err },
			"key":             func(tx *store.Tx) error { _, err := tx.Key(c.keys[i]); return err },
			"invitation":      func(tx *store.Tx) error { _, err := tx.InvitationByToken(c.invitations[i]); return err },
			"one-time token": func(tx *store.Tx) error {
				_, err := tx.OneTimeToken(c.oneTimeTokens[i], rolecall.TokenPasswordReset)
				return err
			},
			"passkey": func(tx *store.Tx) error { _, err := tx.PasskeyByID(c.factors[i].Passkeys[0].ID); return err },
			"sign-in summary": func(tx *store.Tx) error {
				_, err := tx.SignInSummary(u.ID, []byte{1}, []byte{2}, rolecall.TenantSettings{}, start)
				return err
			},
		} {
			err := f.store.View(f.Context(), f.tenant, look)
			if rolecall.KindOf(err) != rolecall.NotFound {
				f.Errorf("%s: got %v, want not found", name, err)
			}
		}
		same(f, len(f.assignments(u.ID))+f.countAssignments(rolecall.HolderOf(u.ID)), 0)
		same(f, f.factors(u), rolecall.Factors{})
		same(f, len(f.eventsAbout(u.ID, 10)), 0)
		same(f, len(f.sessionsOf(u, start, 10)), 0)
		same(f, f.usersWithoutFactor(rolecall.TenantSettings{}, start), rolecall.Total{Exact: true})
		f.summarizesNothing()
		if hash, err := tryRead(f, func(tx *store.Tx) (string, error) { return tx.PasswordHash(u.ID) }); hash != "" {
			f.Errorf("read a password (error %v)", err)
		}
		same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountKeys(rolecall.IdempotencyKey{UserID: u.ID}, 10) }), 0)
	}
	for i, hash := range c.apiTokens {
		f.is(f.tryAPIToken(hash), rolecall.ErrNotFound)
		account := c.accounts[i%len(c.accounts)]
		for name, look := range map[string]func(*store.Tx) error{
			"service account": func(tx *store.Tx) error { _, err := tx.ServiceAccountByID(account.ID); return err },
			"role of a service account": func(tx *store.Tx) error {
				_, err := tx.Assignment(rolecall.HolderOf(account.ID), c.roles[0].ID)
				return err
			},
			"API token": func(tx *store.Tx) error { _, err := tx.APIToken(c.tokenIDs[i]); return err },
		} {
			if err := f.store.View(f.Context(), f.tenant, look); rolecall.KindOf(err) != rolecall.NotFound {
				f.Errorf("%s: got %v, want not found", name, err)
			}
		}
		same(f, len(f.serviceAccountRoles(account.ID))+f.countAssignments(rolecall.HolderOf(account.ID)), 0)
		same(f, len(f.apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(account.ID), Limit: 10})), 0)
	}
	same(f, len(f.apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(c.users[0].ID), Limit: 10})), 0)
	same(f, len(f.serviceAccounts(rolecall.ServiceAccountQuery{Limit: 10})), 0)
	for name, q := range map[string]func(*rolecall.UserQuery){
		"all":         func(*rolecall.UserQuery) {},
		"address":     func(q *rolecall.UserQuery) { q.EmailKey = c.users[0].EmailKey() },
		"external id": func(q *rolecall.UserQuery) { q.ExternalID = *c.users[0].ExternalID },
		"department":  func(q *rolecall.UserQuery) { q.Department = ptr("sales") },
		"role":        func(q *rolecall.UserQuery) { q.Role = c.roles[0].ID },
		"word":        func(q *rolecall.UserQuery) { q.Words = []string{"ada"} },
	} {
		query := everyone()
		q(&query)
		if got := f.readAll(query, nil); len(got) != 0 {
			f.Errorf("listed %d users by %s", len(got), name)
		}
	}
	same(f, len(f.tombstones(rolecall.TombstoneQuery{Within: rolecall.Everywhere(), Limit: 10})), 0)
	readsNoUserAtOnce(f, c)
	same(f, len(f.events(rolecall.EventQuery{Limit: 10})), 0)
	same(f, f.roleNames(rolecall.RoleQuery{Words: []string{"support"}}), []string{})
	same(f, read(f, func(tx *store.Tx) (bool, error) { return tx.RoleInUse(c.roles[0].ID, start) }), false)
}

// readsNoUserAtOnce does the same as readsNothing, for jobs and for methods that read
// several ids at once.
func readsNoUserAtOnce(f *fixture, c contents) {
	f.Helper()
	same(f, f.owners(), 0)
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.Session, error) { return tx.SessionByID(c.sessions[0].ID) })
	f.is(err, rolecall.ErrNotFound)
	_, err = f.tryIDToken(c.sessions[0].ID)
	f.is(err, rolecall.ErrNotFound)
	same(f, len(f.jobIDs(rolecall.JobQuery{Limit: 10})), 0)
	_, err = tryRead(f, func(tx *store.Tx) (rolecall.Webhook, error) { return tx.Webhook(c.webhook.ID) })
	f.is(err, rolecall.ErrNotFound)
	_, err = tryRead(f, func(tx *store.Tx) (rolecall.Connection, error) { return tx.Connection(c.connection.ID) })
	f.is(err, rolecall.ErrNotFound)
	_, err = f.tryIdentity(c.identity.Issuer, c.identity.Subject)
	f.is(err, rolecall.ErrNotFound)
	same(f, len(f.connections())+len(f.identities(c.users[0])), 0)
	same(f, read(f, func(tx *store.Tx) (bool, error) { return tx.ConnectionInUse(c.connection.ID) }), false)
	same(f, read(f, func(tx *store.Tx) (rolecall.Total, error) { return tx.CountIdentities(c.connection.ID) }), rolecall.Total{Exact: true})
	same(f, len(read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Webhook], error) { return tx.Webhooks(nil, 10) }).Items), 0)
	same(f, len(read(f, func(tx *store.Tx) (rolecall.Page[rolecall.WebhookDelivery], error) {
		return tx.WebhookDeliveries(rolecall.WebhookDeliveryQuery{Webhook: c.webhook.ID, Limit: 10})
	}).Items), 0)
	same(f, len(read(f, func(tx *store.Tx) ([]rolecall.ChangeHead, error) { return tx.ChangeHeads(0, 10) })), 0)
	same(f, f.feed(1), rolecall.Feed{First: 1})
	same(f, len(f.changes(rolecall.ChangeQuery{To: 10, Limit: 10})), 0)
	_, err = tryRead(f, func(tx *store.Tx) (rolecall.Time, error) { return tx.Unnumbered() })
	f.is(err, rolecall.ErrNotFound)
	same(f, len(f.jobResults(rolecall.JobResultQuery{Job: c.job.ID, Limit: 10})), 0)
	same(f, len(f.deletions(c.deletedRole)), 0)
	same(f, len(read(f, func(tx *store.Tx) ([]rolecall.Role, error) { return tx.RolesByID([]rolecall.RoleID{c.roles[0].ID}) })), 0)
	same(f, len(read(f, func(tx *store.Tx) ([]rolecall.User, error) { return tx.UsersByID([]rolecall.UserID{c.users[0].ID}) })), 0)
	same(f, len(read(f, func(tx *store.Tx) ([]rolecall.ServiceAccount, error) {
		return tx.ServiceAccountsByID([]rolecall.ServiceAccountID{c.accounts[0].ID})
	})), 0)
	same(f, len(read(f, func(tx *store.Tx) ([]rolecall.Tombstone, error) {
		return tx.TombstonesByUser([]rolecall.UserID{c.deleted.ID}, 0)
	})), 0)
	_, err = tryRead(f, func(tx *store.Tx) (rolecall.Tombstone, error) { return tx.Tombstone(c.deleted.ID, 0) })
	f.is(err, rolecall.ErrNotFound)
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
		"DeleteTombstone":   func(tx *store.Tx) (bool, error) { return deletesTombstone(tx, c.deleted.ID) },
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
	f.write(func(tx *store.Tx) { tx.DeleteOneTimeTokens(u.ID, rolecall.TokenPasswordReset) })
	f.write(func(tx *store.Tx) { tx.DeleteAllOneTimeTokens(u.ID) })
	f.write(func(tx *store.Tx) { tx.DeleteTOTP(u.ID) })
	f.write(func(tx *store.Tx) { tx.DeleteFactors(u.ID) })
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

func (f *fixture) countAssignments(h rolecall.Holder) int {
	return read(f, func(tx *store.Tx) (int, error) {
		n, departments, err := tx.CountAssignments(h)
		return n + departments, err
	})
}
