package rolecall

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// The bounds of an operator's key.
const (
	OperatorKeyNameMin     = 3
	OperatorKeyNameMax     = 100
	OperatorKeyTenantsMax  = 100
	OperatorKeyLifetimeMax = 366 * 24 * time.Hour
	OperatorKeysMax        = 1000 // of an instance, expired ones included
)

// OperatorKey lets a program act as an operator: on tenants, and in them. The key
// itself is a secret and never part of it.
type OperatorKey struct {
	ID         OperatorKeyID
	Name       string
	Tenants    []string // names of those that it is for, sorted; nil: all
	CreatedAt  Time
	ExpiresAt  Time
	LastUsedAt Time // zero: never
}

// Live reports whether the key counts at the moment.
func (k *OperatorKey) Live(now Time) bool { return now < k.ExpiresAt }

// IsFor reports whether the key is for the tenant of that name.
func (k *OperatorKey) IsFor(tenant string) bool {
	return k.Tenants == nil || slices.Contains(k.Tenants, tenant)
}

// OperatorKeyDraft is what whoever makes a key says of it.
type OperatorKeyDraft struct {
	Name     string
	Tenants  []string // names of those that it is for; nil: all
	Lifetime time.Duration
}

// Check returns what is wrong with the draft, nil if nothing is.
func (d *OperatorKeyDraft) Check() Faults {
	var faults Faults
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
		faults.Add("/expires", "range", "must be longer than nothing and at most 366 days")
	}
	return faults
}

// OperatorKey returns the key that the draft describes.
func (d *OperatorKeyDraft) OperatorKey(now Time) OperatorKey {
	k := OperatorKey{ID: NewID[OperatorKey](now), Name: d.Name, CreatedAt: now, ExpiresAt: now.Add(d.Lifetime)}
	if len(d.Tenants) > 0 {
		k.Tenants = slices.Compact(slices.Sorted(slices.Values(d.Tenants)))
	}
	return k
}
