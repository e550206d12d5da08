package rolecall

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// The limits of an operator key.
const (
	OperatorKeyNameMin     = 3
	OperatorKeyNameMax     = 100
	OperatorKeyTenantsMax  = 100
	OperatorKeyLifetimeMax = 366 * 24 * time.Hour
	OperatorKeysMax        = 1000 // per instance, including expired keys
)

// OperatorKey lets a program act as an operator, who manages tenants and can act inside of
// them. The struct does not contain the secret.
type OperatorKey struct {
	ID         OperatorKeyID
	Name       string
	Tenants    []string        // names of the tenants that the key can access, sorted; nil: all tenants
	Scopes     []OperatorScope // sorted; nil: all operations
	CreatedAt  Time
	ExpiresAt  Time
	LastUsedAt Time // zero: the key was never used
}

// Live reports whether the key is unexpired at the time now.
func (k *OperatorKey) Live(now Time) bool { return now < k.ExpiresAt }

// IsFor reports whether the key can access the tenant with the name.
func (k *OperatorKey) IsFor(tenant string) bool {
	return k.Tenants == nil || slices.Contains(k.Tenants, tenant)
}

// Has reports whether the key can be used for the scope.
func (k *OperatorKey) Has(scope OperatorScope) bool {
	return k.Scopes == nil || slices.Contains(k.Scopes, scope)
}

// OperatorScope is a group of operations that an operator key can be used for.
type OperatorScope string

// The scopes of operator keys. A key with ScopeAll can be used for everything, also for all
// operations inside of tenants.
const (
	ScopeTenants OperatorScope = "tenants" // to manage tenants
	ScopeChanges OperatorScope = "changes" // to read change feeds
	ScopeLookup  OperatorScope = "lookup"  // to find the tenants of an email address
	ScopeAll     OperatorScope = "all"
)

// OperatorScopes returns all scopes.
func OperatorScopes() []OperatorScope {
	return []OperatorScope{ScopeTenants, ScopeChanges, ScopeLookup, ScopeAll}
}

// OperatorKeyDraft describes an operator key to create.
type OperatorKeyDraft struct {
	Name     string
	Tenants  []string        // names of the tenants that the key can access; empty: all tenants
	Scopes   []OperatorScope // empty: ScopeAll
	Lifetime time.Duration
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *OperatorKeyDraft) Check() FieldErrors {
	var faults FieldErrors
	faults.Name("/name", d.Name, OperatorKeyNameMin, OperatorKeyNameMax)
	if len(d.Tenants) > OperatorKeyTenantsMax {
		faults.Add("/tenants", "too-many", fmt.Sprintf("must name at most %d tenants", OperatorKeyTenantsMax))
	}
	for i, name := range d.Tenants {
		if !IsTenantName(name) {
			faults.Add("/tenants/"+strconv.Itoa(i), "format", tenantNameFormat)
		}
	}
	for i, scope := range d.Scopes {
		if !slices.Contains(OperatorScopes(), scope) {
			faults.Add("/scopes/"+strconv.Itoa(i), "enum", "must be tenants, changes, lookup or all")
		}
	}
	if d.Lifetime <= 0 || d.Lifetime > OperatorKeyLifetimeMax {
		faults.Add("/expires", "range", "must be longer than zero and at most 366 days")
	}
	return faults
}

// OperatorKey returns a new key with the values of the draft. The draft must have passed
// Check.
func (d *OperatorKeyDraft) OperatorKey(now Time) OperatorKey {
	k := OperatorKey{ID: NewID[OperatorKey](now), Name: TrimName(d.Name), CreatedAt: now, ExpiresAt: now.Add(d.Lifetime)}
	if len(d.Tenants) > 0 {
		k.Tenants = slices.Compact(slices.Sorted(slices.Values(d.Tenants)))
	}
	if len(d.Scopes) > 0 && !slices.Contains(d.Scopes, ScopeAll) {
		k.Scopes = slices.Compact(slices.Sorted(slices.Values(d.Scopes)))
	}
	return k
}
