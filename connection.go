package rolecall

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The limits of connections and identities.
const (
	ConnectionsMax       = 20 // in a tenant
	ConnectionNameMin    = 2
	ConnectionNameMax    = 100
	ConnectionDomainsMax = 100
	ConnectionRolesMax   = 20 // that new users get
	ConnectionValuesMax  = 20 // of acr, and of amr
	ConnectionValueMax   = 255
	IdentitiesMax        = 20 // of a user
	ConnectionIssuerMax  = 255
	ConnectionClientMax  = 255
	ConnectionSecretMax  = 1024
	ConnectionClaimMax   = 255
	ConnectionScopesMax  = 10
	ConnectionScopeMax   = 255
)

// Linking says which users an identity that is not known yet is linked to.
type Linking string

// The values of Linking.
const (
	LinkInvited       Linking = "invited"        // only to the user of an invitation, or to the user who is signed in
	LinkVerifiedEmail Linking = "verified-email" // also to the user with the address that the provider has verified, except owners
)

// ConnectionFactor says whether Rolecall requires a second factor after a sign-in with the connection.
type ConnectionFactor string

// The values of ConnectionFactor.
const (
	FactorRequire ConnectionFactor = "require" // the rules of the tenant apply, as for a sign-in with a password
	FactorTrust   ConnectionFactor = "trust"   // the ID token can prove a second factor
)

// GroupMatch says how the values of a claim name groups.
type GroupMatch string

// The values of GroupMatch.
const (
	MatchName       GroupMatch = "name"
	MatchExternalID GroupMatch = "externalId"
)

// ConnectionGroups says how a claim of the identity provider fills the groups whose source is the connection.
type ConnectionGroups struct {
	Claim   string     `json:"claim" required:"true" minLength:"1" maxLength:"255" doc:"Name of the claim with the groups of the person, such as groups. It is read from the ID token, or else from the userinfo endpoint."`
	MatchBy GroupMatch `json:"matchBy" enum:"name,externalId" doc:"Whether the values of the claim are names or external IDs of groups. The default is name."`
	Create  bool       `json:"create" doc:"Whether groups that do not exist are created without roles. Otherwise, their values are ignored. The default is false."`
	Scopes  []string   `json:"scopes" nullable:"true" maxItems:"10" minLength:"1" maxLength:"255" doc:"Scopes to request in addition to openid, email and profile, such as groups. Null or empty for none."`
}

// Connection lets the users of a tenant sign in with an identity provider (OpenID Connect). Its issuer is
// unique in the tenant.
type Connection struct {
	ID           ConnectionID      `json:"id" doc:"ID of the connection."`
	Name         string            `json:"name" doc:"Name of the connection. Callers who are not signed in can read it."`
	Issuer       string            `json:"issuer" doc:"Issuer of the identity provider: the exact value of iss in its ID tokens."`
	ClientID     string            `json:"clientId" doc:"ID of the client that the identity provider has for Rolecall."`
	Domains      []string          `json:"domains" doc:"Domains of email addresses, in lower case. POST /auths/connections/find returns this connection for their addresses. If there are any, users are linked by address or created only for addresses of these domains."`
	Linking      Linking           `json:"linking" enum:"invited,verified-email" doc:"Which users a new identity is linked to. invited: the user of an invitation, or the user who is signed in. verified-email: also the user with the same address, if the identity provider has verified it and the user is not an owner."`
	Provisioning *Provisioning     `json:"provisioning" doc:"Creates a user at the first sign-in with an unknown identity, with this access. Null: no users are created."`
	SecondFactor ConnectionFactor  `json:"secondFactor" enum:"require,trust" doc:"require: the rules of the tenant for second factors apply. trust: a sign-in counts as one with a second factor if the ID token has one of acrValues or amrValues."`
	ACRValues    []string          `json:"acrValues" doc:"Values of the claim acr that prove a second factor."`
	AMRValues    []string          `json:"amrValues" doc:"Values of the claim amr that prove a second factor."`
	Groups       *ConnectionGroups `json:"groups" doc:"Fills groups by a claim of the identity provider, at each sign-in. Null: no claim is read."`
	CreatedAt    Time              `json:"createdAt" doc:"When the connection was created."`
	UpdatedAt    Time              `json:"updatedAt" doc:"When the connection was changed last."`
	Version      int64             `json:"-"`

	Secret        []byte `json:"-"` // the client secret, encrypted
	ProvisionedBy UserID `json:"-"` // the person who last set the provisioning; zero: an operator
}

