package scim

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestFiltersOfUsers(t *testing.T) {
	for filter, want := range map[string][]Term{
		`userName eq "ada@example.com"`:                              {{Attribute: ByUserName, Text: "ada@example.com"}},
		`USERNAME EQ "Ada"`:                                          {{Attribute: ByUserName, Text: "Ada"}},
		`externalId eq "7c1a"`:                                       {{Attribute: ByExternalID, Text: "7c1a"}},
		`id eq "7c1a"`:                                               {{Attribute: ByID, Text: "7c1a"}},
		`emails eq "ada@example.com"`:                                {{Attribute: ByEmail, Text: "ada@example.com"}},
		`emails.value eq "ada@example.com"`:                          {{Attribute: ByEmail, Text: "ada@example.com"}},
		`emails[type eq "work"].value eq "ada@example.com"`:          {{Attribute: ByEmail, Type: "work", Text: "ada@example.com"}},
		`emails[type eq "work" and value eq "ada@example.com"]`:      {{Attribute: ByEmail, Type: "work", Text: "ada@example.com"}},
		`emails[value eq "ada@example.com"]`:                         {{Attribute: ByEmail, Text: "ada@example.com"}},
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "a"`: {{Attribute: ByUserName, Text: "a"}},
		`(userName eq "a\"b\\\u00e9") and (active eq true)`:          {{Attribute: ByUserName, Text: `a"b\é`}, {Attribute: ByActive, Bool: true}},
		`active eq "False" and userName eq ""`:                       {{Attribute: ByActive}, {Attribute: ByUserName}},
		`userName eq "a" and externalId eq "b" and id eq "c"`:        {{Attribute: ByUserName, Text: "a"}, {Attribute: ByExternalID, Text: "b"}, {Attribute: ByID, Text: "c"}},
		`  userName   eq   "a"  `:                                    {{Attribute: ByUserName, Text: "a"}},
		`userName eq "a and b or (c) eq [d]"`:                        {{Attribute: ByUserName, Text: "a and b or (c) eq [d]"}},
	} {
		got, err := ParseUserFilter(filter)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v, want %v", filter, got, err, want)
		}
	}
}

func TestFiltersOfGroups(t *testing.T) {
	for filter, want := range map[string][]Term{
		`displayName eq "Sales"`:                                         {{Attribute: ByDisplayName, Text: "Sales"}},
		`externalId eq "x"`:                                              {{Attribute: ByExternalID, Text: "x"}},
		`id eq "x" and members eq "y"`:                                   {{Attribute: ByID, Text: "x"}, {Attribute: ByMember, Text: "y"}},
		`id eq "x" and members.value eq "y"`:                             {{Attribute: ByID, Text: "x"}, {Attribute: ByMember, Text: "y"}},
		`members[value eq "y"] and id eq "x"`:                            {{Attribute: ByMember, Text: "y"}, {Attribute: ByID, Text: "x"}},
		`urn:ietf:params:scim:schemas:core:2.0:Group:displayName eq "S"`: {{Attribute: ByDisplayName, Text: "S"}},
	} {
		got, err := ParseGroupFilter(filter)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v, want %v", filter, got, err, want)
		}
	}
	for _, filter := range []string{`members eq "y"`, `displayName eq "x" and members eq "y"`, `userName eq "x"`, `displayName sw "x"`, `members[type eq "User"].value eq "y" and id eq "x"`} {
		refused(t, filter, InvalidFilter, func() error { _, err := ParseGroupFilter(filter); return err })
	}
}

