// Package connections manages the connections of tenants to identity providers (OpenID Connect), and the
// identities of users. Package signin signs users in with them. The package may import access and the
// packages that access may import.
package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/store"
)

// Service manages connections and identities. It is safe for concurrent use.
type Service struct {
	access *access.Service
	now    func() rolecall.Time
}

// New returns a Service.
func New(a *access.Service) *Service { return &Service{access: a, now: a.Now} }

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

// Offered returns the connections of the tenant for callers who are not signed in. It returns none if the
// tenant does not exist.
func (s *Service) Offered(ctx context.Context, tenant rolecall.TenantID) (all []rolecall.Connection, err error) {
	return store.Read(ctx, s.access.Store, tenant, (*store.Tx).Connections)
}

// Find returns the connection that is offered to people with an address of this domain, or nil. It
// depends only on the domain, so it reveals nothing of users. It can fail with ErrValidation.
func (s *Service) Find(ctx context.Context, tenant rolecall.TenantID, email string) (*rolecall.Connection, error) {
	domain := rolecall.EmailDomain(email)
	if domain == "" {
		var faults rolecall.FieldErrors
		faults.Add("/email", "email", "must be an email address such as ada@example.com")
		return nil, faults.Err()
	}
	all, err := s.Offered(ctx, tenant)
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
	connection.Secret, connection.ProvisionedBy = s.access.SealConnectionSecret(c.Tenant.ID, connection.ID, draft.ClientSecret), provisioner(c)
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.Connection]{
		Operation: "createConnection", ID: rolecall.AnyID(connection.ID), Value: connection,
		Event: s.access.Event(c, rolecall.EventConnectionCreated, rolecall.AboutConnection(connection.ID)),
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

// provisioner returns the user or service account that a connection remembers as the one who set its
// provisioning. It is zero for an operator.
func provisioner(c access.Caller) rolecall.UserID {
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
			changed.Secret = s.access.SealConnectionSecret(c.Tenant.ID, id, patch.ClientSecret.Value)
		}
		if slices.Contains(members, "provisioning") {
			changed.ProvisionedBy = provisioner(c)
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
		event := s.access.Event(c, rolecall.EventConnectionUpdated, rolecall.AboutConnection(id))
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

// deleted has the numbers of the objects that were deleted with a connection.
type deleted struct {
	Identities int `json:"identities"`
	Sessions   int `json:"sessions"`
}

// DeleteConnection deletes the connection. If users have identities of it, force must be true: then these
// are deleted too, and the sessions that began with them end. DeleteConnection can fail with
// ErrPermissionDenied, ErrSessionRequired, ErrConnectionInUse, ErrNotFound or ErrPreconditionFailed.
func (s *Service) DeleteConnection(ctx context.Context, c access.Caller, id rolecall.ConnectionID, force bool, match access.Match[rolecall.Connection]) error {
	if err := authz.DeleteConnection.Authorize(c.Principal); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
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
		access.VoidLinks(tx, sessions...)
		event := s.access.Event(c, rolecall.EventConnectionDeleted, rolecall.AboutConnection(id))
		event.Values, err = access.EventValues(&old, &deleted{identities, len(sessions)})
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
	if metadata, err = s.inspect(ctx, c.Tenant.ID, connection.Issuer); err != nil {
		return metadata, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, err := tx.Connection(id); err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventConnectionTested, rolecall.AboutConnection(id))
		event.Reason = "failed"
		if metadata.Passed() {
			event.Reason = "passed"
		}
		return event, nil
	})
	return metadata, err
}

func (s *Service) inspect(ctx context.Context, tenant rolecall.TenantID, issuer string) (oidc.Metadata, error) {
	call, end, err := s.access.BeginProviderCall(ctx, tenant)
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

// Identities returns the identities of the user, the oldest first. It can fail with ErrNotFound or
// ErrPermissionDenied.
func (s *Service) Identities(ctx context.Context, c access.Caller, id rolecall.UserID) (all []rolecall.Identity, err error) {
	if err := authz.ReadIdentities.AuthorizeFor(c.Principal, id); err != nil {
		return nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.ReadIdentities, id); err != nil {
			return err
		}
		all, err = tx.Identities(id)
		return err
	})
	return all, err
}

// DeleteIdentity removes the identity from the user, and ends the sessions that began with it. It can
// fail with ErrNotFound, ErrPermissionDenied, ErrSessionRequired or ErrBeyondOwnPermissions.
func (s *Service) DeleteIdentity(ctx context.Context, c access.Caller, user rolecall.UserID, id rolecall.IdentityID) error {
	if err := authz.DeleteIdentity.AuthorizeFor(c.Principal, user); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners() // keeps the roles of the user unchanged during the transaction
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.DeleteIdentity, user); err != nil {
			return nil, err
		}
		all, err := tx.Identities(user)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(i rolecall.Identity) bool { return i.ID == id })
		if at < 0 {
			return nil, rolecall.ErrNotFound
		}
		ended, ok, err := tx.DeleteIdentity(user, id)
		if err == nil && !ok {
			err = rolecall.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventIdentityUnlinked, rolecall.AboutUser(user))
		if event.Values, err = before(access.IdentityValue{Identity: all[at]}); err != nil {
			return nil, err
		}
		access.VoidLinks(tx, ended...)
		access.RecordEnded(tx, user, ended, event, "identity removed")
		return event, nil
	})
}

func before(value any) (*rolecall.EventValues, error) {
	text, err := json.Marshal(value)
	return &rolecall.EventValues{Before: text}, err
}
