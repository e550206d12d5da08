package directory

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// CreateTenantWithPassword creates a tenant in one transaction, with the built-in roles and
// an active first owner. The owner signs in with the password. CreateTenantWithPassword can
// fail with ErrTenantExists, ErrValidation or ErrBusy.
func (s *Service) CreateTenantWithPassword(ctx context.Context, draft rolecall.TenantDraft, password string) (rolecall.Tenant, rolecall.User, error) {
	now := s.now()
	draft.NameMin = cmp.Or(draft.NameMin, s.access.NameMinimum)
	tenant, user := draft.Tenant(now), draft.Owner.User(now)
	faults, err := s.access.PasswordFieldErrors("/password", password, &user, &tenant)
	if err != nil {
		return rolecall.Tenant{}, rolecall.User{}, err
	}
	if err := append(draft.Check(), faults...).Err(); err != nil {
		return rolecall.Tenant{}, rolecall.User{}, err
	}
	hash, err := s.access.Passwords.Hash(ctx, password)
	if err != nil {
		return rolecall.Tenant{}, rolecall.User{}, err
	}
	user.Status = rolecall.UserActive
	err = s.access.Operate(ctx, tenant.ID, func(tx *store.Tx) (*rolecall.Event, error) {
		if err := s.insertTenant(tx, access.Command, tenant, user); err != nil {
			return nil, err
		}
		tx.SetPassword(user.ID, hash, now)
		event := s.access.OperatorEvent(rolecall.EventTenantCreated, rolecall.About(tenant.ID))
		return event, logForOperators(tx, *event, &tenant)
	})
	return tenant, user, err
}

// Tenants returns up to limit tenants with the status, sorted by name. It starts after the
// name after, which is the last name of the previous page. An empty status selects all
// tenants that are not deleted.
func (s *Service) Tenants(ctx context.Context, status rolecall.TenantStatus, after string, limit int) (tenants []rolecall.Tenant, err error) {
	return store.Read(ctx, s.store, rolecall.TenantID{}, func(tx *store.Tx) ([]rolecall.Tenant, error) {
		return tx.Tenants(rolecall.TenantQuery{Status: status, Now: s.now(), After: after, Limit: limit})
	})
}

// CountShorterRetention returns the number of tenants that keep events for a shorter time than the minimum
// of the operators.
func (s *Service) CountShorterRetention(ctx context.Context) (n int, err error) {
	for after := ""; ; {
		tenants, err := s.Tenants(ctx, "", after, rolecall.MaxLimit)
		if err != nil || len(tenants) == 0 {
			return n, err
		}
		for i := range tenants {
			if tenants[i].Settings.EventLifetime() < s.store.EventsAtLeast() {
				n++
			}
		}
		after = tenants[len(tenants)-1].Name
	}
}

// AddOwner assigns the role Owner to the user with the email address, without an expiry and
// for the whole tenant. Operators use it if a tenant has lost access to its owners.
// AddOwner returns ErrNotFound if the tenant or the user does not exist, and ErrLimitReached if the
// user has the maximum number of assignments.
func (s *Service) AddOwner(ctx context.Context, tenantName, email string) error {
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, _ *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		role, err := tx.RoleByKey(rolecall.OwnerKey)
		if err != nil {
			return nil, err
		}
		tx.LockOwners()
		a := rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: s.now()}
		if _, _, err := replaced(tx, &a); err != nil {
			return nil, err
		}
		tx.UpsertAssignment(a)
		event := s.access.OperatorEvent(rolecall.EventRoleAssigned, rolecall.About(user.ID))
		event.Members = []string{"roles"}
		return event, nil
	})
}