// Provisioning describes the access of users that a connection creates.
type Provisioning struct {
	RoleIDs    []RoleID `json:"roleIds" required:"true" maxItems:"20" doc:"IDs of the roles that new users get in the whole tenant. The caller must be able to assign them. This is checked again at each sign-in that creates a user. Empty for no roles."`
	Department *string  `json:"department" minLength:"1" maxLength:"255" doc:"Department of new users. Null for no department."`
}

// ConnectionDraft describes a connection to create.
type ConnectionDraft struct {
	Name         string                     `json:"name" required:"true" minLength:"2" maxLength:"100" doc:"Name of the connection, such as Acme SSO. Callers who are not signed in can read it."`
	Issuer       string                     `json:"issuer" required:"true" minLength:"1" maxLength:"255" pattern:"^[Hh][Tt][Tt][Pp][Ss]://[!\"$->@-\\[\\]-~]+$" doc:"Issuer of the identity provider, exactly as in its discovery document. It begins with https:// and has no query or fragment. It cannot be changed later."`
	ClientID     string                     `json:"clientId" required:"true" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" doc:"ID of the client that the identity provider has for Rolecall."`
	ClientSecret string                     `json:"clientSecret" required:"true" minLength:"1" maxLength:"1024" pattern:"^[ -~]+$" doc:"Secret of the client. Responses and events never contain it."`
	Domains      []string                   `json:"domains" minItems:"1" maxItems:"100" minLength:"1" maxLength:"253" doc:"Domains of email addresses, such as acme.example. POST /auths/connections/find returns this connection for their addresses. If there are any, users are linked by address or created only for addresses of these domains. A domain can be in one connection of the tenant."`
	Linking      Optional[Linking]          `json:"linking" enum:"invited,verified-email" doc:"Which users a new identity is linked to. The default is invited."`
	Provisioning *Provisioning              `json:"provisioning" doc:"Creates a user at the first sign-in with an unknown identity, with this access. Null, the default: no users are created."`
	SecondFactor Optional[ConnectionFactor] `json:"secondFactor" enum:"require,trust" doc:"Whether a sign-in can count as one with a second factor. The default is require. trust needs acrValues or amrValues."`
	ACRValues    []string                   `json:"acrValues" nullable:"true" maxItems:"20" minLength:"1" maxLength:"255" doc:"Values of the claim acr that prove a second factor. Null or empty for none."`
	AMRValues    []string                   `json:"amrValues" nullable:"true" maxItems:"20" minLength:"1" maxLength:"255" doc:"Values of the claim amr that prove a second factor. Null or empty for none."`
	Groups       *ConnectionGroups          `json:"groups" doc:"Fills groups by a claim of the identity provider, at each sign-in. Null, the default: no claim is read."`
}

// Check validates the draft without the stored data. Of the issuer, it checks only the length. It returns
// nil if the draft is valid.
func (d *ConnectionDraft) Check() FieldErrors {
	var faults FieldErrors
	faults.Name("/name", d.Name, ConnectionNameMin, ConnectionNameMax)
	if len(d.Issuer) > ConnectionIssuerMax {
		faults.Add("/issuer", "length", fmt.Sprintf("must have 1 to %d characters", ConnectionIssuerMax))
	}
	checkCredential(&faults, "/clientId", d.ClientID, ConnectionClientMax)
	checkCredential(&faults, "/clientSecret", d.ClientSecret, ConnectionSecretMax)
	if d.Domains != nil && len(d.Domains) == 0 {
		faults.Add("/domains", "too-few", "must name at least one domain; omit it for a connection without domains")
	}
	checkDomains(&faults, d.Domains)
	c := d.Connection(0)
	c.checkAccess(&faults)
	return faults
}

