// Command oapi-codegen is a flow with the code that oapi-codegen makes: oapi-codegen ADDRESS TENANT EMAIL PASSWORD
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"os"
	"reflect"

	"github.com/oapi-codegen/nullable"

	rolecall "github.com/rolecall/rolecall/tools/generators/.generated/oapi-codegen"
)

type flow struct {
	*rolecall.ClientWithResponses
	tenant string
}

func main() {
	jar, err := cookiejar.New(nil)
	check(err == nil, "the cookie jar: ", err)
	client, err := rolecall.NewClientWithResponses(os.Args[1], rolecall.WithHTTPClient(&http.Client{Jar: jar}))
	check(err == nil, "the client: ", err)
	f := flow{client, os.Args[2]}
	login := rolecall.Login{Email: os.Args[3], Password: os.Args[4]}
	signIn, err := f.AuthsLoginWithResponse(context.Background(), &rolecall.AuthsLoginParams{XTenantSchema: f.tenant}, login)
	check(err == nil && signIn.JSON200 != nil, "the sign-in: ", err, signIn)
	f.users(context.Background())
	f.settings(context.Background())
}

func (f flow) users(ctx context.Context) {
	create := &rolecall.UsersCreateUserParams{XTenantSchema: f.tenant, IdempotencyKey: "oapi-codegen-1"}
	grace := rolecall.CreateUser{Email: "grace@go.example", Name: "Grace Hopper", Department: nullable.NewNullableWithValue("Sales")}
	created, err := f.UsersCreateUserWithResponse(ctx, create, grace)
	check(err == nil && created.JSON201 != nil, "the new user: ", err, created)
	id := created.JSON201.Id
	repeated, err := f.UsersCreateUserWithResponse(ctx, create, grace)
	check(err == nil && repeated.JSON201 != nil && repeated.JSON201.Id == id, "the repeated request: ", err, repeated)

	name := "Grace Murray Hopper"
	f.update(ctx, id, rolecall.UpdateUser{Name: &name}, name, nullable.NewNullableWithValue("Sales"))
	f.update(ctx, id, rolecall.UpdateUser{Department: nullable.NewNullNullable[string]()}, name, nullable.NewNullNullable[string]())

	found, limit := 0, 1
	params := &rolecall.UsersListUsersParams{XTenantSchema: f.tenant, Limit: &limit}
	for users := 1; ; users++ {
		page, err := f.UsersListUsersWithResponse(ctx, params)
		check(err == nil && page.JSON200 != nil && len(page.JSON200.Items) == 1, "a page: ", err, page)
		if page.JSON200.Items[0].Id == id {
			found++
		}
		if page.JSON200.NextCursor.IsNull() {
			check(users == 2 && found == 1, "the list: ", users, found)
			break
		}
		cursor := page.JSON200.NextCursor.MustGet()
		params.Cursor = &cursor
	}

	deleted, err := f.UsersDeleteUserWithResponse(ctx, id, &rolecall.UsersDeleteUserParams{XTenantSchema: f.tenant})
	check(err == nil && deleted.StatusCode() == http.StatusNoContent, "the deletion: ", err, deleted)
	missing, err := f.UsersGetUserWithResponse(ctx, id, &rolecall.UsersGetUserParams{XTenantSchema: f.tenant})
	check(err == nil && missing.ApplicationproblemJSON404 != nil && missing.ApplicationproblemJSON404.Code == "not-found", "the problem: ", err, missing)
}

func (f flow) update(ctx context.Context, id rolecall.IdParameter, patch rolecall.UpdateUser, name string, department nullable.Nullable[string]) {
	updated, err := f.UsersUpdateUserWithResponse(ctx, id, &rolecall.UsersUpdateUserParams{XTenantSchema: f.tenant}, patch)
	check(err == nil && updated.JSON200 != nil && *updated.JSON200.Name == name && reflect.DeepEqual(updated.JSON200.Department, department), "the patch: ", err, updated)
}

func (f flow) settings(ctx context.Context) {
	before, err := f.TenantGetTenantWithResponse(ctx, &rolecall.TenantGetTenantParams{XTenantSchema: f.tenant})
	check(err == nil && before.JSON200 != nil, "the tenant: ", err, before)
	expected := *before.JSON200.Settings
	expected.BrandColor = nullable.NewNullableWithValue("#336699")
	patch := rolecall.UpdateTenant{Settings: &rolecall.UpdateTenantSettings{BrandColor: expected.BrandColor}}
	after, err := f.TenantUpdateTenantWithResponse(ctx, &rolecall.TenantUpdateTenantParams{XTenantSchema: f.tenant}, patch)
	check(err == nil && after.JSON200 != nil && reflect.DeepEqual(*after.JSON200.Settings, expected), "the settings: ", err, after)
}

// check ends the program with the reason if ok is false.
func check(ok bool, reason ...any) {
	if !ok {
		log.Fatal(fmt.Sprintf("%+v", reason))
	}
}
