package rolecall

import "fmt"

// ReachDepartmentsMax is the maximum number of departments in a reach.
const ReachDepartmentsMax = 100

// Assignment gives a role to a user, to a service account, or to the members of a group.
type Assignment struct {
	Holder    Holder
	Through   GroupName // the group through which the holder, a user, has the role; zero: the holder has it directly
	Role      Role
	Reach     Reach  // the whole tenant or some departments
	ExpiresAt Time   // Never: the assignment does not expire
	GrantedBy UserID // zero: granted by an operator
	GrantedAt Time
}

// Live reports whether the assignment is unexpired at the time now.
func (a *Assignment) Live(now Time) bool { return now < a.ExpiresAt }

// Size returns about how many bytes the assignment has in a response, without the permissions of its role.
func (a *Assignment) Size() int {
	size := 600 + len(a.Role.Name) + len(a.Through.Name)
	for _, department := range a.Reach.Departments() {
		size += len(department) + len(`"",`)
	}
	return size
}

// AssignmentDraft describes an assignment to create.
type AssignmentDraft struct {
	Departments []string `json:"departments,omitempty"` // nil: the whole tenant
	ExpiresAt   *Time    `json:"expiresAt,omitempty"`
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *AssignmentDraft) Check(now Time) FieldErrors {
	var faults FieldErrors
	if d.Departments != nil && len(d.Departments) == 0 {
		faults.Add("/reach/departments", "too-few", "must name at least one department; omit reach for the whole tenant")
	}
	if len(d.Departments) > ReachDepartmentsMax {
		faults.Add("/reach/departments", "too-many", "must name at most 100 departments")
	}
	for i, name := range d.Departments {
		faults.Name(fmt.Sprintf("/reach/departments/%d", i), name, NameLeast, DepartmentMax)
	}
	if d.ExpiresAt != nil && *d.ExpiresAt <= now {
		faults.Add("/expiresAt", "past", "must be in the future")
	}
	return faults
}

// Reach returns the reach of the draft: its departments, or the whole tenant.
func (d *AssignmentDraft) Reach() Reach {
	if d.Departments == nil {
		return Everywhere()
	}
	return Within(trimNames(d.Departments)...)
}

// Expiry returns ExpiresAt of the draft, or Never if it is nil.
func (d *AssignmentDraft) Expiry() Time {
	if d.ExpiresAt == nil {
		return Never
	}
	return *d.ExpiresAt
}

// AccessQuery selects users or service accounts, sorted by id. They have a permission
// through an unexpired assignment.
type AccessQuery struct {
	Permission Permission
	Within     Reach // only users in this reach; does not restrict service accounts
	Now        Time  // the time at which the assignments must be unexpired
	After      *Position
	Limit      int
}

// Scoped reports whether the permission of the query has an effect in an assignment that is
// limited to departments.
func (q *AccessQuery) Scoped() bool { return !q.Permission.Own() || q.Permission.BoundByReach() }