// CreateOwner creates an active user with the role Owner, who signs in with the password. Operators use it if
// a tenant has lost all its owners. CreateOwner can fail with ErrNotFound, ErrValidation, ErrEmailTaken or
// ErrBusy.
func (s *Service) CreateOwner(ctx context.Context, tenantName string, draft rolecall.UserDraft, password string) (user rolecall.User, err error) {
	tenant, err := s.access.TenantNamed(ctx, tenantName)
	if err != nil {
		return user, err
	}
	now := s.now()
	user = draft.User(now)
	user.Status = rolecall.UserActive
	faults, err := s.access.PasswordFieldErrors("/password", password, &user, &tenant)
	if err != nil {
		return user, err
	}
	if err := append(draft.Check(tenant.Settings.NameMinimum()), faults...).Err(); err != nil {
		return user, err
	}
	hash, err := s.access.Passwords.Hash(ctx, password)
	if err != nil {
		return user, err
	}
	return user, s.access.Operate(ctx, tenant.ID, func(tx *store.Tx) (*rolecall.Event, error) {
		role, err := tx.RoleByKey(rolecall.OwnerKey)
		if err != nil {
			return nil, err
		}
		tx.InsertUser(user)
		tx.SetPassword(user.ID, hash, now)
		event := s.access.OperatorEvent(rolecall.EventUserCreated, rolecall.About(user.ID))
		if event.Values, err = valuesAfter(user); err != nil {
			return nil, err
		}
		tx.InsertEvent(*event)
		a := rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: now}
		tx.UpsertAssignment(a)
		return s.assignmentEvent(access.Command, rolecall.EventRoleAssigned, rolecall.About(user.ID), nil, &a)
	})
}

// CreateOperatorKey creates an operator key. The returned token is the secret of the key,
// which is not stored. CreateOperatorKey returns ErrValidation, ErrNotFound if the draft
// names an unknown tenant, and an error of the kind Conflict if rolecall.OperatorKeysMax
// keys exist.
func (s *Service) CreateOperatorKey(ctx context.Context, draft rolecall.OperatorKeyDraft) (key rolecall.OperatorKey, token secret.Token, err error) {
	if err := draft.Check().Err(); err != nil {
		return key, "", err
	}
	for _, name := range draft.Tenants {
		if _, err := s.access.TenantNamed(ctx, name); err != nil {
			return key, "", err
		}
	}
	key, token = draft.OperatorKey(s.now()), secret.NewOperatorKey()
	err = s.access.Operate(ctx, rolecall.OperatorsTenant, func(tx *store.Tx) (*rolecall.Event, error) {
		keys, err := tx.OperatorKeys(rolecall.OperatorKeyID{}, rolecall.OperatorKeysMax)
		if err != nil {
			return nil, err
		}
		if len(keys) >= rolecall.OperatorKeysMax {
			return nil, errTooManyOperatorKeys
		}
		tx.InsertOperatorKey(key, token.Hash())
		event := s.access.OperatorEvent(rolecall.EventOperatorKeyCreated, rolecall.About(key.ID))
		event.Values, err = valuesAfter(newLoggedKey(&key))
		return event, err
	})
	if err == nil {
		s.log.InfoContext(ctx, "operator key created", "key", key.ID, "name", key.Name, "tenants", orAll(key.Tenants), "scopes", orAll(key.Scopes), "expires", key.ExpiresAt)
	}
	return key, token, err
}

// orAll returns the values, or all if they are nil.
func orAll[T any](values []T) any {
	if values == nil {
		return "all"
	}
	return values
}

var errTooManyOperatorKeys = &rolecall.Error{
	Kind: rolecall.Conflict, Code: "too-many-operator-keys",
	Detail: "This instance has the maximum number of operator keys, including expired ones. Revoke one first.",
}

// OperatorKeys returns up to limit operator keys, the oldest first. It starts after the key
// with the id after. The zero id selects the first page.
func (s *Service) OperatorKeys(ctx context.Context, after rolecall.OperatorKeyID, limit int) (keys []rolecall.OperatorKey, err error) {
	return store.Read(ctx, s.store, rolecall.TenantID{}, func(tx *store.Tx) ([]rolecall.OperatorKey, error) { return tx.OperatorKeys(after, limit) })
}

// RevokeOperatorKey revokes the operator key with the id. RevokeOperatorKey can fail with
// ErrNotFound.
func (s *Service) RevokeOperatorKey(ctx context.Context, id rolecall.OperatorKeyID) error {
	err := s.access.Operate(ctx, rolecall.OperatorsTenant, func(tx *store.Tx) (*rolecall.Event, error) {
		key, err := tx.OperatorKeyByID(id)
		var ok bool
		if err == nil {
			ok, err = tx.DeleteOperatorKey(id)
		}
		if found, err := access.Found(err); err != nil {
			return nil, err
		} else if !found || !ok {
			return nil, rolecall.ErrNotFound.With("No operator key has this ID. List the keys to find the right ID.")
		}
		revoked, err := json.Marshal(newLoggedKey(&key))
		event := s.access.OperatorEvent(rolecall.EventOperatorKeyRevoked, rolecall.About(id))
		event.Values = &rolecall.EventValues{Before: revoked}
		return event, err
	})
	if err == nil {
		s.log.InfoContext(ctx, "operator key revoked", "key", id)
	}
	return err
}

