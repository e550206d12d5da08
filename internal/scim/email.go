package scim

import (
	"slices"
	"strings"
)

const (
	emailsMax      = 20  // maximum number of email addresses of a user
	emailValueMax  = 320 // maximum length of an email address, in characters
	comparisonsMax = 20  // maximum number of comparisons of a filter that selects addresses, so that a PATCH is fast
)

// Email is an email address of a user.
type Email struct {
	Value   string `json:"value,omitempty"`
	Type    string `json:"type,omitempty"`
	Display string `json:"display,omitempty"`
	Primary *bool  `json:"primary,omitempty"` // nil if it was not sent
}

var emailTexts = []textAttribute[Email]{
	{"value", "Email address.", emailValueMax, func(e *Email) *string { return &e.Value }},
	{"display", "Name of the address for display.", textMax, func(e *Email) *string { return &e.Display }},
	{"type", "Purpose of the address.", textMax, func(e *Email) *string { return &e.Type }},
}

func (e *Email) isPrimary() bool { return e.Primary != nil && *e.Primary }

// assign sets the sub-attribute, whose name is in lower case. It returns false if the sub-attribute is unknown.
func (e *Email) assign(sub string, value any) (bool, error) {
	if sub == "primary" {
		primary, err := optionalBoolean("emails.primary", value)
		e.Primary = primary
		return true, err
	}
	attribute := find(emailTexts, sub)
	if attribute == nil {
		return false, nil
	}
	text, err := text("emails."+attribute.name, value, attribute.maximum)
	*attribute.field(e) = text
	return true, err
}

// assignAll sets the sub-attributes that the value has: an object, or a text, which is an address.
func (e *Email) assignAll(value any) error {
	if address, ok := value.(string); ok {
		_, err := e.assign("value", address)
		return err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return badRequest(InvalidValue, "emails must be a list of objects with the member value.")
	}
	all, err := members(object)
	if err != nil {
		return err
	}
	for _, m := range all {
		if _, err := e.assign(m.name, m.value); err != nil {
			return err
		}
	}
	return nil
}

// matches reports whether the filter selects the address. It returns an invalidPath error if the filter names an
// unknown sub-attribute.
func (e *Email) matches(filter *expression) (bool, error) {
	matches, known := filter.matches(func(sub string) (any, bool) {
		if sub == "primary" {
			return e.isPrimary(), true
		}
		attribute := find(emailTexts, sub)
		if attribute == nil {
			return nil, false
		}
		return *attribute.field(e), true
	})
	if !known {
		return false, badRequest(InvalidPath, "emails can be selected by value, type, display and primary.")
	}
	return matches, nil
}

// emailFor returns an address that the filter selects. It returns a noTarget error if the filter is not a
// conjunction of eq.
func emailFor(filter *expression) (Email, error) {
	var e Email
	for _, c := range filter.conjuncts() {
		if c.op != opEqual {
			return e, badRequest(NoTarget, "The filter of the path selects no email address.")
		}
		if _, err := e.assign(c.attribute.attribute, c.value); err != nil {
			return e, err
		}
	}
	return e, nil
}

func decodeEmails(value any) ([]Email, error) {
	values := list(value)
	if len(values) > emailsMax {
		return nil, tooManyEmails()
	}
	emails := make([]Email, len(values))
	for i, v := range values {
		if err := emails[i].assignAll(v); err != nil {
			return nil, err
		}
	}
	return emails, nil
}

func tooManyEmails() *Error {
	return badRequest(InvalidValue, "emails must have at most %d values.", emailsMax)
}

