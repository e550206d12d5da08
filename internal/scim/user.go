package scim

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
)

const userNameMax = 255 // maximum length of userName, in characters

// User has the attributes of a user as a directory sent them. An empty text is an unassigned attribute.
type User struct {
	UserName    string  `json:"userName"`
	ExternalID  string  `json:"externalId,omitempty"`
	DisplayName string  `json:"displayName,omitempty"`
	Name        Name    `json:"name,omitzero"`
	Emails      []Email `json:"emails,omitempty"`
	Department  string  `json:"department,omitempty"` // of the enterprise extension
	Active      *bool   `json:"active,omitempty"`     // nil if it was not sent
}

// Name has the parts of a user's name.
type Name struct {
	Formatted       string `json:"formatted,omitempty"`
	FamilyName      string `json:"familyName,omitempty"`
	GivenName       string `json:"givenName,omitempty"`
	MiddleName      string `json:"middleName,omitempty"`
	HonorificPrefix string `json:"honorificPrefix,omitempty"`
	HonorificSuffix string `json:"honorificSuffix,omitempty"`
}

// textAttribute is an attribute that is a text of an O.
type textAttribute[O any] struct {
	name, description string
	maximum           int // characters
	field             func(*O) *string
}

var userTexts = []textAttribute[User]{
	{"userName", "Name that identifies the user in the directory. It can be the email address.", userNameMax, func(u *User) *string { return &u.UserName }},
	{"externalId", "ID of the user in the directory.", rolecall.ExternalIDMax, func(u *User) *string { return &u.ExternalID }},
	{"displayName", "Name of the user for display. It is used if name.formatted is not assigned.", textMax, func(u *User) *string { return &u.DisplayName }},
}

var nameTexts = []textAttribute[Name]{
	{"formatted", "Full name of the user.", textMax, func(n *Name) *string { return &n.Formatted }},
	{"familyName", "Family name of the user.", textMax, func(n *Name) *string { return &n.FamilyName }},
	{"givenName", "Given name of the user.", textMax, func(n *Name) *string { return &n.GivenName }},
	{"middleName", "Middle names of the user.", textMax, func(n *Name) *string { return &n.MiddleName }},
	{"honorificPrefix", "Prefix of the name, such as Dr.", textMax, func(n *Name) *string { return &n.HonorificPrefix }},
	{"honorificSuffix", "Suffix of the name, such as III.", textMax, func(n *Name) *string { return &n.HonorificSuffix }},
}

var enterpriseTexts = []textAttribute[User]{
	{"department", "Department of the user.", textMax, func(u *User) *string { return &u.Department }},
}

// find returns the attribute with the name, which is in lower case, or nil.
func find[O any](attributes []textAttribute[O], name string) *textAttribute[O] {
	for i := range attributes {
		if strings.EqualFold(attributes[i].name, name) {
			return &attributes[i]
		}
	}
	return nil
}

// The attributes of RFC 7643 that are accepted and not stored, in lower case.
var (
	ignoredUserAttributes = []string{
		"nickname", "profileurl", "title", "usertype", "preferredlanguage", "locale", "timezone", "password",
		"phonenumbers", "ims", "photos", "addresses", "entitlements", "roles", "x509certificates",
	}
	ignoredEnterpriseAttributes = []string{"employeenumber", "costcenter", "organization", "division", "manager"}
	readOnlyAttributes          = []string{"id", "meta", "groups", "schemas"}
)

// support says how an attribute is treated.
type support int

const (
	unknown  support = iota // not an attribute of the resource
	stored                  // stored and returned
	ignored                 // accepted and not stored
	readOnly                // set by the server
)

func userSupport(p attributePath) support {
	switch name := p.attribute; {
	case p.schema == enterpriseKey && (name == "" || find(enterpriseTexts, name) != nil):
		return stored
	case p.schema == enterpriseKey && slices.Contains(ignoredEnterpriseAttributes, name):
		return ignored
	case p.schema != "":
		return unknown
	case name == "name" || name == "emails" || name == "active" || find(userTexts, name) != nil:
		return stored
	case slices.Contains(ignoredUserAttributes, name), slices.Contains(ignoredEnterpriseAttributes, name): // Entra once sent manager without its URN
		return ignored
	case slices.Contains(readOnlyAttributes, name):
		return readOnly
	}
	return unknown
}

// DecodeUser returns the user that the body of a POST or PUT describes. It ignores attributes that are not stored.
// The user has passed Check. The errors are *Error of the types invalidValue and invalidSyntax.
func DecodeUser(body map[string]any) (User, error) {
	var u User
	if err := u.assignAll(Replace, body); err != nil {
		return User{}, err
	}
	return u.finish()
}

