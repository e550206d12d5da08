package directory_test

import (
	"errors"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
)

func TestChecks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		caller := f.CallerWith(
			nodetest.Holding("shop/invoices:*", "roles:read"),
			nodetest.Holding("shop/orders:approve", "users.email:read", "events:read").Within("Sales", "Ops"),
			nodetest.Holding("*/carts:read").Within("Research"),
			nodetest.Holding("shop/stock:count").To(nodetest.Start.Add(nodetest.Day)),
		)
		over := f.CallerWith(nodetest.Holding("shop/stock:count").To(nodetest.Start))
		for _, c := range []struct {
			permission, department string
			holds                  bool
		}{
			{"shop/invoices:approve", "", true},
			{"shop/invoices:approve", "Sales", true},
			{"shop/invoices.total:approve", "", true},
			{"store/invoices:approve", "", false},
			{"shop/orders:approve", "", false},
			{"shop/orders:approve", "sALES", true},
			{"shop/orders:approve", "Sáles", false},
			{"shop/orders:approve", "Ops", true},
			{"shop/orders:approve", "Research", false},
			{"shop/orders:approve", "Sales Ops", false},
			{"any/carts:read", "Research", true},
			{"any/carts:read", "", false},
			{"shop/stock:count", "", true},
			{"users.email:read", "Sales", true},
			{"users.email:read", "", false},
			{"users.name:read", "Sales", false},
			{"users:read", "Sales", false},
			{"roles:read", "", true},
			{"events:read", "Sales", false}, // this permission has no effect if it is restricted to departments
			{"tenant:read", "", false},
		} {
			permission, err := rolecall.ParsePermission(c.permission)
			f.OK(err)
			var department *string
			if c.department != "" {
				department = &c.department
			}
			err = caller.RequirePermission(permission, department)
			if c.holds && err != nil || !c.holds && !errors.Is(err, rolecall.ErrPermissionDenied) {
				t.Errorf("%s in %q: %v", c.permission, c.department, err)
			}
			f.Is(over.RequirePermission(permission, department), rolecall.ErrPermissionDenied)
		}
	})
}