// Connection returns a new connection with the values of the draft, without its secret. The draft must
// have passed Check.
func (d *ConnectionDraft) Connection(now Time) Connection {
	c := Connection{
		Name: TrimName(d.Name), Issuer: d.Issuer, ClientID: d.ClientID, Domains: normalDomains(d.Domains), Linking: LinkInvited, Provisioning: d.Provisioning.normal(),
		SecondFactor: FactorRequire, ACRValues: normal(d.ACRValues), AMRValues: normal(d.AMRValues), Groups: d.Groups.normal(), CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if now != 0 {
		c.ID = NewID[Connection](now)
	}
	if d.Linking.Set {
		c.Linking = d.Linking.Value
	}
	if d.SecondFactor.Set {
		c.SecondFactor = d.SecondFactor.Value
	}
	return c
}

// ConnectionPatch changes a connection. Absent members keep their values (RFC 7396). Lists replace the
// whole lists.
type ConnectionPatch struct {
	Name         Optional[string]            `json:"name" minLength:"2" maxLength:"100" doc:"Name of the connection. Callers who are not signed in can read it."`
	ClientID     Optional[string]            `json:"clientId" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" doc:"ID of the client that the identity provider has for Rolecall."`
	ClientSecret Optional[string]            `json:"clientSecret" minLength:"1" maxLength:"1024" pattern:"^[ -~]+$" doc:"New secret of the client. Responses and events never contain it."`
	Domains      Optional[[]string]          `json:"domains" maxItems:"100" minLength:"1" maxLength:"253" doc:"Domains of email addresses. POST /auths/connections/find returns this connection for their addresses. If there are any, users are linked by address or created only for addresses of these domains. The list cannot be emptied while the connection links users by address or creates users."`
	Linking      Optional[Linking]           `json:"linking" enum:"invited,verified-email" doc:"Which users a new identity is linked to."`
	Provisioning Optional[*Provisioning]     `json:"provisioning" doc:"Creates a user at the first sign-in with an unknown identity, with this access. Null: no users are created."`
	SecondFactor Optional[ConnectionFactor]  `json:"secondFactor" enum:"require,trust" doc:"Whether a sign-in can count as one with a second factor. trust needs acrValues or amrValues."`
	ACRValues    Optional[[]string]          `json:"acrValues" nullable:"true" maxItems:"20" minLength:"1" maxLength:"255" doc:"Values of the claim acr that prove a second factor. Null or empty for none."`
	AMRValues    Optional[[]string]          `json:"amrValues" nullable:"true" maxItems:"20" minLength:"1" maxLength:"255" doc:"Values of the claim amr that prove a second factor. Null or empty for none."`
	Groups       Optional[*ConnectionGroups] `json:"groups" doc:"Fills groups by a claim of the identity provider, at each sign-in. An object replaces the whole object. Null: no claim is read, and the groups stay as they are."`
}

// Check validates the patch without the stored connection. It returns nil if the patch is valid.
func (p *ConnectionPatch) Check() FieldErrors {
	var faults FieldErrors
	if p.Name.Set {
		faults.Name("/name", p.Name.Value, ConnectionNameMin, ConnectionNameMax)
	}
	if p.ClientID.Set {
		checkCredential(&faults, "/clientId", p.ClientID.Value, ConnectionClientMax)
	}
	if p.ClientSecret.Set {
		checkCredential(&faults, "/clientSecret", p.ClientSecret.Value, ConnectionSecretMax)
	}
	checkDomains(&faults, p.Domains.Value)
	return faults
}

// Apply returns the connection with the changes of the patch, except the client secret, and the names of
// the members whose values changed. The names are nil if no value changed. Apply returns ErrValidation if
// the values do not match each other. The patch must have passed Check.
func (p *ConnectionPatch) Apply(c Connection, now Time) (Connection, []string, error) {
	var changed []string
	set := func(name string, differs bool, change func()) {
		if differs {
			change()
			changed = append(changed, name)
		}
	}
	limited := len(c.Domains) > 0
	domains, acr, amr := normalDomains(p.Domains.Value), normal(p.ACRValues.Value), normal(p.AMRValues.Value)
	provisioning, groups := p.Provisioning.Value.normal(), p.Groups.Value.normal()
	set("name", p.Name.Set && TrimName(p.Name.Value) != c.Name, func() { c.Name = TrimName(p.Name.Value) })
	set("clientId", p.ClientID.Set && p.ClientID.Value != c.ClientID, func() { c.ClientID = p.ClientID.Value })
	set("clientSecret", p.ClientSecret.Set, func() {})
	set("domains", p.Domains.Set && !slices.Equal(domains, c.Domains), func() { c.Domains = domains })
	set("linking", p.Linking.Set && p.Linking.Value != c.Linking, func() { c.Linking = p.Linking.Value })
	set("provisioning", p.Provisioning.Set && !provisioning.equal(c.Provisioning), func() { c.Provisioning = provisioning })
	set("secondFactor", p.SecondFactor.Set && p.SecondFactor.Value != c.SecondFactor, func() { c.SecondFactor = p.SecondFactor.Value })
	set("acrValues", p.ACRValues.Set && !slices.Equal(acr, c.ACRValues), func() { c.ACRValues = acr })
	set("amrValues", p.AMRValues.Set && !slices.Equal(amr, c.AMRValues), func() { c.AMRValues = amr })
	set("groups", p.Groups.Set && !groups.equal(c.Groups), func() { c.Groups = groups })
	var faults FieldErrors
	c.checkAccess(&faults)
	if limited && len(c.Domains) == 0 && (c.Linking == LinkVerifiedEmail || c.Provisioning != nil) {
		faults.Add("/domains", "conflict", "cannot be emptied while linking is verified-email or provisioning is set, because addresses of all domains would then be accepted")
	}
	if changed != nil {
		c.UpdatedAt, c.Version = max(now, c.UpdatedAt+1), c.Version+1
	}
	return c, changed, faults.Err()
}

// NameKey returns the key by which names of connections are compared.
func (c *Connection) NameKey() string { return TextKey(c.Name) }

// checkAccess checks the members that decide how the connection gives access.
func (c *Connection) checkAccess(faults *FieldErrors) {
	if c.Linking != LinkInvited && c.Linking != LinkVerifiedEmail {
		faults.Add("/linking", "enum", "must be invited or verified-email")
	}
	if c.SecondFactor != FactorRequire && c.SecondFactor != FactorTrust {
		faults.Add("/secondFactor", "enum", "must be require or trust")
	}
	if c.SecondFactor == FactorTrust && len(c.ACRValues)+len(c.AMRValues) == 0 {
		faults.Add("/secondFactor", "required", "can only be trust if acrValues or amrValues has a value that proves a second factor")
	}
	checkClaimValues(faults, "/acrValues", c.ACRValues)
	checkClaimValues(faults, "/amrValues", c.AMRValues)
	if p := c.Provisioning; p != nil {
		if len(p.RoleIDs) > ConnectionRolesMax {
			faults.Add("/provisioning/roleIds", "too-many", fmt.Sprintf("must have at most %d roles", ConnectionRolesMax))
		}
		if p.Department != nil {
			faults.Name("/provisioning/department", *p.Department, NameLeast, DepartmentMax)
		}
	}
	c.Groups.check(faults)
}

// check checks the rules for groups, which can be nil.
func (g *ConnectionGroups) check(faults *FieldErrors) {
	if g == nil {
		return
	}
	faults.Text("/groups/claim", g.Claim, 1, ConnectionClaimMax)
	if g.MatchBy != MatchName && g.MatchBy != MatchExternalID {
		faults.Add("/groups/matchBy", "enum", "must be name or externalId")
	}
	if len(g.Scopes) > ConnectionScopesMax {
		faults.Add("/groups/scopes", "too-many", fmt.Sprintf("must have at most %d scopes", ConnectionScopesMax))
		return
	}
	for i, scope := range g.Scopes {
		if pointer := fmt.Sprintf("/groups/scopes/%d", i); scope == "" || len(scope) > ConnectionScopeMax {
			faults.Add(pointer, "length", fmt.Sprintf("must have 1 to %d characters", ConnectionScopeMax))
		} else if strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			faults.Add(pointer, "format", "must have only visible ASCII characters, without quotation marks and backslashes")
		}
	}
}

