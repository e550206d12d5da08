package service

import (
	"context"

	"github.com/rolecall/rolecall"
)

// Store is the door to the data of one tenant. The zero tenant holds nothing of
// its own; through it go the few tables that belong to no tenant.
//
// Every failure that a caller can cause comes back as one of rolecall's errors:
// ErrNotFound, ErrUnavailable, and the Conflict of the constraint that was
// violated. Every other error is internal.
type Store interface {
	// View runs fn for reading. Each statement sees its own snapshot: what must
	// agree is one statement.
	View(ctx context.Context, tenant rolecall.TenantID, fn func(Tx) error) error

	// Update runs fn and commits what it wrote, all or nothing; an error from fn
	// is returned as it is and nothing is written. What fn has read then is as
	// lasting as what it wrote. fn may run again after a
	// conflict of serialization, so it has no side effects outside of tx. A
	// write without a result is blind: it may run only after fn has returned,
	// and its failure comes from Update.
	Update(ctx context.Context, tenant rolecall.TenantID, fn func(Tx) error) error

	// Watch tells w what other processes change, and first that everything may have
	// changed. It returns nil when ctx ends, or else why it can tell no more.
	Watch(ctx context.Context, w Watcher) error

	// Ready returns nil if the store answers and its schema is one that this
	// program can serve.
	Ready(ctx context.Context) error
}

// Tx is the tenant's data inside View or Update. Methods without an error are
// blind writes.
type Tx interface {
	UserTx
	TombstoneTx
	RoleTx
	AssignmentTx
	SessionTx
	ServiceAccountTx
	APITokenTx
	InvitationTx
	OneTimeTokenTx
	FactorTx
	OutboxTx
	IdempotencyTx
	EventTx
	TenantTx
	OperatorTx
	InstanceTx

	// Announce has every Watch of the store say, once this Update is committed,
	// that the tenant, user, service account, session or token has changed.
	Announce(id rolecall.AnyID)
}

// UserTx reads and writes users and their passwords.
type UserTx interface {
	// UserByID returns the user, or ErrNotFound.
	UserByID(id rolecall.UserID) (rolecall.User, error)
	// UsersByID returns those of the users that are there, in no order.
	UsersByID(ids []rolecall.UserID) ([]rolecall.User, error)
	// UserByEmail returns the user of the address and the hash of the password,
	// empty if there is none; or ErrNotFound.
	UserByEmail(emailKey string) (user rolecall.User, passwordHash string, err error)
	// Users returns a page, in bounded work.
	Users(q rolecall.UserQuery) (rolecall.Page[rolecall.User], error)
	// Departments returns up to 200 departments that users are in, by key, each as
	// one of its users has it, in bounded work.
	Departments() ([]string, error)
	// InsertUser writes a new user. Update returns ErrEmailTaken or
	// ErrExternalIDTaken.
	InsertUser(u rolecall.User)
	// InsertUsers writes many new users in few statements. Conflicts as for
	// InsertUser.
	InsertUsers(users []rolecall.User)
	// UpdateUser replaces old by changed if old's version is still the stored
	// one, and reports whether it was. Conflicts as for InsertUser.
	UpdateUser(old, changed rolecall.User) (bool, error)
	// DeleteUser removes the user with everything that hangs on it, if the
	// version is still the stored one, and reports whether it was. A tombstone
	// stays.
	DeleteUser(u rolecall.User, at rolecall.Time) (bool, error)
	// SetPassword stores the hash of a user's password, whether or not there was
	// one.
	SetPassword(id rolecall.UserID, hash string, at rolecall.Time)
	// LastLogin returns when the user last signed in, zero for never, or ErrNotFound.
	LastLogin(id rolecall.UserID) (rolecall.Time, error)
	// ReplacePassword stores a hash in place of old if that is still the stored
	// one, and reports whether it was. The same hash again keeps it from being
	// changed before this Update is over.
	ReplacePassword(id rolecall.UserID, old, hash string, at rolecall.Time) (bool, error)
	// LockActiveUser keeps the user from being changed before this Update is over,
	// and reports whether they are active.
	LockActiveUser(id rolecall.UserID) (bool, error)
	// PasswordHash returns the hash, empty if the user has none.
	PasswordHash(id rolecall.UserID) (string, error)
}

