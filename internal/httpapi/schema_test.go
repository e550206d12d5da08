package httpapi

import (
	"regexp"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/secret"
)

// boundsOf returns the limits in the schema of a member. For an array, the limits of its items
// follow. For an object, the limits of its values and of its names follow.
func boundsOf(s *huma.Schema) (bounds []int) {
	for _, n := range []*int{s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.MaxProperties} {
		if n != nil {
			bounds = append(bounds, *n)
		}
	}
	if s.Items != nil {
		bounds = append(bounds, boundsOf(s.Items)...)
	}
	if texts, ok := s.AdditionalProperties.(*huma.Schema); ok {
		bounds = append(bounds, boundsOf(texts)...)
		bounds = append(bounds, boundsOf(s.Extensions["propertyNames"].(*huma.Schema))...)
	}
	return bounds
}

// TestBoundsInTagsAreTheConstants compares the limits in struct tags with the constants that the
// rules use. Tags cannot refer to constants.
func TestBoundsInTagsAreTheConstants(t *testing.T) {
	name := []int{rolecall.NameLeast, rolecall.UserNameMax}
	want := map[string][]int{ // keys: name of the member, or schema and member
		"checks":         {checksMax},
		"department":     {rolecall.NameLeast, rolecall.DepartmentMax},
		"departments":    {1, rolecall.ReachDepartmentsMax, rolecall.NameLeast, rolecall.DepartmentMax},
		"description":    {0, rolecall.RoleDescriptionMax},
		"displayName":    {1, rolecall.UserNameMax},
		"email":          {3, rolecall.EmailMax},
		"externalId":     {1, rolecall.ExternalIDMax},
		"grants":         {rolecall.RolePermissionsMax},
		"mailSenderName": {1, 100},
		"metadata":       {rolecall.MetadataPairs, 0, rolecall.MetadataMax, 1, rolecall.MetadataKeyMax},
		"name":           {rolecall.NameLeast, rolecall.RoleNameMax},
		"newPassword":    {rolecall.PasswordLeast, secret.PasswordMax},
		"password":       {rolecall.PasswordLeast, secret.PasswordMax},
		"permissions":    {rolecall.RolePermissionsMax},
		"reason":         {0, reasonMax},
		"roles":          {rolecall.SecondFactorRolesMax},
		"types":          {1, rolecall.WebhookTypesMax},
		"ignoreActors":   {rolecall.WebhookActorsMax},
		"url":            {1, outbound.URLMax},

		"ConnectionGroups.claim":  {1, rolecall.ConnectionClaimMax},
		"ConnectionGroups.scopes": {rolecall.ConnectionScopesMax, 1, rolecall.ConnectionScopeMax},

		"acrValues":    {rolecall.ConnectionValuesMax, 1, rolecall.ConnectionValueMax},
		"amrValues":    {rolecall.ConnectionValuesMax, 1, rolecall.ConnectionValueMax},
		"clientId":     {1, rolecall.ConnectionClientMax},
		"clientSecret": {1, rolecall.ConnectionSecretMax},
		"domains":      {rolecall.ConnectionDomainsMax, 1, 253},
		"issuer":       {1, rolecall.ConnectionIssuerMax},
		"roleIds":      {rolecall.ConnectionRolesMax},

		"CreateConnection.domains":   {1, rolecall.ConnectionDomainsMax, 1, 253},
		"CreateConnection.name":      {rolecall.ConnectionNameMin, rolecall.ConnectionNameMax},
		"CreateDirectory.name":       {rolecall.DirectoryNameMin, rolecall.DirectoryNameMax},
		"UpdateDirectory.name":       {rolecall.DirectoryNameMin, rolecall.DirectoryNameMax},
		"CreateDirectoryToken.name":  {rolecall.DirectoryTokenNameMin, rolecall.DirectoryTokenNameMax},
		"CreateGroup.name":           {1, rolecall.GroupNameMax},
		"UpdateGroup.name":           {1, rolecall.GroupNameMax},
		"UpdateConnection.name":      {rolecall.ConnectionNameMin, rolecall.ConnectionNameMax},
		"CreateAPIToken.name":        {rolecall.APITokenNameMin, rolecall.APITokenNameMax},
		"CreateAPIToken.permissions": {1, rolecall.APITokenPermissionsMax},
		"CreatePasskey.name":         {1, rolecall.PasskeyNameMax},
		"UpdatePasskey.name":         {1, rolecall.PasskeyNameMax},
		"PermissionCheck.department": {1, rolecall.DepartmentMax},
		"JobUsers.department":        {1, rolecall.DepartmentMax},
		"JobUsers.q":                 {1, operation.SearchLength},
		"CreateUser.name":            name,
		"UpdateUser.name":            name,
		"TenantOwner.name":           name,
	}
	compared := 0
	for schema, s := range Document().Components.Schemas.Map() {
		if s.AdditionalProperties != false { // the schema is of a response
			continue
		}
		for member, m := range s.Properties {
			got := boundsOf(m)
			if got == nil {
				continue
			}
			compared++
			bounds, ok := want[schema+"."+member]
			if !ok {
				bounds = want[member]
			}
			if !slices.Equal(got, bounds) {
				t.Errorf("%s.%s has the bounds %v in its tag, want %v", schema, member, got, bounds)
			}
		}
	}
	longest := map[string]int{"email": rolecall.EmailMax, "externalId": rolecall.ExternalIDMax, "department": rolecall.DepartmentMax}
	for _, p := range Document().Components.Parameters {
		if want, ok := longest[p.Name]; ok && *p.Schema.MaxLength != want {
			t.Errorf("the parameter %s has up to %d characters, want %d", p.Name, *p.Schema.MaxLength, want)
		}
	}
	if compared < 30 {
		t.Errorf("compared %d members", compared)
	}
}

func TestThePatternOfPasskeyIDsMatchesWhatIsAccepted(t *testing.T) {
	pattern := regexp.MustCompile(passkeyIDPattern)
	texts := []string{""}
	for from, length := 0, 0; length < 5; length++ {
		last := texts[from:]
		from = len(texts)
		for _, text := range last {
			for _, r := range "AEQBw0_=" {
				texts = append(texts, text+string(r))
			}
		}
	}
	for _, text := range texts {
		var id passkeyIDValue
		code, _ := id.SetParameter(text)
		if got, want := pattern.MatchString(text), code == ""; got != want {
			t.Errorf("the pattern matches %q: %v, want %v", text, got, want)
		}
	}
}