// unsupportedFilters are well formed.
var unsupportedFilters = []string{
	`active eq true`, `userName ne "a"`, `userName sw "a"`, `userName pr`, `title pr`, `meta.lastModified gt "2011-05-13T04:42:34Z"`,
	`userName eq "a" or userName eq "b"`, `not (userName eq "a")`, `userName eq "a" and not (active eq true)`,
	`userName eq null`, `userName eq 5`, `userName eq true`, `userName eq -1.5e3`, `name.givenName eq "a"`, `emails.type eq "work"`,
	`emails[type eq "work"]`, `emails[type eq "work"].type eq "work"`, `emails[type eq "work" or value eq "a"]`,
	`emails[not (type eq "work")].value eq "x"`, `emails[primary eq true].value eq "x"`, `addresses[value eq "x"]`,
	`emails[value eq "x"].value eq "y"`, `userName eq "\u0000"`, `active eq 1 and userName eq "a"`,
	`userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")`,
	`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq "x"`, `nothing eq "x"`,
}

var malformedFilters = []string{
	``, ` `, `userName`, `userName eq`, `userName eq `, `userName is "a"`, `userName eq "a`, `userName eq 'a'`, `userName eq a`, `userName eq"a"`,
	`(userName eq "a"`, `userName eq "a")`, `userName eq "a" and`, `and userName eq "a"`, `userName eq "a" userName eq "b"`, `not userName eq "a"`,
	`emails[`, `emails[]`, `emails[type eq "work"`, `emails[emails[type eq "work"]]`, `emails[type eq "work"].`, `emails[type eq "work"].value`,
	`emails.value[type eq "work"]`, `user.name.x eq "a"`, `1a eq "a"`, `userName eq "\x"`, `userName eq 01`, `userName eq 1e999`, `userName eq {}`,
	`userName eq "` + "\xff" + `"`, `userName eq "` + "a\nb" + `"`, "userName\teq \"a\"", strings.Repeat("(", 21) + `userName eq "a"` + strings.Repeat(")", 21),
	`userName eq "` + strings.Repeat("a", filterMax) + `"`, `urn: eq "a"`, `urn:ietf:params:scim:schemas:extension:enterprise:2.0:User eq "a"`,
}

func TestRefusedFilters(t *testing.T) {
	for _, filter := range slices.Concat(unsupportedFilters, malformedFilters) {
		refused(t, filter, InvalidFilter, func() error { _, err := ParseUserFilter(filter); return err })
	}
	for _, filter := range unsupportedFilters {
		if _, err := parseExpression(filter); err != nil {
			t.Errorf("%s is well formed", filter)
		}
	}
	for _, filter := range malformedFilters {
		if _, err := parseExpression(filter); err == nil {
			t.Errorf("%s is malformed", filter)
		}
	}
}

func TestAndBindsTighterThanOr(t *testing.T) {
	e, err := parseExpression(`a eq 1 or b eq 2 and not (c eq 3 or d pr) or e eq 5`)
	if err != nil || e.op != opOr || len(e.operands) != 3 || e.operands[1].op != opAnd || e.operands[1].operands[1].op != opNot {
		t.Errorf("%+v %v", e, err)
	}
}

// refused checks that the function returns an *Error of the type.
func refused(t *testing.T, name, scimType string, f func() error) {
	t.Helper()
	var e *Error
	if err := f(); !errors.As(err, &e) || e.Type != scimType || e.Status != 400 || e.Detail == "" {
		t.Errorf("%s: %v, want %s", name, err, scimType)
	}
}

func FuzzFilter(f *testing.F) {
	for _, filter := range slices.Concat(unsupportedFilters, malformedFilters) {
		f.Add(filter)
	}
	f.Add(`emails[type eq "work"].value eq "x" and active eq false`)
	f.Add(`id eq "x" and members eq "y"`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) ([]Term, error){ParseUserFilter, ParseGroupFilter} {
			terms, err := parse(text)
			if err != nil {
				refused(t, text, InvalidFilter, func() error { return err })
				continue
			}
			printed := make([]string, len(terms))
			for i, term := range terms {
				printed[i] = term.String()
			}
			joined := strings.Join(printed, " and ")
			if again, err := parse(joined); len(joined) <= filterMax && (err != nil || !reflect.DeepEqual(again, terms)) {
				t.Errorf("%s: %v, printed %s: %v %v", text, terms, joined, again, err)
			}
		}
	})
}