// TombstoneTx reads what is kept of deleted users.
type TombstoneTx interface {
	// TakeTombstone removes the tombstone of the user, deleted after the moment, and
	// returns it, or ErrNotFound.
	TakeTombstone(id rolecall.UserID, since rolecall.Time) (rolecall.Tombstone, error)
	// TombstonesByUser returns the tombstones of those of the users who were deleted
	// after the moment, in no order.
	TombstonesByUser(ids []rolecall.UserID, since rolecall.Time) ([]rolecall.Tombstone, error)
	// Tombstones returns a page, the last deleted first, in bounded work.
	Tombstones(q rolecall.TombstoneQuery) (rolecall.Page[rolecall.Tombstone], error)
	// InsertErasure notes that nothing may be left of a user who is gone: from the
	// moment on PurgeExpired erases what is.
	InsertErasure(id rolecall.UserID, due rolecall.Time)
	// EraseTraces takes out of up to limit events about a user who is gone, those
	// after the given one, what they say, and removes up to limit of the idempotency
	// keys that the user sent, and all else that is left. It returns the last event
	// that it went through and how many rows it took: at least limit if there may be
	// more.
	EraseTraces(id rolecall.UserID, after rolecall.EventID, limit int) (last rolecall.EventID, taken int, err error)
}

// RoleTx reads and writes roles.
type RoleTx interface {
	// RoleByID returns the role, or ErrNotFound.
	RoleByID(id rolecall.RoleID) (rolecall.Role, error)
	// RoleByKey returns the role of that key, or ErrNotFound.
	RoleByKey(key string) (rolecall.Role, error)
	// RolesByID returns those of the roles that are there, in no order.
	RolesByID(ids []rolecall.RoleID) ([]rolecall.Role, error)
	// Roles returns a page, in bounded work.
	Roles(q rolecall.RoleQuery) (rolecall.Page[rolecall.Role], error)
	// InsertRole writes a new role. Update returns ErrRoleNameTaken or
	// ErrRoleKeyTaken.
	InsertRole(r rolecall.Role)
	// UpdateRole replaces old by changed if old's version is still the stored
	// one, and reports whether it was. Conflicts as for InsertRole.
	UpdateRole(old, changed rolecall.Role) (bool, error)
	// DeleteRole removes the role with its assignments if the version is still
	// the stored one, and reports whether it was.
	DeleteRole(r rolecall.Role) (bool, error)
}

// AssignmentTx reads and writes who holds which role.
type AssignmentTx interface {
	// Assignments returns the user's assignments with their roles, by role id,
	// those that are over included.
	Assignments(id rolecall.UserID) ([]rolecall.Assignment, error)
	// Assignment returns one assignment with its role, or ErrNotFound.
	Assignment(user rolecall.UserID, role rolecall.RoleID) (rolecall.Assignment, error)
	// PutAssignment writes or replaces an assignment. Update returns ErrNotFound
	// if the user or the role is gone.
	PutAssignment(a rolecall.Assignment)
	// InsertAssignments writes many assignments that are not there yet, in few
	// statements. Failures as for PutAssignment.
	InsertAssignments(assignments []rolecall.Assignment)
	// DeleteAssignment removes an assignment and reports whether there was one.
	DeleteAssignment(user rolecall.UserID, role rolecall.RoleID) (bool, error)
	// TakeAssignments removes up to limit of the assignments of the role to users,
	// and returns them.
	TakeAssignments(role rolecall.Role, limit int) ([]rolecall.Assignment, error)
	// RoleInUse reports whether any user or service account has a live assignment of
	// the role. More than MaxScan assignments are taken for that, to look at no more.
	RoleInUse(id rolecall.RoleID, now rolecall.Time) (bool, error)
	// LockOwners makes this Update wait for every other that locks the owners of
	// the tenant: what could leave it without one, what is judged by who holds which
	// role, and what is counted before there is one more.
	LockOwners()
	// Owners returns how many active users hold the owner role without end and
	// without reach; it counts no further than two, and looks at no more than
	// MaxScan holders.
	Owners() (int, error)
}

