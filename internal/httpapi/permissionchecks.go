package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// checkID is the operation whose 403 is an answer and no refusal.
const checkID = "AuthsController_check"

// checksMax is how many permissions one request checks at most.
const checksMax = 200

// check answers whether the caller holds a permission, for back ends and the auth
// hooks of proxies.
func check(x *exchange) error {
	var department *string
	if x.in.department != "" {
		department = &x.in.department
	}
	if err := x.server.service.Check(x.call, x.in.permission, department); err != nil {
		return err
	}
	x.sayWho()
	return x.nothing()
}

// permissionCheck asks whether the caller holds the permission: for the department,
// or in the whole tenant if it is nil.
type permissionCheck struct {
	permission rolecall.Permission
	department *string
}

// checkAll answers the same question as check, for up to checksMax permissions.
func checkAll(x *exchange) error {
	checks, err := x.permissionChecks()
	if err != nil {
		return err
	}
	x.out = append(x.out, `{"results":`...)
	x.out = appendList(x.out, checks, func(b []byte, c *permissionCheck) []byte {
		b = append(b, `{"permission":`...)
		b = appendPermission(b, &c.permission)
		b = append(b, `,"department":`...)
		b = appendTextOrNull(b, c.department)
		b = append(b, `,"allowed":`...)
		b = strconv.AppendBool(b, x.server.service.Holds(x.call, c.permission, c.department))
		return append(b, '}')
	})
	x.out = append(x.out, '}')
	x.sayWho()
	return x.json(http.StatusOK)
}

// sayWho names the caller in headers, for a proxy or a back end to pass on.
func (x *exchange) sayWho() {
	x.header["X-Auth-User"] = []string{x.call.User.ID.String()}
	x.header["X-Auth-Tenant"] = []string{x.call.Tenant.Name}
}

func (x *exchange) permissionChecks() (checks []permissionCheck, err error) {
	err = x.decode(member{"checks", true, readChecks(&checks)}).err(noFaults)
	return checks, err
}

// readChecks reads an array of objects with a permission and an optional department,
// by the rules of the parameters of check.
func readChecks(into *[]permissionCheck) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if value.Kind() != jsontext.KindBeginArray {
			d.faults.Add(pointer, "type", "must be an array of objects")
			return
		}
		var c permissionCheck
		members := []member{
			{"permission", true, readAskedPermission(&c.permission)},
			{"department", false, readAskedDepartment(&c.department)},
		}
		for i, element := range elements(value) {
			if i == checksMax {
				d.faults.Add(pointer, "too-many", fmt.Sprintf("must hold at most %d checks", checksMax))
				return
			}
			c = permissionCheck{}
			d.object(pointer+"/"+strconv.Itoa(i), element, members)
			*into = append(*into, c)
		}
	}
}

func readAskedPermission(into *rolecall.Permission) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		text, ok := d.text(pointer, value)
		if !ok {
			return
		}
		p, code, detail := askedPermission(text)
		if code != "" {
			d.faults.Add(pointer, code, detail)
		}
		*into = p
	}
}

func readAskedDepartment(into **string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			return
		}
		if text, ok := d.text(pointer, value); ok {
			d.faults.Text(pointer, text, 1, rolecall.DepartmentMax)
			*into = &text
		}
	}
}
