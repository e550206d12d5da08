package rolecall

import "fmt"

// ReachDepartmentsMax is the maximum number of departments in a reach.
const ReachDepartmentsMax = 100

// Assignment gives a role to a user or to a service account.
type Assignment struct {
	Holder    Holder
	Role      Role
	Reach     Reach  // the whole tenant or some departments
	ExpiresAt Time   // Never: the assignment does not expire
	GrantedBy UserID // zero: granted by an operator
	GrantedAt Time
}

// Live reports whether the assignment is unexpired at the time now.
func (a *Assignment) Live(now Time) bool { return now < a.ExpiresAt }

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
		faults.Text(fmt.Sprintf("/reach/departments/%d", i), name, DepartmentMin, DepartmentMax)
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
	return Within(d.Departments...)
}

// Expiry returns ExpiresAt of the draft, or Never if it is nil.
func (d *AssignmentDraft) Expiry() Time {
	if d.ExpiresAt == nil {
		return Never
	}
	return *d.ExpiresAt
}