// SessionTx reads and writes sessions.
type SessionTx interface {
	// SessionByToken returns the session of the token with its user and all
	// assignments in one statement, or ErrNotFound. It does not judge lifetimes.
	SessionByToken(hash []byte) (rolecall.SessionState, error)
	// InsertSession writes a new session with its first token, generation 1.
	InsertSession(s rolecall.Session, hash []byte)
	// TouchSession writes a later last use, at most one in a TouchInterval.
	TouchSession(id rolecall.SessionID, at rolecall.Time)
	// SealSuccessor stores the next generation of token unless there is one, and
	// reports whether it did.
	SealSuccessor(id rolecall.SessionID, token rolecall.SessionToken, successor []byte, sealed []byte) (bool, error)
	// ConfirmGeneration records that a generation was presented, retires the one
	// before it, and forgets those that are more than 100 older.
	ConfirmGeneration(id rolecall.SessionID, generation int64, at rolecall.Time)
	// ConfirmSession writes that the person confirmed to be the one who signed in, and
	// reports whether there is such a session.
	ConfirmSession(id rolecall.SessionID, at rolecall.Time) (bool, error)
	// LockSession keeps the session from being ended before this Update is over, and
	// reports whether it exists.
	LockSession(id rolecall.SessionID) (bool, error)
	// DeleteSession ends a session and reports whether there was one.
	DeleteSession(id rolecall.SessionID) (bool, error)
	// DeleteUserSession ends one session of a user if it lives, and reports whether
	// there was one.
	DeleteUserSession(user rolecall.UserID, id rolecall.SessionID, settings rolecall.TenantSettings, now rolecall.Time) (bool, error)
	// DeleteOldestSessions ends all sessions of a user but the newest so many that
	// live, and returns the ids of those that lived. It looks at the newest MaxScan
	// sessions.
	DeleteOldestSessions(user rolecall.UserID, keep int, settings rolecall.TenantSettings, now rolecall.Time) ([]rolecall.SessionID, error)
	// Sessions returns a page, in bounded work.
	Sessions(q rolecall.SessionQuery) (rolecall.Page[rolecall.Session], error)
	// DeleteSessions ends all sessions of a user but one, which may be zero, and
	// returns their ids.
	DeleteSessions(user rolecall.UserID, except rolecall.SessionID) ([]rolecall.SessionID, error)
	// SignInSummary returns what is stored of how the user signs in, or ErrNotFound,
	// in one statement. passwords and factors are the keys of the buckets in which
	// attempts at either are counted.
	SignInSummary(user rolecall.UserID, passwords, factors []byte, settings rolecall.TenantSettings, now rolecall.Time) (rolecall.SignInSummary, error)
}

// ServiceAccountTx reads and writes service accounts and who of them holds which
// role.
type ServiceAccountTx interface {
	// ServiceAccountByID returns the service account, or ErrNotFound.
	ServiceAccountByID(id rolecall.ServiceAccountID) (rolecall.ServiceAccount, error)
	// ServiceAccountsByID returns those of the service accounts that are there, in no
	// order.
	ServiceAccountsByID(ids []rolecall.ServiceAccountID) ([]rolecall.ServiceAccount, error)
	// ServiceAccounts returns a page, in bounded work.
	ServiceAccounts(q rolecall.ServiceAccountQuery) (rolecall.Page[rolecall.ServiceAccount], error)
	// InsertServiceAccount writes a new service account. Update returns
	// ErrAccountNameTaken.
	InsertServiceAccount(a rolecall.ServiceAccount)
	// UpdateServiceAccount replaces old by changed if old's version is still the
	// stored one, and reports whether it was. Conflicts as for
	// InsertServiceAccount.
	UpdateServiceAccount(old, changed rolecall.ServiceAccount) (bool, error)
	// DeleteServiceAccount removes the service account with its tokens and its
	// roles if the version is still the stored one, and reports whether it was.
	DeleteServiceAccount(a rolecall.ServiceAccount) (bool, error)
	// ServiceAccountRoles returns the assignments of the service account with
	// their roles, by role id, those that are over included.
	ServiceAccountRoles(id rolecall.ServiceAccountID) ([]rolecall.Assignment, error)
	// ServiceAccountRole returns one assignment with its role, or ErrNotFound.
	ServiceAccountRole(id rolecall.ServiceAccountID, role rolecall.RoleID) (rolecall.Assignment, error)
	// PutServiceAccountRole writes or replaces an assignment of a service account.
	// Update returns ErrNotFound if the account or the role is gone.
	PutServiceAccountRole(a rolecall.Assignment)
	// DeleteServiceAccountRole removes an assignment and reports whether there was
	// one.
	DeleteServiceAccountRole(id rolecall.ServiceAccountID, role rolecall.RoleID) (bool, error)
	// TakeServiceAccountRoles removes up to limit of the assignments of the role to
	// service accounts, and returns them.
	TakeServiceAccountRoles(role rolecall.Role, limit int) ([]rolecall.Assignment, error)
}

