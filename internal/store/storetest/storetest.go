// Package storetest contains the conformance suite of package store. The name of each case
// is a sentence about a behavior that every database must have.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// suite contains all cases, by subject.
var suite = []struct {
	subject string
	cases   []testCase
}{
	{"transactions", transactionCases},
	{"users", userCases},
	{"tombstones", tombstoneCases},
	{"erasures", erasureCases},
	{"lists", listCases},
	{"roles", roleCases},
	{"groups", groupCases},
	{"access", accessCases},
	{"assignments", assignmentCases},
	{"sessions", sessionCases},
	{"service accounts", serviceAccountCases},
	{"API tokens", apiTokenCases},
	{"large callers", largeCallerCases},
	{"sign-in", signInCases},
	{"invitations", invitationCases},
	{"one-time tokens", oneTimeTokenCases},
	{"factors", factorCases},
	{"outbox", outboxCases},
	{"webhooks", webhookCases},
	{"connections", connectionCases},
	{"directories", directoryCases},
	{"directory users", directoryUserCases},
	{"jobs", jobCases},
	{"idempotency", idempotencyCases},
	{"events", eventCases},
	{"lists of events", eventListCases},
	{"changes", changeCases},
	{"changes of all tenants", tenantsChangeCases},
	{"tenants", tenantCases},
	{"summary", summaryCases},
	{"operators", operatorCases},
	{"attempts", attemptCases},
	{"isolation", isolationCases},
}

type testCase struct {
	sentence string
	run      func(*fixture)
}

// Run runs the suite. open returns an empty, migrated database that no other test uses
// until the test ends. Cases run in parallel, each on its own database. If open returns
// Caches, the suite also fails if a change of cached data is not invalidated.
func Run(t *testing.T, open func(t *testing.T) store.Database) { RunSample(t, 1, open) }

// RunSample runs a sample of the suite: of each subject, one case in every cases.
func RunSample(t *testing.T, every int, open func(t *testing.T) store.Database) {
	for _, group := range suite {
		t.Run(group.subject, func(t *testing.T) {
			for i, c := range group.cases {
				if i%every != 0 {
					continue
				}
				t.Run(c.sentence, func(t *testing.T) {
					t.Parallel()
					database := open(t)
					f := &fixture{T: t, database: database, store: store.New(database, nil)}
					if caches, ok := database.(*Caches); ok {
						f.database, f.store = caches.Database, caches.store()
					}
					f.tenant = f.newTenant("acme")
					c.run(f)
				})
			}
		})
	}
}

// fixture is one store with one tenant.
type fixture struct {
	*testing.T
	database store.Database
	store    *store.Store
	tenant   rolecall.TenantID
}

// start is the current time in all cases, so that they do not depend on the real clock.
const start rolecall.Time = 1_800_000_000_123_456

const (
	second rolecall.Time = 1_000_000
	minute               = 60 * second
	hour                 = 60 * minute
	day                  = 24 * hour
)

// serial is a counter from which unique addresses and keys are made.
var serial atomic.Int64

var errRefused = errors.New("refused by the closure")

// in returns a fixture for another tenant in the same store.
func (f *fixture) in(tenant rolecall.TenantID) *fixture {
	return &fixture{T: f.T, database: f.database, store: f.store, tenant: tenant}
}

// tryUpdate calls fn in an Update of the tenant, and returns the error of Update.
func (f *fixture) tryUpdate(fn func(tx *store.Tx) error) error {
	return f.store.Update(f.Context(), f.tenant, fn)
}

// update calls fn in an Update of the tenant. It fails the case if the transaction is not
// committed.
func (f *fixture) update(fn func(tx *store.Tx) error) {
	f.Helper()
	if err := f.tryUpdate(fn); err != nil {
		f.Fatalf("update: %v", err)
	}
}

// write calls fn, which writes without a result, in an Update of the tenant. It fails the
// case if the transaction is not committed.
func (f *fixture) write(fn func(tx *store.Tx)) {
	f.Helper()
	if err := f.tryWrite(fn); err != nil {
		f.Fatalf("write: %v", err)
	}
}

// tryWrite calls fn, which writes without a result, in an Update of the tenant, and
// returns the error of Update.
func (f *fixture) tryWrite(fn func(tx *store.Tx)) error {
	return f.tryUpdate(func(tx *store.Tx) error {
		fn(tx)
		return nil
	})
}

