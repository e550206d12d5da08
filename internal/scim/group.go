package scim

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
)

// MembersMax is the maximum number of members in a request and in a response.
const MembersMax = 1000

// Group has the attributes of a group as a directory sent them. An empty text is an unassigned attribute.
type Group struct {
	DisplayName string
	ExternalID  string
}

var groupTexts = []textAttribute[Group]{
	{"displayName", "Name of the group.", rolecall.GroupNameMax, func(g *Group) *string { return &g.DisplayName }},
	{"externalId", "ID of the group in the directory.", rolecall.ExternalIDMax, func(g *Group) *string { return &g.ExternalID }},
}

func groupSupport(p attributePath) support {
	switch p.attribute {
	case "displayname", "externalid", "members":
		if p.schema == "" {
			return stored
		}
	case "id", "meta", "schemas":
		if p.schema == "" {
			return readOnly
		}
	}
	return unknown
}

// check returns an invalidValue error for a group that Rolecall does not accept.
func (g *Group) check() error {
	if g.DisplayName == "" {
		return badRequest(InvalidValue, "displayName is required.")
	}
	if code, detail := rolecall.CheckName(g.DisplayName, 1, rolecall.GroupNameMax); code != "" {
		return badRequest(InvalidValue, "displayName %s.", detail)
	}
	if g.ExternalID == "" {
		return nil
	}
	if code, detail := rolecall.CheckText(g.ExternalID, 1, rolecall.ExternalIDMax); code != "" {
		return badRequest(InvalidValue, "externalId %s.", detail)
	}
	return nil
}

// MemberChange is a change of the members of a group.
type MemberChange struct {
	Op    Op                // Add, Remove, or Replace, which makes the users the only members
	Users []rolecall.UserID // without duplicates; empty only for Replace
}

// GroupPatch has the changes that a directory sent.
type GroupPatch struct {
	DisplayName rolecall.Optional[string]
	ExternalID  rolecall.Optional[string] // the Value is empty if the attribute was removed
	Changes     []MemberChange            // in this order
}

// DecodeGroup returns the group that the body of a POST or PUT describes, and its members without duplicates.
// membersSent reports whether the body has members, perhaps null. The errors are *Error: invalidValue, invalidSyntax,
// and 413 for more than 1,000 members.
func DecodeGroup(body map[string]any) (g Group, users []rolecall.UserID, membersSent bool, err error) {
	o := Operation{Op: Replace, Value: body}
	if err := checkMemberCount([]Operation{o}); err != nil {
		return Group{}, nil, false, err
	}
	var p GroupPatch
	if err := p.apply(o); err != nil {
		return Group{}, nil, false, err
	}
	g = Group{p.DisplayName.Value, p.ExternalID.Value}
	if err := g.check(); err != nil {
		return Group{}, nil, false, err
	}
	for _, c := range p.Changes {
		users, membersSent = unique(c.Users), true
	}
	return g, users, membersSent, nil
}

// PatchGroup returns the changes of the operations. The errors are *Error: invalidPath, invalidValue, invalidSyntax,
// mutability, and 413 if the operations have more than 1,000 members in total.
func PatchGroup(operations []Operation) (GroupPatch, error) {
	if err := checkMemberCount(operations); err != nil {
		return GroupPatch{}, err
	}
	var p GroupPatch
	for i, o := range operations {
		if err := p.apply(o); err != nil {
			return GroupPatch{}, inOperation(i, err)
		}
	}
	for i := range p.Changes {
		p.Changes[i].Users = unique(p.Changes[i].Users)
	}
	g := Group{DisplayName: "unchanged", ExternalID: p.ExternalID.Value}
	if p.DisplayName.Set {
		g.DisplayName = p.DisplayName.Value
	}
	if err := g.check(); err != nil {
		return GroupPatch{}, err
	}
	return p, nil
}

// checkMemberCount returns a 413 error if the operations have more than 1,000 members.
func checkMemberCount(operations []Operation) error {
	count := 0
	for _, o := range operations {
		if o.Path.attribute == "members" {
			count += max(len(list(o.Value)), o.Path.filter.size())
		}
		object, _ := o.Value.(map[string]any)
		if !o.Path.isRoot() || object == nil {
			continue
		}
		for name, value := range object {
			if p, ok := parseAttribute(name); ok && p.attribute == "members" {
				count += len(list(value))
			}
		}
	}
	if count > MembersMax {
		return tooLarge("A request can have at most %d members of a group.", MembersMax)
	}
	return nil
}

func (p *GroupPatch) apply(o Operation) error {
	if !o.Path.isRoot() {
		if s := groupSupport(o.Path.attributePath); s != stored {
			return o.Path.refuse(s)
		}
		return p.assign(o.Op, o.Path, o.Value)
	}
	object, ok := o.Value.(map[string]any)
	if !ok {
		return badRequest(InvalidValue, "The value of an operation without a path must be an object.")
	}
	all, err := members(object)
	if err != nil {
		return err
	}
	for _, m := range all {
		path, err := parsePath(m.name)
		if err != nil || groupSupport(path.attributePath) != stored {
			continue
		}
		if err := p.assign(o.Op, path, m.value); err != nil {
			return err
		}
	}
	return nil
}