// APITokenTx reads and writes API tokens.
type APITokenTx interface {
	// APITokenByHash returns the token with its holder and all assignments of that,
	// by role id, in one statement; or ErrNotFound. It does not judge lifetimes.
	APITokenByHash(hash []byte) (rolecall.APITokenState, error)
	// APIToken returns the token, or ErrNotFound.
	APIToken(id rolecall.APITokenID) (rolecall.APIToken, error)
	// APITokens returns a page of a holder's tokens, by id, those that ended less
	// than 30 days ago included.
	APITokens(q rolecall.APITokenQuery) (rolecall.Page[rolecall.APIToken], error)
	// InsertAPIToken writes a new token. Update returns ErrNotFound if the holder
	// is gone.
	InsertAPIToken(t rolecall.APIToken, hash []byte)
	// TouchAPIToken writes a later last use, at most one in a TouchInterval.
	TouchAPIToken(id rolecall.APITokenID, at rolecall.Time)
	// LockAPIToken keeps the token from being removed before this Update is over, and
	// reports whether it exists.
	LockAPIToken(id rolecall.APITokenID) (bool, error)
	// DeleteAPIToken removes the token and reports whether there was one.
	DeleteAPIToken(id rolecall.APITokenID) (bool, error)
	// DeleteUserAPITokens removes all tokens of a user that are not over, and returns
	// them.
	DeleteUserAPITokens(user rolecall.UserID, now rolecall.Time) ([]rolecall.APIToken, error)
}

// InvitationTx reads and writes invitations.
type InvitationTx interface {
	// PutInvitation writes the user's invitation and takes the place of an older
	// one. Update returns ErrNotFound if the user is gone.
	PutInvitation(i rolecall.Invitation, hash []byte)
	// Invitations returns a page, in bounded work.
	Invitations(q rolecall.InvitationQuery) (rolecall.Page[rolecall.Invited], error)
	// InvitationByToken returns the invitation, or ErrNotFound.
	InvitationByToken(hash []byte) (rolecall.Invitation, error)
	// DeleteInvitation removes the invitation and reports whether it was there.
	DeleteInvitation(hash []byte) (bool, error)
	// DeleteInvitationOf removes the invitation of the user and reports whether
	// there was one.
	DeleteInvitationOf(user rolecall.UserID) (bool, error)
}

// OneTimeTokenTx reads and writes tokens that are good once.
type OneTimeTokenTx interface {
	// InsertOneTimeToken writes a token.
	InsertOneTimeToken(t rolecall.OneTimeToken, hash []byte)
	// SpendOneTimeToken writes a token that need not be stored before it is used,
	// unless it was written before, and reports whether it was not.
	SpendOneTimeToken(t rolecall.OneTimeToken, hash []byte) (bool, error)
	// OneTimeToken returns what the token stands for, or ErrNotFound if there is
	// none of that purpose.
	OneTimeToken(hash []byte, purpose rolecall.TokenPurpose) (rolecall.OneTimeToken, error)
	// DeleteOneTimeToken removes the token and reports whether it was there.
	DeleteOneTimeToken(hash []byte) (bool, error)
	// DeleteOneTimeTokens removes all tokens of a user for a purpose.
	DeleteOneTimeTokens(user rolecall.UserID, purpose rolecall.TokenPurpose)
	// DeleteLinks removes the invitations and one-time tokens that were requested
	// with one of the sessions or API tokens.
	DeleteLinks(credentials ...rolecall.AnyID)
	// DeleteOwnEmailChanges removes the changes of the user's address that were
	// requested in one of the sessions.
	DeleteOwnEmailChanges(user rolecall.UserID, sessions ...rolecall.SessionID)
	// DeleteAllOneTimeTokens removes all tokens of a user, whatever they are for.
	DeleteAllOneTimeTokens(user rolecall.UserID)
}

