package httpapi

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

func named(faults rolecall.FieldErrors) []string {
	var names []string
	for _, f := range faults {
		names = append(names, strings.TrimSpace(f.Pointer+" "+f.Code))
	}
	return names
}

// unrestricted returns a caller with all of Rolecall's own permissions.
func unrestricted() access.Caller {
	all := rolecall.Assignment{Role: rolecall.Role{Permissions: []rolecall.Permission{rolecall.AllOwn}}, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never}
	return access.Caller{Principal: authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, []rolecall.Assignment{all}, 0)}
}

// decode reads the body into the input of the operation.
func decode[In any](t *testing.T, id, body string) (In, error) {
	t.Helper()
	input := operationNamed(id).Input()
	value := input.New()
	err := input.DecodeBody(value, []byte(body), unrestricted(), 0)
	return value.Interface().(In), err
}

func TestPatchDistinguishesAbsentFromNull(t *testing.T) {
	in, err := decode[updateUserRequest](t, "UsersController_updateUser", `{"department":null,"metadata":{"a":null,"b":"x"}}`)
	if err != nil {
		t.Fatal(err)
	}
	text := "x"
	want := rolecall.UserPatch{
		Department: rolecall.Some[*string](nil),
		Metadata:   rolecall.Some(map[string]*string{"a": nil, "b": &text}),
	}
	if patch := in.Body.UserPatch; !reflect.DeepEqual(patch, want) {
		t.Errorf("%+v, want %+v", patch, want)
	}
	_, err = decode[updateUserRequest](t, "UsersController_updateUser", `{"email":"eve@example.com","name":null}`)
	_, known := web.StatusOf(err)
	if got := named(known.FieldErrors); !slices.Equal(got, []string{"/email immutable", "/name type"}) {
		t.Errorf("faults %q", got)
	}
}

func TestAssignmentBody(t *testing.T) {
	for _, test := range []struct {
		body string
		want []string
	}{
		{``, nil},
		{`{"reach":null,"expiresAt":null}`, []string{"/reach type", "/expiresAt type"}},
		{`{"reach":{"departments":null}}`, []string{"/reach/departments type"}},
		{`{"reach":{"departments":["Sales"]}}`, nil},
		{`{"reach":{}}`, []string{"/reach/departments required"}},
		{`{"reach":{"departments":[]},"expiresAt":"tomorrow"}`, []string{"/expiresAt format", "/reach/departments too-few"}},
		{`{"reach":{"departments":["Sales",1]}}`, []string{"/reach/departments/1 type"}},
		{`{"reach":[],"until":1}`, []string{"/reach type", "/until unknown"}},
	} {
		_, err := decode[assignRoleRequest[rolecall.User]](t, "UsersController_assignRole", test.body)
		var got []string
		if err != nil {
			_, known := web.StatusOf(err)
			got = named(known.FieldErrors)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}
