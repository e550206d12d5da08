package nodetest

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Broken is a store in which writes of one tenant fail.
type Broken struct {
	store.Database
	Tenant rolecall.TenantID
}

// ErrBroken is the error of all writes of the tenant of Broken.
var ErrBroken = errors.New("a page of this tenant cannot be read")

// Update fails for the tenant.
func (s Broken) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if tenant == s.Tenant {
		return ErrBroken
	}
	return s.Database.Update(ctx, tenant, fn)
}