// FactorTx reads and writes what users can show beside their passwords.
type FactorTx interface {
	// Factors returns all of it; nothing for a user who is not there.
	Factors(user rolecall.UserID) (rolecall.Factors, error)
	// PutPendingTOTP writes the secret that a code is to confirm, in place of an
	// older one. Update returns ErrNotFound if the user is gone.
	PutPendingTOTP(user rolecall.UserID, sealed []byte)
	// ConfirmTOTP puts the pending secret in force, with the step of the code that
	// confirmed it, and reports whether it still was the pending one.
	ConfirmTOTP(user rolecall.UserID, pending []byte, step int64, at rolecall.Time) (bool, error)
	// UseTOTP notes that a code of the step was taken, writes the secret as it is
	// sealed from now on, and reports whether the old one still was in force and no
	// code of that step or a later one was taken before.
	UseTOTP(user rolecall.UserID, old, sealed []byte, step int64) (bool, error)
	// DeleteTOTP removes the secret, and the one that is pending.
	DeleteTOTP(user rolecall.UserID)
	// ReplaceRecoveryCodes writes the codes in place of all that are left. Update
	// returns ErrNotFound if the user is gone.
	ReplaceRecoveryCodes(user rolecall.UserID, hashes [][]byte)
	// UseRecoveryCode removes the code and reports whether it was there.
	UseRecoveryCode(user rolecall.UserID, hash []byte) (bool, error)
	// PasskeyByID returns the passkey, or ErrNotFound.
	PasskeyByID(id []byte) (rolecall.Passkey, error)
	// InsertPasskey writes a new passkey. Update returns ErrPasskeyTaken if there
	// is one of that id, and ErrNotFound if the user is gone.
	InsertPasskey(key rolecall.Passkey)
	// UsePasskey writes the credential and the last use of a passkey if the old
	// credential still is the stored one, and reports whether it was.
	UsePasskey(old, used rolecall.Passkey) (bool, error)
	// RenamePasskey writes the passkey's name and reports whether its owner has it.
	RenamePasskey(key rolecall.Passkey) (bool, error)
	// DeletePasskey removes a passkey of the user and reports whether it was there.
	DeletePasskey(user rolecall.UserID, id []byte) (bool, error)
	// DeleteFactors removes all that the user can show beside the password.
	DeleteFactors(user rolecall.UserID)
}

// OutboxTx writes the mail that is to be sent. But for InsertMail these methods do
// not look at the tenant of the transaction: one sender serves all of them.
type OutboxTx interface {
	// InsertMail puts a mail of the transaction's tenant into the outbox.
	InsertMail(m rolecall.OutboxMail)
	// ClaimMail returns the mail that has been due longest and is not expired, and
	// keeps it from being claimed again before until. That counts as one more
	// attempt. It returns ErrNotFound if there is none, or if somebody else was
	// faster.
	ClaimMail(now, until rolecall.Time) (rolecall.OutboxMail, error)
	// PostponeMail makes a mail due at another moment, unless it was claimed again
	// since the attempt.
	PostponeMail(id rolecall.MailID, attempt int, due rolecall.Time)
	// DeleteMail removes a mail and reports whether it was there.
	DeleteMail(id rolecall.MailID) (bool, error)
	// ExpiredMail returns up to limit mails that are expired and that nobody has
	// claimed, those first that expired first.
	ExpiredMail(now rolecall.Time, limit int) ([]rolecall.OutboxMail, error)
	// CountMail returns how many mails wait, counting no further than the limit.
	CountMail(limit int) (int, error)
}

// IdempotencyTx reads and writes idempotency keys: those of an operator, which
// belong to no tenant, in every transaction.
type IdempotencyTx interface {
	// InsertKey claims the key. It must be the first write of its Update, which
	// returns rolecall.ErrKeyClaimed if the key is taken.
	InsertKey(k rolecall.IdempotencyKey)
	// Key returns what is stored for the scope and hash of k, or ErrNotFound.
	Key(k rolecall.IdempotencyKey) (rolecall.IdempotencyKey, error)
	// DeleteKey removes the key if it expired before the moment.
	DeleteKey(k rolecall.IdempotencyKey, now rolecall.Time)
	// CountKeys returns how many keys are stored of the user or operator whose k
	// is, counting no further than the limit.
	CountKeys(k rolecall.IdempotencyKey, limit int) (int, error)
	// PurgeRequests removes up to limit keys of operators that have expired, and
	// returns how many it did.
	PurgeRequests(now rolecall.Time, limit int) (int, error)
	// EraseResource takes the stored resource out of every key that made it.
	EraseResource(id rolecall.AnyID)
}

// EventTx reads and writes events.
type EventTx interface {
	// InsertEvent writes the event, and its values apart.
	InsertEvent(e rolecall.Event)
	// Events returns a page, newest first, in bounded work.
	Events(q rolecall.EventQuery) (rolecall.Page[rolecall.Event], error)
}