// Proves reports whether the claims acr and amr of an ID token prove a second factor.
func (c *Connection) Proves(acr string, amr []string) bool {
	return c.SecondFactor == FactorTrust && (acr != "" && slices.Contains(c.ACRValues, acr) ||
		slices.ContainsFunc(amr, func(v string) bool { return slices.Contains(c.AMRValues, v) }))
}

// EmailDomain returns the DomainKey of the domain of an email address. It returns "" if the address is not
// valid.
func EmailDomain(email string) string {
	if code, _ := CheckEmail(email); code != "" {
		return ""
	}
	return DomainKey(email[strings.LastIndexByte(email, '@')+1:])
}

// HasDomain reports whether the connection has the domain with this DomainKey.
func (c *Connection) HasDomain(key string) bool {
	return slices.ContainsFunc(c.Domains, func(domain string) bool { return DomainKey(domain) == key })
}

// normalDomains returns the domains in NFC and in lower case, each once.
func normalDomains(domains []string) []string {
	kept, seen := []string{}, map[string]bool{}
	for _, domain := range domains {
		domain = lowerCase(norm.NFC.String(domain))
		if key := DomainKey(domain); !seen[key] {
			kept, seen[key] = append(kept, domain), true
		}
	}
	return kept
}

func checkDomains(faults *FieldErrors, domains []string) {
	if len(domains) > ConnectionDomainsMax {
		faults.Add("/domains", "too-many", fmt.Sprintf("must have at most %d domains", ConnectionDomainsMax))
		return
	}
	for i, d := range domains {
		if !isDomain(d) {
			faults.Add(fmt.Sprintf("/domains/%d", i), "domain", "must be a domain such as acme.example")
		}
	}
}

