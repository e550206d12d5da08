package nodetest

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
)

// NewOperatorKey creates an operator key that expires after an hour. Without names of
// tenants, the key is valid for all tenants.
func (f *Fixture) NewOperatorKey(name string, tenants ...string) (rolecall.OperatorKey, secret.Token) {
	f.Helper()
	key, token, err := f.Directory.CreateOperatorKey(f.Context(), rolecall.OperatorKeyDraft{Name: name, Tenants: tenants, Lifetime: time.Hour})
	f.OK(err)
	return key, token
}

// OperatorCaller returns a request with the key in the fixture's tenant.
func (f *Fixture) OperatorCaller(node *node.Node, token secret.Token) (access.Caller, error) {
	p, err := node.SignIn.AuthenticateBearer(f.Context(), f.Tenant, string(token), "192.0.2.1")
	return access.Caller{Principal: p, RequestID: "request", Source: "192.0.2.1"}, err
}

// OperatorInTenant returns a request with a new operator key in the fixture's tenant.
func (f *Fixture) OperatorInTenant() access.Caller {
	f.Helper()
	_, key := f.NewOperatorKey("Provisioning")
	c, err := f.OperatorCaller(f.Node, key)
	f.OK(err)
	return c
}

// NewOperator returns a request about tenants with a new operator key.
func (f *Fixture) NewOperator(name string, tenants ...string) access.Caller {
	f.Helper()
	_, token := f.NewOperatorKey(name, tenants...)
	p, err := f.SignIn.AuthenticateOperator(f.Context(), string(token), "192.0.2.1")
	f.OK(err)
	return access.Caller{Principal: p, RequestID: "request", Source: "192.0.2.1"}
}