// TenantTx reads and writes tenants, which are rows of the instance: these
// methods do not look at the tenant of the transaction.
type TenantTx interface {
	// TenantByName returns the tenant, or ErrNotFound.
	TenantByName(name string) (rolecall.Tenant, error)
	// TenantByID returns the tenant, or ErrNotFound.
	TenantByID(id rolecall.TenantID) (rolecall.Tenant, error)
	// DeletedTenant returns the deleted tenant of that name that can be restored now,
	// or ErrNotFound.
	DeletedTenant(name string, now rolecall.Time) (rolecall.Tenant, error)
	// Tenants returns the tenants that the query is about, by name.
	Tenants(q rolecall.TenantQuery) ([]rolecall.Tenant, error)
	// InsertTenant writes a new tenant. Update returns ErrTenantExists.
	InsertTenant(t rolecall.Tenant)
	// UpdateTenant replaces old by changed if old's version is still the stored
	// one, and reports whether it was.
	UpdateTenant(old, changed rolecall.Tenant) (bool, error)
	// DeleteTenant makes the tenant unknown at once, to be purged at the given time,
	// and keeps its name from being used for 30 days, if the version is still the
	// stored one; it reports whether it was.
	DeleteTenant(t rolecall.Tenant, purgeAt rolecall.Time) (bool, error)
	// RestoreTenant makes the deleted tenant what it was, if the version is still the
	// stored one and the tenant is not to be purged yet; it reports whether it did.
	RestoreTenant(t rolecall.Tenant, at rolecall.Time) (bool, error)
	// TenantsToPurge returns up to limit deleted tenants that were to be purged before
	// the given time and still hold rows.
	TenantsToPurge(before rolecall.Time, limit int) ([]rolecall.TenantID, error)
	// PurgeExpired removes up to limit each of the tenant's idempotency keys,
	// sessions, invitations and one-time tokens that have expired, of its API tokens
	// that ended and its tombstones that were made more than 30 days ago, and of its
	// events that are older than the given moment, and goes on with erasures that
	// are due. It returns how many rows it took: at least limit if there may be more.
	PurgeExpired(now, eventsBefore rolecall.Time, limit int) (int, error)
	// BeginPurge reports whether the transaction's tenant is deleted and was to be
	// purged before the given time. From then on it cannot be restored.
	BeginPurge(before rolecall.Time) (bool, error)
	// PurgeTenant removes up to limit rows of the transaction's tenant, whose purge has
	// begun, and reports whether none are left.
	PurgeTenant(limit int) (bool, error)
}

// OperatorTx reads and writes the keys of operators, which belong to the instance.
type OperatorTx interface {
	// InsertOperatorKey writes a new key.
	InsertOperatorKey(k rolecall.OperatorKey, hash []byte)
	// OperatorKeyByToken returns the key of that hash, or ErrNotFound.
	OperatorKeyByToken(hash []byte) (rolecall.OperatorKey, error)
	// OperatorKeys returns up to limit keys by id, after the given one, which may
	// be zero.
	OperatorKeys(after rolecall.OperatorKeyID, limit int) ([]rolecall.OperatorKey, error)
	// TouchOperatorKey writes a later last use, at most one in a TouchInterval.
	TouchOperatorKey(id rolecall.OperatorKeyID, at rolecall.Time)
	// DeleteOperatorKey removes the key and reports whether there was one.
	DeleteOperatorKey(id rolecall.OperatorKeyID) (bool, error)
}

// InstanceTx reads and writes what belongs to the whole instance.
type InstanceTx interface {
	// InstanceKeys returns the secrets of the instance, the current one first.
	InstanceKeys() ([][]byte, error)
	// InsertInstanceKey makes a secret the current one.
	InsertInstanceKey(key []byte, at rolecall.Time)
	// CountAttempt adds one to each bucket, starting anew where the window is
	// over, and returns their states in the same order.
	CountAttempt(buckets []rolecall.Bucket, now rolecall.Time) ([]rolecall.Attempts, error)
	// UncountAttempt takes one from each bucket, unless its window is another one by
	// now.
	UncountAttempt(counted []rolecall.Counted)
	// ForgiveAttempt clears the first bucket and takes one from each other, unless its
	// window is another one by now.
	ForgiveAttempt(counted []rolecall.Counted)
	// Attempts returns the states of the buckets in the same order, without counting;
	// zero for a bucket whose window is over.
	Attempts(buckets []rolecall.Bucket, now rolecall.Time) ([]rolecall.Attempts, error)
	// ClearAttempts removes what was counted in the buckets.
	ClearAttempts(buckets []rolecall.Bucket)
	// PurgeAttempts removes up to limit buckets whose window is over.
	PurgeAttempts(now rolecall.Time, limit int) (int, error)
}