// read calls fn in a View of the tenant and returns its result. It fails the case if there
// is an error.
func read[T any](f *fixture, fn func(tx *store.Tx) (T, error)) T {
	f.Helper()
	value, err := tryRead(f, fn)
	if err != nil {
		f.Fatalf("read: %v", err)
	}
	return value
}

func tryRead[T any](f *fixture, fn func(tx *store.Tx) (T, error)) (value T, err error) {
	err = f.store.View(f.Context(), f.tenant, func(tx *store.Tx) error {
		value, err = fn(tx)
		return err
	})
	return value, err
}

// change calls fn in an Update of the tenant and returns its result. It fails the case if
// the transaction is not committed.
func change[T any](f *fixture, fn func(tx *store.Tx) (T, error)) (value T) {
	f.Helper()
	f.update(func(tx *store.Tx) (err error) {
		value, err = fn(tx)
		return err
	})
	return value
}

// is fails the case unless err is the wanted error. If want is nil, err must be nil.
func (f *fixture) is(err, want error) {
	f.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		f.Fatalf("got error %v, want %v", err, want)
	}
}

// same fails the case unless got and want are deeply equal.
func same[T any](f *fixture, got, want T) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// parallel calls fn n times concurrently, and returns the errors in the order of i.
func parallel(n int, fn func(i int) error) []error {
	results := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { results[i] = fn(i) })
	}
	group.Wait()
	return results
}

// oneWins fails the case unless exactly one of the errors is nil and all others are loser.
func (f *fixture) oneWins(results []error, loser error) {
	f.Helper()
	winners := 0
	for _, err := range results {
		switch {
		case err == nil:
			winners++
		case !errors.Is(err, loser):
			f.Errorf("a loser got %v, want %v", err, loser)
		}
	}
	if winners != 1 {
		f.Errorf("%d won, want exactly one", winners)
	}
}

func ptr[T any](value T) *T { return &value }

// newTenant inserts a tenant with the built-in roles.
func (f *fixture) newTenant(name string) rolecall.TenantID {
	f.Helper()
	tenant := rolecall.Tenant{
		ID: rolecall.NewID[rolecall.Tenant](start), Name: name, DisplayName: "The " + name, Status: rolecall.TenantActive,
		CreatedAt: start, UpdatedAt: start, Version: 1,
	}
	f.in(tenant.ID).write(func(tx *store.Tx) {
		tx.InsertTenant(tenant)
		for _, role := range rolecall.BuiltInRoles(start) {
			tx.InsertRole(role)
		}
	})
	return tenant.ID
}

// aUser returns an unstored user with a unique address.
func aUser(name string) rolecall.User {
	draft := rolecall.UserDraft{Email: fmt.Sprintf("user%d@example.com", serial.Add(1)), Name: name}
	u := draft.User(start)
	u.Status = rolecall.UserActive
	return u
}

// newUser writes a user.
func (f *fixture) newUser(name string) rolecall.User {
	f.Helper()
	u := aUser(name)
	f.write(func(tx *store.Tx) { tx.InsertUser(u) })
	return u
}

// aRole returns a role that is not stored yet.
func aRole(name string) rolecall.Role {
	return rolecall.Role{
		ID: rolecall.NewID[rolecall.Role](start), Name: name, Description: "A role.",
		Permissions: []rolecall.Permission{rolecall.UsersRead}, Grants: []rolecall.Permission{},
		CreatedAt: start, UpdatedAt: start, Version: 1,
	}
}

// newRole writes a role.
func (f *fixture) newRole(name string) rolecall.Role {
	f.Helper()
	r := aRole(name)
	f.write(func(tx *store.Tx) { tx.InsertRole(r) })
	return r
}

// owner returns the owner role of the tenant.
func (f *fixture) owner() rolecall.Role {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByKey(rolecall.OwnerKey) })
}

// assign gives the user the role in the whole tenant and without expiry.
func (f *fixture) assign(u rolecall.User, r rolecall.Role) rolecall.Assignment {
	f.Helper()
	a := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: r, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
	return a
}

// signIn inserts a session of the user and returns it with the hash of its first token.
func (f *fixture) signIn(u rolecall.User, at rolecall.Time) (rolecall.Session, []byte) {
	f.Helper()
	s := rolecall.Session{
		ID: rolecall.NewID[rolecall.Session](at), UserID: u.ID,
		AuthenticatedAt: at, LastUsedAt: at, ExpiresAt: at + 7*day, Source: "192.0.2.1",
		Client: "Firefox on Linux", ConfirmedAt: at + minute, SecondFactor: true,
	}
	hash := aHash()
	f.write(func(tx *store.Tx) { tx.InsertSession(s, hash) })
	return s, hash
}

