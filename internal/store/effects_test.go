package store

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
)

const effectsTime rolecall.Time = 1_800_000_000_000_000

var (
	aTenant  = rolecall.NewID[rolecall.Tenant](effectsTime)
	aUser    = rolecall.NewID[rolecall.User](effectsTime)
	aRole    = rolecall.NewID[rolecall.Role](effectsTime)
	aSession = rolecall.NewID[rolecall.Session](effectsTime)
	anAPIKey = rolecall.NewID[rolecall.APIToken](effectsTime)
	aKey     = rolecall.NewID[rolecall.OperatorKey](effectsTime)
	aProgram = rolecall.NewID[rolecall.ServiceAccount](effectsTime)
	aBucket  = rolecall.Bucket{Key: []byte("a bucket of 16 b and more")}

	heldByUser    = rolecall.Assignment{Holder: rolecall.HolderOf(aUser), Role: rolecall.Role{ID: aRole}}
	heldByProgram = rolecall.Assignment{Holder: rolecall.HolderOf(aProgram), Role: rolecall.Role{ID: aRole}}
)

// invalidations are the methods of Tx that change cached data. Each case has the id that
// the method must report as stale.
var invalidations = map[string]struct {
	run  func(*Tx)
	id   [16]byte
	here [16]byte // the id that it invalidates only in this process
}{
	"UpdateUser":       {run: func(tx *Tx) { ignore(tx.UpdateUser(rolecall.User{ID: aUser}, rolecall.User{})) }, id: aUser},
	"DeleteUser":       {run: func(tx *Tx) { ignore(tx.DeleteUser(rolecall.User{ID: aUser}, effectsTime)) }, id: aUser},
	"UpdateRole":       {run: func(tx *Tx) { ignore(tx.UpdateRole(rolecall.Role{ID: aRole}, rolecall.Role{})) }, id: aTenant},
	"DeleteRole":       {run: func(tx *Tx) { ignore(tx.DeleteRole(rolecall.Role{ID: aRole})) }, id: aTenant},
	"HideRole":         {run: func(tx *Tx) { ignore(tx.HideRole(rolecall.Role{ID: aRole}, rolecall.EventID{})) }, id: aTenant},
	"UpsertAssignment": {run: func(tx *Tx) { tx.UpsertAssignment(heldByUser) }, id: aUser},
	"DeleteAssignment": {run: func(tx *Tx) { ignore(tx.DeleteAssignment(heldByUser.Holder, aRole, effectsTime)) }, id: aUser},
	"UpdateServiceAccount": {run: func(tx *Tx) {
		ignore(tx.UpdateServiceAccount(rolecall.ServiceAccount{ID: aProgram}, rolecall.ServiceAccount{}))
	}, id: aProgram},
	"DeleteServiceAccount":                  {run: func(tx *Tx) { ignore(tx.DeleteServiceAccount(rolecall.ServiceAccount{ID: aProgram})) }, id: aProgram},
	"UpsertAssignment of a service account": {run: func(tx *Tx) { tx.UpsertAssignment(heldByProgram) }, id: aProgram},
	"DeleteAssignment of a service account": {run: func(tx *Tx) { ignore(tx.DeleteAssignment(heldByProgram.Holder, aRole, effectsTime)) }, id: aProgram},
	"TouchSession":                          {run: func(tx *Tx) { tx.TouchSession(aSession, effectsTime, rolecall.TouchInterval) }, here: aSession},
	"ConfirmGeneration":                     {run: func(tx *Tx) { tx.ConfirmGeneration(aSession, 2, effectsTime) }, id: aSession},
	"ConfirmSession":                        {run: func(tx *Tx) { ignore(tx.ConfirmSession(aSession, effectsTime)) }, id: aSession},
	"DeleteSession":                         {run: func(tx *Tx) { ignore(tx.DeleteSession(aSession)) }, id: aSession},
	"DeleteUserSession": {run: func(tx *Tx) {
		ignore(tx.DeleteUserSession(aUser, aSession, rolecall.TenantSettings{}, effectsTime))
	}, id: aSession},
	"DeleteOldestSessions": {run: func(tx *Tx) {
		ignore(tx.DeleteOldestSessions(aUser, 1, rolecall.TenantSettings{}, effectsTime))
	}, id: aUser},
	"DeleteSessions":      {run: func(tx *Tx) { ignore(tx.DeleteSessions(aUser, rolecall.SessionID{})) }, id: aUser},
	"TouchAPIToken":       {run: func(tx *Tx) { tx.TouchAPIToken(anAPIKey, effectsTime) }, here: anAPIKey},
	"DeleteAPIToken":      {run: func(tx *Tx) { ignore(tx.DeleteAPIToken(anAPIKey)) }, id: anAPIKey},
	"DeleteUserAPITokens": {run: func(tx *Tx) { ignore(tx.DeleteUserAPITokens(aUser, effectsTime)) }, id: aUser},
	"ConfirmTOTP":         {run: func(tx *Tx) { ignore(tx.ConfirmTOTP(aUser, nil, 1, effectsTime)) }, id: aUser},
	"DeleteTOTP":          {run: func(tx *Tx) { tx.DeleteTOTP(aUser) }, id: aUser},
	"InsertPasskey":       {run: func(tx *Tx) { tx.InsertPasskey(rolecall.Passkey{UserID: aUser}) }, id: aUser},
	"DeletePasskey":       {run: func(tx *Tx) { ignore(tx.DeletePasskey(aUser, nil)) }, id: aUser},
	"DeleteFactors":       {run: func(tx *Tx) { tx.DeleteFactors(aUser) }, id: aUser},
	"UpdateTenant":        {run: func(tx *Tx) { ignore(tx.UpdateTenant(rolecall.Tenant{ID: aTenant}, rolecall.Tenant{})) }, id: aTenant},
	"UpdateLogo":          {run: func(tx *Tx) { ignore(tx.UpdateLogo(rolecall.Tenant{ID: aTenant}, rolecall.Tenant{}, nil)) }, id: aTenant},
	"DeleteTenant":        {run: func(tx *Tx) { ignore(tx.DeleteTenant(rolecall.Tenant{ID: aTenant}, effectsTime)) }, id: aTenant},
	"RestoreTenant":       {run: func(tx *Tx) { ignore(tx.RestoreTenant(rolecall.Tenant{ID: aTenant, Name: "acme"}, effectsTime)) }, id: aTenant, here: rolecall.TenantNameID("acme")},
	"InsertTenant":        {run: func(tx *Tx) { tx.InsertTenant(rolecall.Tenant{ID: aTenant, Name: "acme"}) }, here: rolecall.TenantNameID("acme")},
	"TouchOperatorKey":    {run: func(tx *Tx) { tx.TouchOperatorKey(aKey, effectsTime) }, here: aKey},
	"DeleteOperatorKey":   {run: func(tx *Tx) { ignore(tx.DeleteOperatorKey(aKey)) }, id: aKey},
	"DeleteConnection":    {run: func(tx *Tx) { _, _, _, err := tx.DeleteConnection(rolecall.Connection{}); ignore(nil, err) }, id: aTenant},
	"DeleteIdentity":      {run: func(tx *Tx) { _, _, err := tx.DeleteIdentity(aUser, rolecall.IdentityID{}); ignore(nil, err) }, id: aUser},
	"ClearAttempts":       {run: func(tx *Tx) { tx.ClearAttempts([]rolecall.Bucket{aBucket}) }, id: aBucket.ID()},
}