// assign applies an operation on a stored attribute.
func (p *GroupPatch) assign(op Op, path Path, value any) error {
	if path.attribute == "members" {
		return p.assignMembers(op, path, value)
	}
	if err := path.plain(); err != nil {
		return err
	}
	if op == Add && value == nil {
		return nil
	}
	if op == Remove && path.attribute == "displayname" {
		return badRequest(Mutability, "displayName is required.")
	}
	var g Group
	if err := find(groupTexts, path.attribute).assign(&g, op, value); err != nil {
		return err
	}
	if path.attribute == "displayname" {
		p.DisplayName = rolecall.Some(g.DisplayName)
	} else {
		p.ExternalID = rolecall.Some(g.ExternalID)
	}
	return nil
}

func (p *GroupPatch) assignMembers(op Op, path Path, value any) error {
	switch {
	case path.filter != nil && op != Remove || path.filter == nil && path.sub != "":
		return badRequest(Mutability, "The attributes of a member cannot be changed. Remove the member and add another one.")
	case path.filter != nil:
		users, err := path.filter.selectedUsers(nil)
		if err != nil {
			return err
		}
		p.change(Remove, users)
		return nil
	case op == Remove && value == nil:
		p.change(Replace, nil)
		return nil
	}
	users, err := decodeMembers(value)
	if err != nil {
		return err
	}
	p.change(op, users)
	return nil
}

// change appends a change of members. It joins neighboring changes of one kind, because Entra sends an operation per
// member.
func (p *GroupPatch) change(op Op, users []rolecall.UserID) {
	if op == Replace {
		p.Changes = []MemberChange{{Replace, users}} // has the same result without the changes before
		return
	}
	if len(users) == 0 {
		return
	}
	if last := len(p.Changes) - 1; last >= 0 && p.Changes[last].Op == op {
		p.Changes[last].Users = append(p.Changes[last].Users, users...)
		return
	}
	p.Changes = append(p.Changes, MemberChange{op, users})
}

// unique returns the users in their order without duplicates.
func unique(users []rolecall.UserID) []rolecall.UserID {
	seen := make(map[rolecall.UserID]bool, len(users))
	return slices.DeleteFunc(users, func(id rolecall.UserID) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}

// selectedUsers appends the users that a filter such as value eq "…" selects, joined by or.
func (e *expression) selectedUsers(users []rolecall.UserID) ([]rolecall.UserID, error) {
	if e.op == opOr {
		for _, operand := range e.operands {
			var err error
			if users, err = operand.selectedUsers(users); err != nil {
				return nil, err
			}
		}
		return users, nil
	}
	if e.op != opEqual || e.attribute.String() != "value" {
		return nil, badRequest(InvalidPath, "members can be selected by value with eq, also joined by or.")
	}
	id, err := parseUser(e.value)
	if err != nil {
		return nil, err
	}
	return append(users, id), nil
}

func decodeMembers(value any) ([]rolecall.UserID, error) {
	values := list(value)
	users := make([]rolecall.UserID, len(values))
	for i, v := range values {
		id, err := decodeMember(v)
		if err != nil {
			return nil, err
		}
		users[i] = id
	}
	return users, nil
}

// decodeMember returns the user of an object such as {"value": "…", "type": "User"}, or of a text.
func decodeMember(value any) (rolecall.UserID, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return parseUser(value)
	}
	all, err := members(object)
	if err != nil {
		return rolecall.UserID{}, err
	}
	var id any
	for _, m := range all {
		switch m.name {
		case "value":
			id = m.value
		case "type":
			if kind, _ := m.value.(string); m.value != nil && kind != "" && !strings.EqualFold(kind, "User") {
				return rolecall.UserID{}, badRequest(InvalidValue, "The members of a group must be users.")
			}
		}
	}
	return parseUser(id)
}

func parseUser(value any) (rolecall.UserID, error) {
	text, _ := value.(string)
	id, err := rolecall.ParseID[rolecall.User](text)
	if err != nil {
		return id, badRequest(InvalidValue, "The value of each member must be the id of a user.")
	}
	return id, nil
}

// Resource returns the group as a JSON object, without unassigned attributes. Without users, it has no members.
func (g *Group) Resource(meta Meta, users []rolecall.UserID) map[string]any {
	resource := map[string]any{
		"schemas": []string{GroupSchema},
		"id":      meta.ID,
		"meta":    meta.object("Group", "/Groups/"),
	}
	render(resource, groupTexts, g)
	if len(users) > 0 {
		all := make([]map[string]any, len(users))
		for i, id := range users {
			text := id.String()
			all[i] = map[string]any{"value": text, "type": "User", "$ref": meta.Base + "/Users/" + text}
		}
		resource["members"] = all
	}
	return resource
}
