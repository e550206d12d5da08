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
	Tenants    []string // names of the tenants that the key can access, sorted; nil: all tenants
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

// OperatorKeyDraft describes an operator key to create.
type OperatorKeyDraft struct {
	Name     string
	Tenants  []string // names of the tenants that the key can access; empty: all tenants
	Lifetime time.Duration
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *OperatorKeyDraft) Check() FieldErrors {
	var faults FieldErrors
	faults.Text("/name", d.Name, OperatorKeyNameMin, OperatorKeyNameMax)
	if len(d.Tenants) > OperatorKeyTenantsMax {
		faults.Add("/tenants", "too-many", fmt.Sprintf("must name at most %d tenants", OperatorKeyTenantsMax))
	}
	for i, name := range d.Tenants {
		if !IsTenantName(name) {
			faults.Add("/tenants/"+strconv.Itoa(i), "format", tenantNameFormat)
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
	k := OperatorKey{ID: NewID[OperatorKey](now), Name: d.Name, CreatedAt: now, ExpiresAt: now.Add(d.Lifetime)}
	if len(d.Tenants) > 0 {
		k.Tenants = slices.Compact(slices.Sorted(slices.Values(d.Tenants)))
	}
	return k
}