// finish removes email addresses without a value, and checks the user.
func (u User) finish() (User, error) {
	u.Emails = slices.DeleteFunc(u.Emails, func(e Email) bool { return e.Value == "" })
	if len(u.Emails) == 0 {
		u.Emails = nil
	}
	if err := u.Check(); err != nil {
		return User{}, err
	}
	return u, nil
}

// Check checks what Rolecall requires of users: a user name, an address, a name and perhaps a department that
// Rolecall accepts, at most 20 email addresses, and at most one that is primary. It returns an *Error of the type
// invalidValue, or nil.
func (u *User) Check() error {
	if u.UserName == "" {
		return badRequest(InvalidValue, "userName is required.")
	}
	if code, detail := rolecall.CheckText(u.UserName, 1, userNameMax); code != "" {
		return badRequest(InvalidValue, "userName %s.", detail)
	}
	if u.ExternalID != "" {
		if code, detail := rolecall.CheckText(u.ExternalID, 1, rolecall.ExternalIDMax); code != "" {
			return badRequest(InvalidValue, "externalId %s.", detail)
		}
	}
	if err := checkEmails(u.Emails); err != nil {
		return err
	}
	if u.Address() == "" {
		return badRequest(InvalidValue, "The user needs an email address: userName must be one, or emails must have one.")
	}
	if code, detail := rolecall.CheckName(u.FullName(), 1, rolecall.UserNameMax); code != "" {
		return badRequest(InvalidValue, "The name of the user (name.formatted, else displayName, else name.givenName and name.familyName) %s.", detail)
	}
	if u.Department != "" {
		if code, detail := rolecall.CheckName(u.Department, 1, rolecall.DepartmentMax); code != "" {
			return badRequest(InvalidValue, "department %s.", detail)
		}
	}
	return nil
}

// Address returns the email address of the user: userName if it is one, else the first valid one of the primary
// address, the address of the type work, and all others. It returns an empty text if no address is valid.
func (u *User) Address() string {
	if isAddress(u.UserName) {
		return u.UserName
	}
	for _, preferred := range []func(*Email) bool{
		(*Email).isPrimary,
		func(e *Email) bool { return strings.EqualFold(e.Type, "work") },
		func(*Email) bool { return true },
	} {
		for i := range u.Emails {
			if e := &u.Emails[i]; preferred(e) && isAddress(e.Value) {
				return e.Value
			}
		}
	}
	return ""
}

func isAddress(text string) bool {
	code, _ := rolecall.CheckEmail(text)
	return code == ""
}

// FullName returns the name of the user without blanks at its ends: name.formatted, else displayName, else
// name.givenName and name.familyName, else the part of the address before the @.
func (u *User) FullName() string {
	for _, name := range []string{u.Name.Formatted, u.DisplayName, u.Name.GivenName + " " + u.Name.FamilyName} {
		if name = rolecall.TrimName(name); name != "" {
			return name
		}
	}
	address := u.Address()
	return address[:max(strings.LastIndexByte(address, '@'), 0)]
}

// Resource returns the user as a JSON object, without unassigned attributes. active is true if it is nil. groups
// are the groups of the user.
func (u *User) Resource(meta Meta, groups []rolecall.GroupName) map[string]any {
	schemas := []string{UserSchema}
	resource := map[string]any{
		"id":       meta.ID,
		"userName": u.UserName,
		"active":   u.Active == nil || *u.Active,
		"meta":     meta.object("User", "/Users/"),
	}
	render(resource, userTexts, u)
	name := map[string]any{}
	if render(name, nameTexts, &u.Name); len(name) > 0 {
		resource["name"] = name
	}
	if len(u.Emails) > 0 {
		resource["emails"] = renderEmails(u.Emails)
	}
	extension := map[string]any{}
	if render(extension, enterpriseTexts, u); len(extension) > 0 {
		schemas = append(schemas, EnterpriseUserSchema)
		resource[EnterpriseUserSchema] = extension
	}
	if len(groups) > 0 {
		all := make([]map[string]any, len(groups))
		for i, g := range groups {
			id := g.ID.String()
			all[i] = map[string]any{"value": id, "display": g.Name, "$ref": meta.Base + "/Groups/" + id}
		}
		resource["groups"] = all
	}
	resource["schemas"] = schemas
	return resource
}

// render adds the assigned attributes of the object to the resource.
func render[O any](resource map[string]any, attributes []textAttribute[O], object *O) {
	for i := range attributes {
		if text := *attributes[i].field(object); text != "" {
			resource[attributes[i].name] = text
		}
	}
}