// aHash returns 32 bytes that are different for each call.
func aHash() []byte { return fmt.Appendf(nil, "%032d", serial.Add(1)) }

// hasUser reports whether the tenant has the user.
func (f *fixture) hasUser(id rolecall.UserID) bool {
	f.Helper()
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(id) })
	if err != nil && !errors.Is(err, rolecall.ErrNotFound) {
		f.Fatalf("read: %v", err)
	}
	return err == nil
}

// everyone returns a query of all users of the tenant.
func everyone() rolecall.UserQuery {
	return rolecall.UserQuery{
		Within: rolecall.Everywhere(), NameWords: rolecall.Everywhere(), EmailWords: rolecall.Everywhere(),
		Now: start, Limit: rolecall.MaxLimit,
	}
}

// readAll returns all users that the query selects. It reads the list page by page. If
// between is not nil, readAll calls it after each page except the last.
func (f *fixture) readAll(q rolecall.UserQuery, between func()) []rolecall.User {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.User], error) {
		q.After = after
		return tx.Users(q)
	}, between)
}

// found returns the names of the users of the query, sorted.
func (f *fixture) found(q rolecall.UserQuery) []string {
	f.Helper()
	names := []string{}
	for _, u := range f.readAll(q, nil) {
		names = append(names, u.Name)
	}
	slices.Sort(names)
	return names
}

// cancelled returns a cancelled context.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// fill inserts rows of every kind into the tenant and returns a description of them.
func (f *fixture) fill() contents {
	f.Helper()
	users := f.crowd(12)
	role := f.newRole("Support")
	c := contents{users: users, roles: []rolecall.Role{role}}
	for _, u := range users {
		f.assign(u, role)
		s, hash := f.signIn(u, start)
		c.sessions, c.tokens = append(c.sessions, s), append(c.tokens, hash)
		f.write(func(tx *store.Tx) { tx.InsertIDToken(s.ID, "sealed") })
		k, e := f.aKey(), anEvent(u.ID)
		k.UserID, k.ResourceID = u.ID, rolecall.AnyID(u.ID)
		e.ID, e.Values = k.EventID, &rolecall.EventValues{Before: []byte(`{}`), After: k.Resource}
		f.write(func(tx *store.Tx) {
			tx.SetPassword(u.ID, "hash", start)
			tx.InsertKey(k)
			tx.InsertEvent(e)
		})
		c.keys = append(c.keys, k)
		c.invitations = append(c.invitations, f.invite(anInvitation(u)))
		c.oneTimeTokens = append(c.oneTimeTokens, f.handOut(aReset(u)))
		c.factors = append(c.factors, f.enrol(u))
		c.addToken(f, tokenOfUser(u))
	}
	for _, name := range []string{"Import", "Export"} {
		account := f.newServiceAccount(name)
		f.assignToAccount(account, role)
		c.accounts = append(c.accounts, account)
		c.addToken(f, tokenOfAccount(account))
	}
	gone := f.newUser("Deleted Tomorrow")
	same(f, f.deleteUser(gone), true)
	c.deleted = gone
	t := read(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByID(f.tenant) })
	same(f, f.setLogo(t, t, &aLogoFile), true) // the row of the tenant stays as it is
	c.job = f.newJob(start)
	c.webhook = f.newWebhook(start)
	c.connection = f.newConnection("acme")
	c.identity = f.link(users[0], c.connection, "1")
	c.directory = f.newDirectory("Acme")
	token, hash := f.newDirectoryToken(c.directory, start+day)
	c.directoryHash, c.directoryID = hash, token.ID
	c.managed = users[1]
	c.managed.ManagedBy, c.managed.Version = &c.directory.ID, 2
	same(f, f.changeUser(users[1], c.managed), true)
	users[1] = c.managed
	f.update(func(tx *store.Tx) error {
		tx.SetDirectoryUser(ofDirectory(c.directory, c.managed))
		return tx.RecordDirectoryRequests(c.directory.ID, []rolecall.DirectoryRequest{{At: start, Method: "GET", Path: "/Users", Status: 200}})
	})
	c.group = f.newGroup("Support")
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(c.group, role)) })
	f.join(rolecall.Membership{Group: nameOf(c.group), User: users[0].ID, AddedAt: start})
	f.write(func(tx *store.Tx) {
		tx.UpsertDelivery(c.webhook.ID, rolecall.WebhookDelivery{ID: rolecall.NewID[rolecall.WebhookDelivery](start), Item: rolecall.NewID[rolecall.Event](start)})
	})
	f.write(func(tx *store.Tx) {
		tx.InsertJobResults(c.job.ID, []rolecall.JobResult{{UserID: users[0].ID, Outcome: rolecall.JobUserChanged}}, start)
	})
	return c
}