// assignEmails applies an operation on emails.
func (u *User) assignEmails(op Op, p Path, value any) error {
	if p.filter == nil && p.sub == "" {
		return u.assignEmailList(op, value)
	}
	if p.filter.size() > comparisonsMax {
		return badRequest(InvalidPath, "A filter in a path to emails can have at most %d comparisons.", comparisonsMax)
	}
	var selected []int
	for i := range u.Emails {
		if p.filter != nil {
			matches, err := u.Emails[i].matches(p.filter)
			if err != nil {
				return err
			}
			if !matches {
				continue
			}
		}
		selected = append(selected, i)
	}
	if op == Remove && p.sub == "" {
		for _, i := range slices.Backward(selected) {
			u.Emails = slices.Delete(u.Emails, i, i+1)
		}
		return nil
	}
	if op == Remove {
		op, value = Replace, nil
	} else if len(selected) == 0 { // Entra expects that the address is added
		if err := u.addEmailFor(p.filter); err != nil {
			return err
		}
		selected = []int{len(u.Emails) - 1}
	}
	for _, i := range selected {
		if err := u.assignEmail(op, i, p.sub, value); err != nil {
			return err
		}
	}
	return nil
}

func (u *User) addEmailFor(filter *expression) error {
	var e Email
	if filter != nil {
		// Selecting from the new address finds unknown sub-attributes.
		if _, err := e.matches(filter); err != nil {
			return err
		}
		created, err := emailFor(filter)
		if err != nil {
			return err
		}
		e = created
	}
	return u.addEmail(e)
}

// addEmail appends the address. It returns an invalidValue error if the user has too many.
func (u *User) addEmail(e Email) error {
	if len(u.Emails) >= emailsMax {
		return tooManyEmails()
	}
	u.Emails = append(u.Emails, e)
	u.keepPrimary(len(u.Emails) - 1)
	return nil
}

// assignEmail sets a sub-attribute of an address, or all if sub is empty.
func (u *User) assignEmail(op Op, i int, sub string, value any) error {
	e := u.Emails[i]
	if sub == "" {
		if op == Replace {
			e = Email{}
		}
		if err := e.assignAll(value); err != nil {
			return err
		}
	} else if known, err := e.assign(sub, value); err != nil {
		return err
	} else if !known {
		return badRequest(InvalidPath, "emails has no sub-attribute %s.", sub)
	}
	u.Emails[i] = e
	u.keepPrimary(i)
	return nil
}

// keepPrimary makes all other addresses not primary if the address is primary.
func (u *User) keepPrimary(primary int) {
	if !u.Emails[primary].isPrimary() {
		return
	}
	for i := range u.Emails {
		if i != primary && u.Emails[i].isPrimary() {
			u.Emails[i].Primary = new(bool)
		}
	}
}

// assignEmailList applies an operation on all addresses.
func (u *User) assignEmailList(op Op, value any) error {
	emails, err := decodeEmails(value)
	if err != nil {
		return err
	}
	switch {
	case op == Replace || op == Remove && value == nil:
		u.Emails = emails
		return nil
	case op == Remove:
		u.Emails = slices.DeleteFunc(u.Emails, func(e Email) bool {
			return slices.ContainsFunc(emails, func(removed Email) bool {
				return strings.EqualFold(removed.Value, e.Value) && (removed.Type == "" || strings.EqualFold(removed.Type, e.Type))
			})
		})
		return nil
	}
	for _, e := range emails {
		same := slices.IndexFunc(u.Emails, func(old Email) bool {
			return strings.EqualFold(old.Value, e.Value) && strings.EqualFold(old.Type, e.Type)
		})
		if same < 0 {
			if err := u.addEmail(e); err != nil {
				return err
			}
			continue
		}
		old := &u.Emails[same]
		if e.Display != "" {
			old.Display = e.Display
		}
		if e.Primary != nil {
			old.Primary = e.Primary
		}
		u.keepPrimary(same)
	}
	return nil
}

// checkEmails returns an invalidValue error for too many addresses, and for more than one that is primary.
func checkEmails(emails []Email) error {
	if len(emails) > emailsMax {
		return tooManyEmails()
	}
	primary := 0
	for i := range emails {
		if emails[i].isPrimary() {
			primary++
		}
	}
	if primary > 1 {
		return badRequest(InvalidValue, "At most one of emails can be primary.")
	}
	return nil
}

func renderEmails(emails []Email) []map[string]any {
	all := make([]map[string]any, len(emails))
	for i := range emails {
		all[i] = make(map[string]any, 4)
		render(all[i], emailTexts, &emails[i])
		if emails[i].Primary != nil {
			all[i]["primary"] = *emails[i].Primary
		}
	}
	return all
}
