package node_test

import (
	"errors"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestChecks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		caller := f.caller(
			holding("shop/invoices:*", "roles:read"),
			holding("shop/orders:approve", "users.email:read", "events:read").within("Sales", "Ops"),
			holding("*/carts:read").within("Research"),
			holding("shop/stock:count").to(start.Add(aDay)),
		)
		over := f.caller(holding("shop/stock:count").to(start))
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
			f.ok(err)
			var department *string
			if c.department != "" {
				department = &c.department
			}
			err = caller.RequirePermission(permission, department)
			if c.holds && err != nil || !c.holds && !errors.Is(err, rolecall.ErrPermissionDenied) {
				t.Errorf("%s in %q: %v", c.permission, c.department, err)
			}
			f.is(over.RequirePermission(permission, department), rolecall.ErrPermissionDenied)
		}
	})
}