// contents describes the rows of a filled tenant.
type contents struct {
	users    []rolecall.User
	deleted  rolecall.User
	roles    []rolecall.Role
	sessions []rolecall.Session
	tokens   [][]byte
	keys     []rolecall.IdempotencyKey

	invitations   [][]byte // hashes of the tokens
	oneTimeTokens [][]byte // hashes; for password resets
	factors       []rolecall.Factors
	accounts      []rolecall.ServiceAccount
	apiTokens     [][]byte // hashes
	tokenIDs      []rolecall.APITokenID
	job           rolecall.Job
	webhook       rolecall.Webhook
	connection    rolecall.Connection
	identity      rolecall.Identity
	group         rolecall.Group
	directory     rolecall.Directory
	managed       rolecall.User // by the directory; also one of users
	directoryHash []byte        // of a token
	directoryID   rolecall.DirectoryTokenID
}

func (c *contents) addToken(f *fixture, token rolecall.APIToken) {
	f.Helper()
	c.apiTokens, c.tokenIDs = append(c.apiTokens, f.newAPIToken(token)), append(c.tokenIDs, token.ID)
}

// state contains all data of a tenant that the store returns for its contents.
type state struct {
	users       []rolecall.User
	roles       []rolecall.Role
	sessions    []rolecall.SessionState
	passwords   []string
	assignments [][]rolecall.Assignment
	events      [][]rolecall.Event
	keys        []rolecall.IdempotencyKey
	invitations []rolecall.Invitation
	oneTime     []rolecall.OneTimeToken
	factors     []rolecall.Factors
	accounts    []rolecall.ServiceAccount
	apiTokens   []rolecall.APITokenState
	jobs        []rolecall.JobID
	jobResults  []rolecall.JobResult
	logo        rolecall.LogoFile
	directories []rolecall.Directory
	directory   rolecall.DirectoryUser
	token       rolecall.DirectoryToken
	requests    []rolecall.DirectoryRequest
	group       rolecall.Group
	members     []rolecall.UserID
}

func (f *fixture) state(c contents) state {
	f.Helper()
	s := state{
		users: f.readAll(everyone(), nil), roles: f.roles(rolecall.RoleQuery{Limit: rolecall.MaxLimit}),
		accounts: f.serviceAccounts(rolecall.ServiceAccountQuery{Limit: rolecall.MaxLimit}),
		jobs:     f.jobIDs(rolecall.JobQuery{Limit: 10}), jobResults: f.jobResults(rolecall.JobResultQuery{Job: c.job.ID, Limit: 10}),
		logo: read(f, (*store.Tx).LogoFile), directories: f.directories(), directory: f.directoryUser(c.managed), requests: f.directoryRequests(c.directory),
		group: f.group(c.group.ID), members: read(f, func(tx *store.Tx) ([]rolecall.UserID, error) { return tx.MemberIDs(c.group.ID, 10) }),
	}
	var err error
	_, s.token, err = f.directoryByToken(c.directoryHash)
	f.is(err, nil)
	for _, hash := range c.apiTokens {
		s.apiTokens = append(s.apiTokens, f.apiToken(hash))
	}
	for i, u := range c.users {
		s.passwords = append(s.passwords, f.password(u))
		s.assignments = append(s.assignments, f.assignments(u.ID))
		s.events = append(s.events, f.eventsAbout(u.ID, 10))
		s.sessions = append(s.sessions, f.session(c.tokens[i]))
		s.keys = append(s.keys, f.key(c.keys[i]))
		s.invitations = append(s.invitations, f.invitation(c.invitations[i]))
		s.oneTime = append(s.oneTime, f.reset(c.oneTimeTokens[i]))
		s.factors = append(s.factors, f.factors(u))
	}
	return s
}
