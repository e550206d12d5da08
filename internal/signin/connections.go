package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/limiter"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/store"
)

// Connections returns the connections of the tenant, the oldest first. It can fail with
// ErrPermissionDenied.
func (s *Service) Connections(ctx context.Context, c access.Caller) (all []rolecall.Connection, err error) {
	if err := authz.ReadConnections.Authorize(c.Principal); err != nil {
		return nil, err
	}
	return access.Read(ctx, s.access, c, (*store.Tx).Connections)
}

// Connection returns the connection with the id. It can fail with ErrNotFound or ErrPermissionDenied.
func (s *Service) Connection(ctx context.Context, c access.Caller, id rolecall.ConnectionID) (connection rolecall.Connection, err error) {
	if err := authz.ReadConnections.Authorize(c.Principal); err != nil {
		return connection, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Connection, error) { return tx.Connection(id) })
}

// OfferedConnections returns the connections of the tenant for callers who are not signed in. It returns
// none if the tenant does not exist.
func (s *Service) OfferedConnections(ctx context.Context, tenant rolecall.TenantID) (all []rolecall.Connection, err error) {
	return store.Read(ctx, s.access.Store, tenant, (*store.Tx).Connections)
}

// FindConnection returns the connection that is offered to people with an address of this domain, or nil.
// It depends only on the domain, so it reveals nothing of users. It can fail with ErrValidation.
func (s *Service) FindConnection(ctx context.Context, tenant rolecall.TenantID, email string) (*rolecall.Connection, error) {
	domain := rolecall.EmailDomain(email)
	if domain == "" {
		var faults rolecall.FieldErrors
		faults.Add("/email", "email", "must be an email address such as ada@example.com")
		return nil, faults.Err()
	}
	all, err := s.OfferedConnections(ctx, tenant)
	for i := range all {
		if all[i].HasDomain(domain) {
			return &all[i], err
		}
	}
	return nil, err
}

// CreateConnection creates a connection, once for each idempotency key. It can fail with
// ErrPermissionDenied, ErrSessionRequired, ErrBeyondOwnPermissions, ErrValidation, ErrTooManyConnections,
// ErrConnectionNameTaken, ErrIssuerTaken, ErrDomainTaken, and the errors of idempotency keys.
func (s *Service) CreateConnection(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.ConnectionDraft) (created idempotency.Created[rolecall.Connection], err error) {
	if err := authz.CreateConnection.Authorize(c.Principal); err != nil {
		return created, err
	}
	faults := draft.Check()
	if len(faults) == 0 {
		if err := s.access.OIDC.CheckIssuer(draft.Issuer); err != nil {
			faults.Add("/issuer", "issuer", err.Error())
		}
	}
	if err := faults.Err(); err != nil {
		return created, err
	}
	connection := draft.Connection(s.now())
	connection.Secret, connection.ProvisionedBy = s.SealConnectionSecret(c.Tenant.ID, connection.ID, draft.ClientSecret), provisionedBy(c)
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.Connection]{
		Operation: "createConnection", ID: rolecall.AnyID(connection.ID), Value: connection,
		Event: s.access.Event(c, rolecall.EventConnectionCreated, rolecall.About(connection.ID)),
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			if err := s.checkOthers(tx, &connection); err != nil {
				return err
			}
			if err := s.checkProvisioning(tx, c, connection.Provisioning); err != nil {
				return err
			}
			tx.InsertConnection(connection)
			return nil
		},
		OnlyID: func(id rolecall.AnyID) rolecall.Connection {
			return rolecall.Connection{ID: rolecall.ConnectionID(id)}
		},
	})
}

// provisionedBy returns the user or service account that a connection remembers as the one who set its
// provisioning. It is zero for an operator.
func provisionedBy(c access.Caller) rolecall.UserID {
	if c.Kind == authz.PrincipalOperator {
		return rolecall.UserID{}
	}
	return c.User.ID
}

// checkOthers checks a new or changed connection against the other connections. The caller must have called
// LockOwners.
func (s *Service) checkOthers(tx *store.Tx, connection *rolecall.Connection) error {
	all, err := tx.Connections()
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(all, func(other rolecall.Connection) bool { return other.ID == connection.ID })
	if len(others) >= rolecall.ConnectionsMax {
		return rolecall.ErrTooManyConnections
	}
	for _, other := range others {
		if slices.ContainsFunc(connection.Domains, func(domain string) bool { return other.HasDomain(rolecall.DomainKey(domain)) }) {
			return rolecall.ErrDomainTaken
		}
	}
	return nil
}

