package rolecall

import "fmt"

// ReachDepartmentsMax bounds how many departments one reach names.
const ReachDepartmentsMax = 100

// Assignment says that a user or a service account holds a role: where, until when,
// and who granted it.
type Assignment struct {
	Holder    Holder
	Role      Role
	Reach     Reach  // everywhere, or some departments
	ExpiresAt Time   // Never if it does not
	GrantedBy UserID // zero: an operator
	GrantedAt Time
}

// Live reports whether the assignment counts at the moment.
func (a *Assignment) Live(now Time) bool { return now < a.ExpiresAt }

// AssignmentDraft is what an assigner says: an absent Departments means
// everywhere, an absent ExpiresAt never.
type AssignmentDraft struct {
	Departments []string // nil: everywhere
	ExpiresAt   *Time
}

// Check returns what is wrong with the draft, nil if nothing is.
func (d *AssignmentDraft) Check(now Time) Faults {
	var faults Faults
	if d.Departments != nil && len(d.Departments) == 0 {
		faults.Add("/reach/departments", "too-few", "must name a department; leave reach out for the whole tenant")
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

// Reach returns the reach that the draft names.
func (d *AssignmentDraft) Reach() Reach {
	if d.Departments == nil {
		return Everywhere()
	}
	return Within(d.Departments...)
}

// Expiry returns the moment from which the assignment counts for nothing.
func (d *AssignmentDraft) Expiry() Time {
	if d.ExpiresAt == nil {
		return Never
	}
	return *d.ExpiresAt
}