func checkClaimValues(faults *FieldErrors, pointer string, values []string) {
	if len(values) > ConnectionValuesMax {
		faults.Add(pointer, "too-many", fmt.Sprintf("must have at most %d values", ConnectionValuesMax))
		return
	}
	for i, v := range values {
		faults.Text(fmt.Sprintf("%s/%d", pointer, i), v, 1, ConnectionValueMax)
	}
}

// checkCredential checks the ID or the secret of a client.
func checkCredential(faults *FieldErrors, pointer, text string, maximum int) {
	switch {
	case text == "" || len(text) > maximum:
		faults.Add(pointer, "length", fmt.Sprintf("must have 1 to %d characters", maximum))
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		faults.Add(pointer, "format", "must have only ASCII characters, without control characters")
	}
}

// normal returns the provisioning without duplicate roles.
func (p *Provisioning) normal() *Provisioning {
	if p == nil {
		return nil
	}
	return &Provisioning{RoleIDs: normal(p.RoleIDs), Department: trimOptional(p.Department)}
}

func (p *Provisioning) equal(other *Provisioning) bool {
	if p == nil || other == nil {
		return p == other
	}
	return slices.Equal(p.RoleIDs, other.RoleIDs) && equalOptional(p.Department, other.Department)
}

// normal returns the rules with their defaults, without duplicate scopes.
func (g *ConnectionGroups) normal() *ConnectionGroups {
	if g == nil {
		return nil
	}
	is := *g
	if is.MatchBy == "" {
		is.MatchBy = MatchName
	}
	is.Scopes = normal(g.Scopes)
	return &is
}

func (g *ConnectionGroups) equal(other *ConnectionGroups) bool {
	if g == nil || other == nil {
		return g == other
	}
	return g.Claim == other.Claim && g.MatchBy == other.MatchBy && g.Create == other.Create && slices.Equal(g.Scopes, other.Scopes)
}

// Identity is an account at an identity provider with which a user can sign in. It is the pair of issuer
// and subject, which is unique in the tenant, and never an email address.
type Identity struct {
	ID           IdentityID   `json:"id" doc:"ID of the identity."`
	UserID       UserID       `json:"userId" doc:"ID of the user who can sign in with the identity."`
	ConnectionID ConnectionID `json:"connectionId" doc:"ID of the connection."`
	Issuer       string       `json:"issuer" doc:"Issuer of the identity provider."`
	Subject      string       `json:"subject" doc:"ID of the person at the identity provider: the claim sub."`
	Email        string       `json:"email" doc:"Email address that the identity provider sent at the last sign-in. After the identity is linked, it has no effect. Empty if it sent no address."`
	CreatedAt    Time         `json:"createdAt" doc:"When the identity was linked to the user."`
	LastUsedAt   Time         `json:"-"` // zero: never
}