func ignore(any, error) {}

// uncached are the methods of Tx that change no cached data. They only read, insert rows
// that no cache can contain, or change data that is never cached.
var uncached = []string{
	"AccessAssignments", "AccountAccessAssignments", "APIToken", "APITokenByHash", "APITokens", "Assignment", "AssignmentHistoryBegin", "Assignments", "AssignmentsAt", "Attempts", "CountAssignments", "CountInvitations", "CountJobs", "CountKeys", "CountMail", "DeletedTenant", "Deletions", "Departments",
	"EventByID", "Events", "EventsOfDays", "ExpiredMail", "ExpiringRoles", "ExpiringTokens", "FactorCoverage", "Factors", "FailedSignIns", "Feed", "FeedOfTenants", "FeedPlaces", "HasNews", "IsPublished", "HadHolders", "Hashes", "HiddenRole", "IDToken", "InstanceKeys", "IsJobDue", "Job", "JobResults", "Jobs", "KeyFingerprints", "LeafHash", "Invitations", "InvitationByToken", "InvitationOf", "Key", "LastLogin", "LogoFile", "OneTimeToken", "OperatorKeyByID", "OperatorKeyByToken",
	"OldestOwners", "OperatorKeys", "Owners", "PasskeyByID", "PasswordHash", "RoleByID", "RoleByKey", "RoleInUse", "RoleNames", "Roles", "RolesByID", "ServiceAccountByID",
	"ServiceAccounts", "ServiceAccountsByID", "ServiceAccountsWithAccess", "SessionByID", "SessionByToken", "SessionWithRoles", "Sessions", "SignInDetails", "SignInSummary",
	"TenantByID", "TenantByName", "TenantNames", "TenantsByID", "Tenants", "TenantsToPurge", "Tiles", "Tombstone", "Tombstones", "TombstonesByUser", "UserByEmail", "UserByID", "Users", "UsersByID", "UsersWithAccess", "UsersWithAddress", "UsersWithoutFactor",

	"InsertAPIToken", "InsertAssignments", "InsertErasure", "InsertEvent", "InsertIDToken", "InsertInstanceKey", "InsertJob", "InsertJobResults", "InsertKey", "InsertKeyFingerprint", "InsertMail", "InsertOneTimeToken",
	"InsertOperatorEvent", "InsertOperatorKey", "InsertRole", "InsertServiceAccount", "InsertSession", "InsertUser", "InsertUsers", "InsertWebhook", "IsFollowed", "IsWebhookDue", "LockFeed", "LockPlaces", "UpsertInvitation",

	"BeginPurge", "BuildLog", "ChangeHeads", "Changes", "ClaimJob", "ClaimMail", "ClaimWebhooks", "CountDisabledWebhooks", "CountAttempt", "DeleteAllOneTimeTokens", "DeleteHiddenRole", "DeleteInvitation", "DeleteInvitationOf", "DeleteKey", "DeleteLinks",
	"DeleteMail", "DeleteOneTimeToken", "DeleteOneTimeTokens", "DeleteOwnEmailChanges", "DeleteQueuedJob", "DeleteWebhook", "DropWebhook", "EraseTraces", "ForgiveAttempt", "GivePlaces", "LockAPIToken", "LockActiveUser", "LockIdentity", "LockJob", "Log", "LoggedEvent", "LoggedEvents",
	"LockOwners", "LockSession", "NumberEvents", "PostponeMail", "ProbeWrites", "PromoteWebhook", "PurgeAttempts", "PurgeExpired", "PurgePlaces", "PurgeRequests", "PurgeTenant", "ReleaseJob", "RenewConnectionSecret", "ReplayWebhook", "RetryWebhook", "SettleWebhook", "SkipAll", "SkipBlocked", "TestWebhook", "UpdateJob", "UpdateWebhook", "UpsertDelivery", "UpsertPendingTOTP", "RenamePasskey",
	"ReplacePassword", "ReplaceRecoveryCodes", "SealSuccessor", "SetPassword", "SetSigningKey", "StartAssignments", "ConsumeOneTimeToken", "DeleteAssignments", "DeleteServiceAccountRoles", "DeleteTombstone", "UncountAttempt", "UnloggedEvents", "Unnumbered", "UsePasskey",
	"UseRecoveryCode", "UseTOTP", "Webhook", "WebhookCursors", "WebhookDeliveries", "Webhooks",

	"Connection", "ConnectionInUse", "Connections", "CountIdentities", "Identities", "Identity", "InsertConnection", "InsertIdentity", "TouchIdentity", "UpdateConnection",
}