// checkProvisioning checks whether the caller may give the roles to new users.
func (s *Service) checkProvisioning(tx *store.Tx, c access.Caller, p *rolecall.Provisioning) error {
	if p == nil {
		return nil
	}
	var faults rolecall.FieldErrors
	for i, id := range p.RoleIDs {
		role, err := tx.RoleByID(id)
		switch {
		case errors.Is(err, rolecall.ErrNotFound):
			faults.Add(fmt.Sprintf("/provisioning/roleIds/%d", i), "unknown", "must be the ID of a role of this tenant")
			continue
		case err != nil:
			return err
		case role.Key != nil && *role.Key == rolecall.OwnerKey:
			faults.Add(fmt.Sprintf("/provisioning/roleIds/%d", i), "owner", "must not be the role Owner: assign it to single users")
			continue
		}
		if err := authz.RequireGrantable(c.Principal, &role, rolecall.Everywhere(), rolecall.Never); err != nil {
			return err
		}
	}
	return faults.Err()
}

// UpdateConnection applies the patch to the stored connection. After a concurrent change, it applies the
// patch to the new version. UpdateConnection can fail with ErrPermissionDenied, ErrSessionRequired,
// ErrBeyondOwnPermissions, ErrValidation, ErrConnectionNameTaken, ErrDomainTaken, ErrNotFound or
// ErrPreconditionFailed.
func (s *Service) UpdateConnection(ctx context.Context, c access.Caller, id rolecall.ConnectionID, patch rolecall.ConnectionPatch, match access.Match[rolecall.Connection]) (connection rolecall.Connection, err error) {
	if err := authz.UpdateConnection.Authorize(c.Principal); err != nil {
		return connection, err
	}
	faults := patch.Check()
	if err := faults.Err(); err != nil {
		return connection, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners()
		old, err := tx.Connection(id)
		if err == nil {
			err = match.Check(&old)
		}
		if err != nil {
			return nil, err
		}
		changed, members, err := patch.Apply(old, s.now())
		if connection = changed; err != nil || members == nil {
			return nil, err
		}
		if patch.ClientSecret.Set {
			changed.Secret = s.SealConnectionSecret(c.Tenant.ID, id, patch.ClientSecret.Value)
		}
		if slices.Contains(members, "provisioning") {
			changed.ProvisionedBy = provisionedBy(c)
			if err := s.checkProvisioning(tx, c, changed.Provisioning); err != nil {
				return nil, err
			}
		}
		if err := s.checkOthers(tx, &changed); err != nil {
			return nil, err
		}
		if err := store.CheckVersion(tx.UpdateConnection(old, changed)); err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventConnectionUpdated, rolecall.About(id))
		event.Members = members
		event.Values, err = access.EventValues(&old, &changed)
		return event, err
	})
	if err != nil {
		return rolecall.Connection{}, err
	}
	return connection, nil
}

// CountIdentities returns the number of identities of the connection. It can fail with ErrPermissionDenied.
func (s *Service) CountIdentities(ctx context.Context, c access.Caller, id rolecall.ConnectionID) (total rolecall.Total, err error) {
	if err := authz.ReadConnections.Authorize(c.Principal); err != nil {
		return total, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Total, error) { return tx.CountIdentities(id) })
}

// deletedConnection has the numbers of the objects that were deleted with a connection.
type deletedConnection struct {
	Identities int `json:"identities"`
	Sessions   int `json:"sessions"`
}

// DeleteConnection deletes the connection. If users have identities of it, force must be true: then these are deleted
// too, and the sessions that began with them end. The groups of the connection remain with their members, without a
// source. DeleteConnection can fail with ErrPermissionDenied, ErrSessionRequired, ErrConnectionInUse, ErrNotFound or
// ErrPreconditionFailed.
func (s *Service) DeleteConnection(ctx context.Context, c access.Caller, id rolecall.ConnectionID, force bool, match access.Match[rolecall.Connection]) error {
	if err := authz.DeleteConnection.Authorize(c.Principal); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners() // so that no group with this source is created
		old, err := tx.Connection(id)
		if err == nil {
			err = match.Check(&old)
		}
		if err != nil {
			return nil, err
		}
		if used, err := tx.ConnectionInUse(id); err != nil {
			return nil, err
		} else if used && !force {
			return nil, rolecall.ErrConnectionInUse
		}
		identities, sessions, ok, err := tx.DeleteConnection(old)
		if err := store.CheckVersion(ok, err); err != nil {
			return nil, err
		}
		if err := s.access.ReleaseGroups(tx, c, rolecall.SourceOf(id), old.Name); err != nil {
			return nil, err
		}
		access.VoidLinks(tx, sessions...)
		event := s.access.Event(c, rolecall.EventConnectionDeleted, rolecall.About(id))
		event.Values, err = access.EventValues(&old, &deletedConnection{identities, len(sessions)})
		return event, err
	})
}

