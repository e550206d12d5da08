// Command go is a flow with the code that openapi-generator makes for Go: go ADDRESS TENANT EMAIL PASSWORD
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"

	"github.com/rolecall/rolecall/tools/generators/.generated/go/rolecall"
)

type flow struct {
	*rolecall.APIClient
	tenant string
}

func main() {
	configuration := rolecall.NewConfiguration()
	configuration.Servers = rolecall.ServerConfigurations{{URL: os.Args[1]}}
	f := flow{rolecall.NewAPIClient(configuration), os.Args[2]}
	login := rolecall.NewLogin(os.Args[3], os.Args[4])
	login.SetTransport("bearer")
	signIn, _, err := f.AuthsAPI.AuthsLogin(context.Background()).XTenantSchema(f.tenant).Login(*login).Execute()
	check(err == nil, "the sign-in: ", err)
	ctx := context.WithValue(context.Background(), rolecall.ContextAccessToken, signIn.GetToken())
	f.users(ctx)
	f.settings(ctx)
}

func (f flow) users(ctx context.Context) {
	grace := rolecall.NewCreateUser("grace@go.example", "Grace Hopper")
	grace.SetDepartment("Sales")
	create := f.UsersAPI.UsersCreateUser(ctx).XTenantSchema(f.tenant).IdempotencyKey("go-1").CreateUser(*grace)
	user, _, err := create.Execute()
	check(err == nil, "the new user: ", err)
	repeated, _, err := create.Execute()
	check(err == nil && repeated.Id == user.Id, "the repeated request: ", err, repeated)

	name := rolecall.NewUpdateUser()
	name.SetName("Grace Murray Hopper")
	renamed, _, err := f.UsersAPI.UsersUpdateUser(ctx, user.Id).XTenantSchema(f.tenant).UpdateUser(*name).Execute()
	check(err == nil && renamed.GetName() == "Grace Murray Hopper" && renamed.GetDepartment() == "Sales", "the new name: ", err, renamed)
	noDepartment := rolecall.NewUpdateUser()
	noDepartment.SetDepartmentNil()
	cleared, _, err := f.UsersAPI.UsersUpdateUser(ctx, user.Id).XTenantSchema(f.tenant).UpdateUser(*noDepartment).Execute()
	check(err == nil && cleared.GetName() == "Grace Murray Hopper", "the cleared department: ", err, cleared)
	department, isSet := cleared.GetDepartmentOk()
	check(isSet && department == nil, "the cleared department: ", department)

	list := f.UsersAPI.UsersListUsers(ctx).XTenantSchema(f.tenant).Limit(1)
	found := 0
	for users := 1; ; users++ {
		page, _, err := list.Execute()
		check(err == nil && len(page.Items) == 1, "a page: ", err, page)
		if page.Items[0].Id == user.Id {
			found++
		}
		cursor, _ := page.GetNextCursorOk()
		if cursor == nil {
			check(users == 2 && found == 1, "the list: ", users, found)
			break
		}
		list = list.Cursor(*cursor)
	}

	_, err = f.UsersAPI.UsersDeleteUser(ctx, user.Id).XTenantSchema(f.tenant).Execute()
	check(err == nil, "the deletion: ", err)
	_, _, err = f.UsersAPI.UsersGetUser(ctx, user.Id).XTenantSchema(f.tenant).Execute()
	var failure *rolecall.GenericOpenAPIError
	check(errors.As(err, &failure), "the deleted user: ", err)
	problem, ok := failure.Model().(rolecall.Problem)
	check(ok && problem.Status == 404 && problem.Code == "not-found", "the problem: ", failure.Model())
}

func (f flow) settings(ctx context.Context) {
	before, _, err := f.TenantAPI.TenantGetTenant(ctx).XTenantSchema(f.tenant).Execute()
	check(err == nil, "the tenant: ", err)
	expected := before.GetSettings()
	expected.SetBrandColor("#336699")
	color := rolecall.NewUpdateTenantSettings()
	color.SetBrandColor("#336699")
	patch := rolecall.NewUpdateTenant()
	patch.SetSettings(*color)
	after, _, err := f.TenantAPI.TenantUpdateTenant(ctx).XTenantSchema(f.tenant).UpdateTenant(*patch).Execute()
	check(err == nil && reflect.DeepEqual(after.GetSettings(), expected), "the settings: ", err, after)
}

// check ends the program with the reason if ok is false.
func check(ok bool, reason ...any) {
	if !ok {
		log.Fatal(fmt.Sprintf("%+v", reason))
	}
}