// changing is a Querier that records the announced ids. Each of its statements returns the
// given number of rows.
type changing struct {
	rows      int
	announced []rolecall.AnyID
}

func (c *changing) Exec(string, ...any) {}

func (c *changing) Announce(id rolecall.AnyID) { c.announced = append(c.announced, id) }

func (c *changing) AnnounceChanges(rolecall.TenantID) {}

// Enter does nothing: no statement that is tested follows it.
func (c *changing) Enter(rolecall.TenantID) {}

func (c *changing) ShowAddress(string) {}

func (c *changing) Query(_ string, _ []any, each func(func(...any) error) error) (int, error) {
	for range c.rows {
		if err := each(func(dest ...any) error {
			for _, d := range dest {
				switch d := d.(type) {
				case *rolecall.Time:
					*d = effectsTime + 1
				case *rolecall.UserID:
					*d = aUser
				}
			}
			return nil
		}); err != nil {
			return 0, err
		}
	}
	return c.rows, nil
}

func TestEveryMutationOfCachedDataInvalidatesIt(t *testing.T) {
	known := slices.Clone(uncached)
	for method, c := range invalidations {
		known = append(known, method)
		q := &changing{rows: 1}
		tx := NewTx(q, aTenant)
		c.run(tx)
		isZero := func(id rolecall.AnyID) bool { return id.IsZero() }
		if want := slices.DeleteFunc([]rolecall.AnyID{c.here, c.id}, isZero); !slices.Equal(tx.effects.Invalidated, want) {
			t.Errorf("%s invalidates %v, want %v", method, tx.effects.Invalidated, want)
		}
		if want := slices.DeleteFunc([]rolecall.AnyID{c.id}, isZero); !slices.Equal(q.announced, want) {
			t.Errorf("%s announces %v, want %v", method, q.announced, want)
		}
	}
	for method := range reflect.TypeFor[*Tx]().Methods() {
		if !slices.Contains(known, method.Name) {
			t.Errorf("add %s to invalidations or to uncached", method.Name)
		}
	}
}