// TestConnection fetches the metadata and the keys of the provider, and records the result as an event. It
// can fail with ErrPermissionDenied, ErrNotFound or ErrConnectionUnavailable.
func (s *Service) TestConnection(ctx context.Context, c access.Caller, id rolecall.ConnectionID) (metadata oidc.Metadata, err error) {
	if err := authz.TestConnection.Authorize(c.Principal); err != nil {
		return metadata, err
	}
	connection, err := access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Connection, error) { return tx.Connection(id) })
	if err != nil {
		return metadata, err
	}
	if metadata, err = s.inspectProvider(ctx, c.Tenant.ID, connection.Issuer); err != nil {
		return metadata, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, err := tx.Connection(id); err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventConnectionTested, rolecall.About(id))
		event.Reason = "failed"
		if metadata.Passed() {
			event.Reason = "passed"
		}
		return event, nil
	})
	return metadata, err
}

func (s *Service) inspectProvider(ctx context.Context, tenant rolecall.TenantID, issuer string) (oidc.Metadata, error) {
	call, end, err := s.BeginProviderCall(ctx, tenant)
	if err != nil {
		return oidc.Metadata{}, err
	}
	defer end()
	metadata, err := s.access.OIDC.Inspect(call, issuer)
	if call.Err() != nil && ctx.Err() == nil { // the call made room for another tenant
		err = rolecall.ErrConnectionUnavailable
	}
	return metadata, err
}

// connectionPurpose is the purpose of the encryption of client secrets.
const connectionPurpose = "connection"

// SealConnectionSecret encrypts the client secret of the connection.
func (s *Service) SealConnectionSecret(tenant rolecall.TenantID, id rolecall.ConnectionID, text string) []byte {
	return []byte(s.keys.Seal(connectionPurpose, []byte(text), append(tenant[:], id[:]...)))
}

// ConnectionSecret returns the client secret of the connection.
func (s *Service) ConnectionSecret(tenant rolecall.TenantID, c *rolecall.Connection) (string, error) {
	plain, err := s.keys.Open(connectionPurpose, string(c.Secret), append(tenant[:], c.ID[:]...))
	return string(plain), err
}

// renewConnectionSecret returns the client secret of the connection, encrypted with the current key of the
// instance. It returns the stored one if the current key has encrypted it.
func (s *Service) renewConnectionSecret(tenant rolecall.TenantID, c *rolecall.Connection) []byte {
	return []byte(s.keys.Renew(connectionPurpose, string(c.Secret), append(tenant[:], c.ID[:]...)))
}

// providerCallsAtOnce is the maximum number of calls of identity providers that run at the same time in one
// process, so that slow providers do not use up its memory and its connections.
const providerCallsAtOnce = 256

// newProviderCalls returns the limit of the calls of identity providers, with shares between tenants.
func newProviderCalls() *limiter.Shares[rolecall.TenantID] {
	return limiter.NewShares[rolecall.TenantID](providerCallsAtOnce)
}

// BeginProviderCall begins a call of an identity provider. The caller must use the returned context for it, and
// call end after it. If too many calls run, the tenant with most of them loses its newest. BeginProviderCall
// returns ErrConnectionUnavailable if no tenant has more than this one would have. Calls are counted by tenant
// and not by issuer, so that one tenant cannot block an issuer that others use too.
func (s *Service) BeginProviderCall(ctx context.Context, tenant rolecall.TenantID) (call context.Context, end func(), err error) {
	call, end, ok := s.calls.Begin(ctx, tenant)
	if !ok {
		return nil, nil, rolecall.ErrConnectionUnavailable
	}
	return call, end, nil
}
