package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) checkOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/auths/check", ID: "AuthsController_check", Summary: "Check a permission",
			Description:     "The answer is 204 if the caller has the permission, and 403 otherwise.",
			Limiter:         web.SessionLimiter,
			Policy:          authz.CheckPermissions,
			Answers:         operation.Answers{{http.StatusNoContent, "The caller has the permission. The headers name the caller, so that a proxy can pass them on.", []string{"X-Auth-User", "X-Auth-Tenant"}}},
			Handler:         operation.JSON(s.check),
			AnswersByDenial: true,
		},
		{
			Method: http.MethodPost, Path: "/auths/checks", ID: "AuthsController_checkAll", Summary: "Check several permissions", ReadsOnly: true,
			Description: "Checks up to 200 permissions of the caller.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.CheckPermissions,
			Answers:     operation.Answers{{http.StatusOK, "One result for each check, in the order of the checks in the request. The headers name the caller.", []string{"X-Auth-User", "X-Auth-Tenant"}}},
			Handler:     operation.JSON(s.checkAll),
		},
	}
}

// checksMax is the maximum number of permissions in one request.
const checksMax = 200

type checkRequest struct {
	Permission permissionValue `query:"permission" required:"true" doc:"The permission to check, without wildcards, such as shop/invoices:approve."`
	Department string          `query:"department" maxLength:"255" doc:"The department for whose users to check the permission. Without it, the caller must have the permission in the whole tenant. Null is the same as its absence."`
}

// permissionValue is one permission to check, without wildcards.
type permissionValue rolecall.Permission

var _ = operation.SchemaOf[permissionValue](func(*operation.Schemas, string) *huma.Schema {
	return operation.Ref("SinglePermission")
})

// SetParameter reads the permission.
func (p *permissionValue) SetParameter(text string) (code, detail string) {
	permission, err := rolecall.ParsePermission(text)
	*p = permissionValue(permission)
	switch {
	case err != nil:
		return "format", err.Error()
	case permission.HasWildcard():
		return "wildcard", "must name one permission, without wildcards"
	case !permission.Known():
		return "unknown-permission", "is not one of Rolecall's own permissions; write a permission of an application as application/resource:action"
	}
	return "", ""
}

// orNil returns the permission, or nil if the request has none.
func (p permissionValue) orNil() *rolecall.Permission {
	if p == (permissionValue{}) {
		return nil
	}
	return (*rolecall.Permission)(&p)
}

// UnmarshalWire reads the permission.
func (p *permissionValue) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if text, ok := d.Text(pointer, value); ok {
		code, detail := p.SetParameter(text)
		d.Add(pointer, code, detail)
	}
}

// AppendJSON appends the permission.
func (p permissionValue) AppendJSON(b []byte) []byte {
	return wire.AppendText(b, rolecall.Permission(p).String())
}

// check responds with 204 if the caller has the permission, and with 403 if not. Back ends and
// proxies call this operation to authorize requests of users.
func (s *Server) check(_ context.Context, c access.Caller, in *checkRequest) (operation.Response[operation.NoContent], error) {
	var department *string
	if in.Department != "" {
		department = &in.Department
	}
	err := c.RequirePermission(rolecall.Permission(in.Permission), department)
	return operation.Response[operation.NoContent]{NameCaller: true}, err
}

type checkAllRequest struct{ Body checkAllBody }

type checkAllBody struct {
	Checks permissionChecks `json:"checks" required:"true" maxItems:"200" doc:"The permissions to check. Empty for no results."`
}

var _ = operation.Component[checkAllBody]("CheckPermissions", "The permissions to check.")

// permissionCheck is one permission to check: in the department, or in the whole tenant if the
// department is nil.
type permissionCheck struct {
	Permission permissionValue `json:"permission" required:"true" doc:"The permission to check, without wildcards, such as shop/invoices:approve."`
	Department *departmentText `json:"department" doc:"The department for whose users to check the permission. Without it, the caller must have the permission in the whole tenant. Null is the same as its absence."`
}

var _ = operation.Component[permissionCheck]("PermissionCheck", "A permission to check, for a department or in the whole tenant.")

// departmentText is the name of a department.
type departmentText string

var _ = operation.SchemaOf[departmentText](func(s *operation.Schemas, _ string) *huma.Schema {
	if !s.IsRequest {
		return operation.Text()
	}
	return operation.Bounded(1, rolecall.DepartmentMax)
})

// UnmarshalWire reads the name.
func (t *departmentText) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if text, ok := d.Text(pointer, value); ok {
		d.FieldErrors.Text(pointer, text, 1, rolecall.DepartmentMax)
		*t = departmentText(text)
	}
}

// permissionChecks are at most checksMax checks.
type permissionChecks []permissionCheck

var _ = operation.SameSchema[permissionChecks, []permissionCheck]()

// UnmarshalWire reads an array of checks.
func (c *permissionChecks) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if value.Kind() != jsontext.KindBeginArray {
		d.Add(pointer, "type", "must be an array of objects")
		return
	}
	for i, element := range wire.Elements(value) {
		if i == checksMax {
			d.Add(pointer, "too-many", fmt.Sprintf("must have at most %d checks", checksMax))
			return
		}
		var check permissionCheck
		checkDecoder.Continue(d, pointer+"/"+strconv.Itoa(i), element, reflect.ValueOf(&check).Elem())
		*c = append(*c, check)
	}
}

var checkDecoder = wire.NewDecoder(reflect.TypeFor[permissionCheck]())

// checkResult is the result of one check.
type checkResult struct {
	Permission permissionValue `json:"permission" doc:"The permission that was checked."`
	Department *departmentText `json:"department" doc:"The department of the check."`
	Allowed    bool            `json:"allowed" doc:"Whether the caller has the permission: for the department, or in the whole tenant for a check without a department."`
}

var _ = operation.Component[checkResult]("CheckResult", "The result of one check.")

// checkResults are the results of the checks, in the order of the request.
type checkResults struct {
	Results []checkResult `json:"results" doc:"One result for each check."`
}

var _ = operation.Component[checkResults]("CheckedPermissions", "The results of the checks, in the order of the checks in the request.")

// checkAll checks up to checksMax permissions of the caller in one request.
func (s *Server) checkAll(_ context.Context, c access.Caller, in *checkAllRequest) (operation.Response[checkResults], error) {
	results := make([]checkResult, len(in.Body.Checks))
	for i, asked := range in.Body.Checks {
		allowed := c.Holds(rolecall.Permission(asked.Permission), (*string)(asked.Department))
		results[i] = checkResult{asked.Permission, asked.Department, allowed}
	}
	return operation.Response[checkResults]{Body: checkResults{results}, NameCaller: true}, nil
}
