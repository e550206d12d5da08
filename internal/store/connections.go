package store

import "github.com/rolecall/rolecall"

const (
	connectionColumns = `r.id, r.name, r.issuer, r.client_id, r.secret, r.domains, r.linking, r.provisioning, r.provisioned_by, r.second_factor,
			r.acr_values, r.amr_values, r.groups, r.created_at, r.updated_at, r.version`

	selectConnections = `select ` + connectionColumns + ` from connections r where r.tenant_id = $1 order by r.id limit $2`

	selectConnection = `select ` + connectionColumns + ` from connections r where r.tenant_id = $1 and r.id = $2`

	insertConnection = `insert into connections (tenant_id, id, name, name_key, issuer, client_id, secret, domains, linking, provisioning,
			provisioned_by, second_factor, acr_values, amr_values, groups, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

	updateConnection = `update connections set name = $1, name_key = case when name = $1 then name_key else $2 end, client_id = $3, secret = $4, domains = $5, linking = $6, provisioning = $7,
			provisioned_by = $8, second_factor = $9, acr_values = $10, amr_values = $11, groups = $12, updated_at = $13, version = $14
		where tenant_id = $15 and id = $16 and version = $17 returning version`

	releaseConnectionName = `update connections set name_key = $1 where tenant_id = $2 and name_key = (
		select min(name_key) from connections where tenant_id = $2 and name_key > $3 and name_key < $4)`

	renewSecret = `update connections set secret = $1 where tenant_id = $2 and id = $3 and secret = $4`

	deleteConnection = `delete from connections where tenant_id = $1 and id = $2 and version = $3 returning version`

	deleteIdentitiesOfConnection = `delete from identities where tenant_id = $1 and connection_id = $2 returning id`

	deleteSessionsOfConnection = `delete from sessions where tenant_id = $1 and connection_id = $2 returning id`

	selectConnectionInUse = `select 1 from identities where tenant_id = $1 and connection_id = $2 limit 1`

	countIdentities = `select count(*) from (select 1 from identities where tenant_id = $1 and connection_id = $2 limit $3) i`

	identityColumns = `r.id, r.user_id, r.connection_id, r.issuer, r.subject, r.email, r.created_at, r.last_used_at`

	selectIdentity = `select ` + identityColumns + ` from identities r where r.tenant_id = $1 and r.issuer = $2 and r.subject = $3`

	selectIdentities = `select ` + identityColumns + ` from identities r where r.tenant_id = $1 and r.user_id = $2 order by r.id limit $3`

	insertIdentity = `insert into identities (tenant_id, id, user_id, connection_id, issuer, subject, email, created_at, last_used_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	touchIdentity = `update identities set email = $1, last_used_at = $2 where tenant_id = $3 and id = $4 returning id`

	lockIdentity = `update identities set email = email where tenant_id = $1 and id = $2 returning id`

	deleteIdentity = `delete from identities where tenant_id = $1 and user_id = $2 and id = $3 returning id`

	deleteSessionsOfIdentity = `delete from sessions where tenant_id = $1 and user_id = $2 and identity_id = $3 returning id`
)

func connectionDest(c *rolecall.Connection) []any {
	return []any{&c.ID, &c.Name, &c.Issuer, &c.ClientID, &c.Secret, asJSON(&c.Domains), (*string)(&c.Linking), asJSON(&c.Provisioning), &c.ProvisionedBy,
		(*string)(&c.SecondFactor), asJSON(&c.ACRValues), asJSON(&c.AMRValues), asJSON(&c.Groups), &c.CreatedAt, &c.UpdatedAt, &c.Version}
}

// Connections returns all connections of the tenant, the oldest first.
func (t *Tx) Connections() ([]rolecall.Connection, error) {
	all := []rolecall.Connection{}
	_, err := t.q.Query(selectConnections, []any{t.tenant, rolecall.ConnectionsMax}, into(&all, connectionDest))
	return all, err
}

// Connection returns the connection with the id, or ErrNotFound.
func (t *Tx) Connection(id rolecall.ConnectionID) (c rolecall.Connection, err error) {
	err = t.row(selectConnection, []any{t.tenant, id}, connectionDest(&c)...)
	return c, err
}

// InsertConnection inserts a connection. Update returns ErrConnectionNameTaken or ErrIssuerTaken if
// another connection of the tenant has the name or the issuer.
func (t *Tx) InsertConnection(c rolecall.Connection) {
	t.q.Exec(insertConnection, t.tenant, c.ID, c.Name, c.NameKey(), c.Issuer, c.ClientID, c.Secret, asJSON(&c.Domains), string(c.Linking),
		asJSON(&c.Provisioning), c.ProvisionedBy, string(c.SecondFactor), asJSON(&c.ACRValues), asJSON(&c.AMRValues), asJSON(&c.Groups), c.CreatedAt, c.UpdatedAt, c.Version)
}

// UpdateConnection stores changed in place of old. The issuer does not change. UpdateConnection returns
// false if the stored version is not old.Version, or if the connection does not exist. Update returns
// ErrConnectionNameTaken if another connection has the new name.
func (t *Tx) UpdateConnection(old, changed rolecall.Connection) (bool, error) {
	ok, err := t.updateVersioned(updateConnection, old.ID, old.Version, changed.Name, changed.NameKey(), changed.ClientID, changed.Secret, asJSON(&changed.Domains),
		string(changed.Linking), asJSON(&changed.Provisioning), changed.ProvisionedBy, string(changed.SecondFactor), asJSON(&changed.ACRValues),
		asJSON(&changed.AMRValues), asJSON(&changed.Groups), changed.UpdatedAt, changed.Version)
	if ok && old.NameKey() != changed.NameKey() {
		t.releaseName(releaseConnectionName, old.NameKey())
	}
	return ok, err
}

// RenewConnectionSecret stores renewed in place of old, which is the same client secret encrypted with another
// key. It does nothing if the stored secret is another one. The version stays, because no client sees a change.
func (t *Tx) RenewConnectionSecret(id rolecall.ConnectionID, old, renewed []byte) {
	t.q.Exec(renewSecret, renewed, t.tenant, id, old)
}

// ConnectionInUse reports whether a user has an identity of the connection.
func (t *Tx) ConnectionInUse(id rolecall.ConnectionID) (bool, error) {
	return t.changed(selectConnectionInUse, t.tenant, id)
}

// CountIdentities returns the number of identities of the connection, up to MaxCount.
func (t *Tx) CountIdentities(id rolecall.ConnectionID) (rolecall.Total, error) {
	var count int
	err := t.row(countIdentities, []any{t.tenant, id, rolecall.MaxCount + 1}, &count)
	return rolecall.Total{Count: min(count, rolecall.MaxCount), Exact: count <= rolecall.MaxCount}, err
}

// DeleteConnection deletes the connection, its identities, and the sessions that began with it. It
// returns the number of deleted identities and the ids of the deleted sessions. It returns false if the
// stored version is not c.Version, or if the connection does not exist. It can have written something then, so
// the caller must return an error from Update, such as that of CheckVersion.
func (t *Tx) DeleteConnection(c rolecall.Connection) (identities int, sessions []rolecall.SessionID, ok bool, err error) {
	// A sign-in locks its identity before it inserts the session, so the sessions are deleted last.
	if identities, err = t.countRows(deleteIdentitiesOfConnection, t.tenant, c.ID); err != nil {
		return 0, nil, false, err
	}
	if ok, err = t.updateVersioned(deleteConnection, c.ID, c.Version); err != nil || !ok {
		return 0, nil, false, err
	}
	if _, err = t.q.Query(deleteSessionsOfConnection, []any{t.tenant, c.ID}, into(&sessions, oneColumn)); err != nil {
		return 0, nil, false, err
	}
	if len(sessions) > 0 {
		t.invalidate(t.tenant)
	}
	return identities, sessions, true, nil
}

func identityDest(i *rolecall.Identity) []any {
	return []any{&i.ID, &i.UserID, &i.ConnectionID, &i.Issuer, &i.Subject, &i.Email, &i.CreatedAt, &i.LastUsedAt}
}

// Identity returns the identity with the issuer and the subject, or ErrNotFound.
func (t *Tx) Identity(issuer, subject string) (i rolecall.Identity, err error) {
	err = t.row(selectIdentity, []any{t.tenant, issuer, subject}, identityDest(&i)...)
	return i, err
}

// Identities returns the identities of the user, the oldest first. It returns at most IdentitiesMax.
func (t *Tx) Identities(user rolecall.UserID) ([]rolecall.Identity, error) {
	all := []rolecall.Identity{}
	_, err := t.q.Query(selectIdentities, []any{t.tenant, user, rolecall.IdentitiesMax}, into(&all, identityDest))
	return all, err
}

// InsertIdentity inserts an identity. Update returns ErrIdentityTaken if the tenant has the issuer and the
// subject already, and ErrNotFound if the user or the connection does not exist.
func (t *Tx) InsertIdentity(i rolecall.Identity) {
	t.q.Exec(insertIdentity, t.tenant, i.ID, i.UserID, i.ConnectionID, i.Issuer, i.Subject, i.Email, i.CreatedAt, i.LastUsedAt)
}

// TouchIdentity stores the time of a sign-in with the identity, and the address that the provider sent. It
// reports whether the identity exists, and prevents its deletion until the end of this Update. A sign-in
// must call it before InsertSession.
func (t *Tx) TouchIdentity(id rolecall.IdentityID, email string, at rolecall.Time) (bool, error) {
	return t.changed(touchIdentity, email, at, t.tenant, id)
}

// DeleteIdentity deletes the identity of the user, and the sessions that began with it. It returns the ids
// of these sessions. It returns false if the user has no such identity.
func (t *Tx) DeleteIdentity(user rolecall.UserID, id rolecall.IdentityID) (sessions []rolecall.SessionID, ok bool, err error) {
	if ok, err = t.changed(deleteIdentity, t.tenant, user, id); err != nil || !ok {
		return nil, false, err
	}
	_, err = t.q.Query(deleteSessionsOfIdentity, []any{t.tenant, user, id}, into(&sessions, oneColumn))
	if len(sessions) > 0 {
		t.invalidate(user)
	}
	return sessions, err == nil, err
}

// LockIdentity reports whether the identity exists, and prevents its deletion until the end of this Update.
func (t *Tx) LockIdentity(id rolecall.IdentityID) (bool, error) {
	return t.changed(lockIdentity, t.tenant, id)
}