// loggedTenant is a tenant in the operators' log.
type loggedTenant struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// logForOperators adds an event about a tenant to the operators' log. There, the event has the name of the
// tenant, which a purge of the tenant removes elsewhere.
func logForOperators(tx *store.Tx, event rolecall.Event, tenant *rolecall.Tenant) error {
	named, err := json.Marshal(loggedTenant{tenant.Name, tenant.DisplayName})
	event.ID, event.Values = rolecall.NewID[rolecall.Event](event.OccurredAt), &rolecall.EventValues{After: named}
	if event.Type == rolecall.EventTenantDeleted {
		event.Values = &rolecall.EventValues{Before: named}
	}
	tx.InsertOperatorEvent(event)
	return err
}

// loggedKey is an operator key in the operators' log.
type loggedKey struct {
	Name      string                   `json:"name"`
	Tenants   []string                 `json:"tenants"` // null: all tenants
	Scopes    []rolecall.OperatorScope `json:"scopes"`
	ExpiresAt rolecall.Time            `json:"expiresAt"`
}

func newLoggedKey(k *rolecall.OperatorKey) loggedKey {
	logged := loggedKey{k.Name, k.Tenants, k.Scopes, k.ExpiresAt}
	if k.Scopes == nil {
		logged.Scopes = []rolecall.OperatorScope{rolecall.ScopeAll}
	}
	return logged
}

// OperatorEvents returns a page of the operators' log, newest first. It can fail with ErrScopeMissing or
// ErrPermissionDenied.
func (s *Service) OperatorEvents(ctx context.Context, c access.Caller, l EventListing) (page rolecall.Page[rolecall.Event], err error) {
	if err := authz.ReadOperatorEvents.Authorize(c.Principal); err != nil {
		return page, err
	}
	return store.Read(ctx, s.store, rolecall.OperatorsTenant, func(tx *store.Tx) (rolecall.Page[rolecall.Event], error) { return tx.Events(l.query()) })
}

// OperatorCheckpoint returns the signed state of the operators' log. It can fail with the errors of
// OperatorEvents.
func (s *Service) OperatorCheckpoint(ctx context.Context, c access.Caller, publicURL string) (auditlog.Checkpoint, error) {
	if err := authz.ReadOperatorEvents.Authorize(c.Principal); err != nil {
		return auditlog.Checkpoint{}, err
	}
	return s.access.AuditLog.Checkpoint(ctx, rolecall.OperatorsTenant, auditlog.OperatorsOrigin(publicURL))
}

// OperatorEventProof returns the proof that an event is in the operators' log. It can fail with the errors
// of OperatorEvents, ErrNotFound, or ErrUnavailable if the log does not have the event yet.
func (s *Service) OperatorEventProof(ctx context.Context, c access.Caller, publicURL string, id rolecall.EventID) (p EventProof, err error) {
	if err := authz.ReadOperatorEvents.Authorize(c.Principal); err != nil {
		return p, err
	}
	if p.Proof, err = s.access.AuditLog.Proof(ctx, rolecall.OperatorsTenant, auditlog.OperatorsOrigin(publicURL), id); err == nil {
		p.open(p.Event)
	}
	return p, err
}

// OperatorConsistency returns the proof that the operators' log begins with the first from events of an
// earlier checkpoint. It can fail with the errors of OperatorEvents, or ErrLogShorter.
func (s *Service) OperatorConsistency(ctx context.Context, c access.Caller, publicURL string, from int64) (auditlog.Consistency, error) {
	if err := authz.ReadOperatorEvents.Authorize(c.Principal); err != nil {
		return auditlog.Consistency{}, err
	}
	return s.access.AuditLog.Consistency(ctx, rolecall.OperatorsTenant, auditlog.OperatorsOrigin(publicURL), from)
}
