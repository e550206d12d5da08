package rolecall

// The limits of groups.
const (
	GroupNameMax        = 255
	GroupDescriptionMax = 1024
	GroupsMax           = 2000 // maximum number of groups in a tenant
	GroupRolesMax       = 500  // maximum number of assignments of roles to all groups of a tenant, with the expired ones
	GroupsOfUserMax     = 200  // maximum number of groups of a user
	GroupReachMax       = 20   // maximum number of departments in the reach of an assignment to a group
)

// Group is a set of users. The roles of the group apply to each of them.
type Group struct {
	ID          GroupID      `json:"id" doc:"ID of the group."`
	Name        string       `json:"name" doc:"Name of the group."`
	Description string       `json:"description" doc:"Description of the group."`
	ExternalID  *string      `json:"externalId" doc:"ID of the group in another system. Null without one."`
	Source      MemberSource `json:"source" nullable:"true" doc:"The directory or the connection that fills the group. Its name and members can only be changed there. Null without one."`
	CreatedAt   Time         `json:"createdAt" doc:"When the group was created."`
	UpdatedAt   Time         `json:"updatedAt" doc:"When the name, the description or the external ID was changed last."`
	Version     int64        `json:"-"`
}

// NameKey returns the key of the group's name. It is the sort key of groups, and is unique among the groups of a source.
func (g *Group) NameKey() string { return sortedKey(g.Name) }

// GroupName has the members that identify a group.
type GroupName struct {
	ID   GroupID `json:"id" doc:"ID of the group."`
	Name string  `json:"name" doc:"Name of the group."`
}

// Membership is the membership of a user in a group.
type Membership struct {
	Group   GroupName `json:"group" doc:"The group."`
	User    UserID    `json:"-"`
	AddedBy UserID    `json:"addedBy" nullable:"true" doc:"ID of the principal or the directory that added the user to the group. Null for an operator or a connection."`
	AddedAt Time      `json:"addedAt" doc:"When the user was added to the group."`
}

// GroupDraft describes a group to create.
type GroupDraft struct {
	Name        string       `json:"name" required:"true" minLength:"1" maxLength:"255" doc:"Name of the group, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant."`
	Description string       `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"Description of the group."`
	ExternalID  *string      `json:"externalId" minLength:"1" maxLength:"255" doc:"ID of the group in another system, unique in the tenant. With a source, it is unique among the groups of the source. Null for none."`
	Source      MemberSource `json:"source" nullable:"true" doc:"The directory or the connection that fills the group. It needs the permissions to configure connections. Null for none."`
}

// Check validates the draft. The name must have at least nameMinimum characters. Check returns
// nil if the draft is valid.
func (d *GroupDraft) Check(nameMinimum int) FieldErrors {
	faults := checkGroup(nameMinimum, Some(d.Name), d.Description, d.ExternalID)
	if d.Source != (MemberSource{}) && d.Source.Type != SourceDirectory && d.Source.Type != SourceConnection {
		faults.Add("/source/type", "enum", "must be directory or connection")
	}
	return faults
}

func checkGroup(nameMinimum int, name Optional[string], description string, externalID *string) (faults FieldErrors) {
	if name.Set {
		faults.Name("/name", name.Value, nameMinimum, GroupNameMax)
	}
	if description != "" {
		faults.Text("/description", description, 0, GroupDescriptionMax)
	}
	if externalID != nil {
		faults.Text("/externalId", *externalID, 1, ExternalIDMax)
	}
	return faults
}

// Group returns a new group with the values of the draft. The draft must have passed Check.
func (d *GroupDraft) Group(now Time) Group {
	return Group{
		ID: NewID[Group](now), Name: TrimName(d.Name), Description: d.Description, ExternalID: d.ExternalID, Source: d.Source,
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
}

// GroupPatch changes a group. Absent members keep their values (RFC 7396).
type GroupPatch struct {
	Name        Optional[string]  `json:"name" minLength:"1" maxLength:"255" doc:"Name of the group, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant."`
	Description Optional[string]  `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"Description of the group."`
	ExternalID  Optional[*string] `json:"externalId" minLength:"1" maxLength:"255" doc:"ID of the group in another system, unique in the tenant. Null for none."`
}

// Check validates the patch. The name must have at least nameMinimum characters. Check returns
// nil if the patch is valid.
func (p *GroupPatch) Check(nameMinimum int) FieldErrors {
	return checkGroup(nameMinimum, p.Name, p.Description.Value, p.ExternalID.Value)
}

// Apply returns the group with the changes of the patch, and the names of the members whose values
// changed. If no value changed, the names are nil. The patch must have passed Check.
func (p *GroupPatch) Apply(g Group, now Time) (Group, []string) {
	var changed []string
	if name := TrimName(p.Name.Value); p.Name.Set && name != g.Name {
		g.Name, changed = name, append(changed, "name")
	}
	if p.Description.Set && p.Description.Value != g.Description {
		g.Description, changed = p.Description.Value, append(changed, "description")
	}
	if p.ExternalID.Set && !equalOptional(p.ExternalID.Value, g.ExternalID) {
		g.ExternalID, changed = p.ExternalID.Value, append(changed, "externalId")
	}
	if changed != nil {
		g.UpdatedAt = max(now, g.UpdatedAt+1)
		g.Version++
	}
	return g, changed
}

// GroupQuery selects and sorts groups.
type GroupQuery struct {
	Words      []string     // each must be the beginning of a word of the name
	ExternalID string       // only groups with this external id, if set
	Source     MemberSource // only groups of this source, if set
	ByName     bool         // sort by name; otherwise by id, which is the order of creation
	Desc       bool
	After      *Position
	Limit      int
	Count      bool
}