func TestAMutationWithoutAnEffectInvalidatesNothing(t *testing.T) {
	blind := []string{"UpsertAssignment", "UpsertAssignment of a service account", "TouchSession", "ConfirmGeneration", "TouchAPIToken", "DeleteTOTP", "InsertPasskey", "DeleteFactors", "TouchOperatorKey", "ClearAttempts", "InsertTenant"}
	for method, c := range invalidations {
		if slices.Contains(blind, method) { // the method does not know whether it changed a row
			continue
		}
		q := &changing{}
		tx := NewTx(q, aTenant)
		if c.run(tx); len(tx.effects.Invalidated) != 0 || len(q.announced) != 0 {
			t.Errorf("%s invalidates %v without a change", method, tx.effects.Invalidated)
		}
	}
}

// retried is a Database that runs the function of each Update twice and then returns an
// error.
type retried struct{ nested }

var errOutcomeUnknown = errors.New("the connection was lost during the commit")

func (r retried) Update(_ context.Context, _ rolecall.TenantID, fn func(Querier) error) error {
	return errors.Join(fn(r.q), fn(r.q), errOutcomeUnknown)
}

func TestEffectsOfTheLastAttemptAreReportedAfterAFailure(t *testing.T) {
	var reported []Effects
	s := New(retried{nested{&changing{rows: 1}}}, func(e Effects) { reported = append(reported, e) })
	attempts := 0
	err := s.Update(t.Context(), aTenant, func(tx *Tx) error {
		if attempts++; attempts == 1 {
			tx.DeleteTOTP(aUser)
			tx.InsertMail(rolecall.OutboxMail{})
			return nil
		}
		_, err := tx.DeleteSession(aSession)
		return err
	})
	want := []Effects{{Invalidated: []rolecall.AnyID{rolecall.AnyID(aSession)}, Tenant: aTenant}}
	if !errors.Is(err, errOutcomeUnknown) || !reflect.DeepEqual(reported, want) {
		t.Errorf("reported are %v after %v, want %v", reported, err, want)
	}
	reported = nil
	if err := New(nested{&changing{}}, func(e Effects) { reported = append(reported, e) }).Update(t.Context(), aTenant, func(tx *Tx) error {
		tx.InsertMail(rolecall.OutboxMail{})
		return nil
	}); err != nil || len(reported) != 1 || !reported[0].Mailed {
		t.Errorf("after a mail: %v, %v", reported, err)
	}
}
