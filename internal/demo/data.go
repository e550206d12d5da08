package demo

import (
	"slices"
	"time"

	"github.com/rolecall/rolecall"
)

// personCount is the number of users of the demo without the owner and the deleted users.
// There is one user for each combination of a first and a last name.
var personCount = len(firstNames) * len(lastNames)

// age is the time since the creation of the demo's tenant.
const age = 300 * 24 * time.Hour

var (
	firstNames = []string{
		"Grace", "Alan", "Katherine", "Edsger", "Barbara", "Donald", "Radia", "Tony",
		"Frances", "Dennis", "Margaret", "Niklaus", "Sofia", "José", "Zoë", "Søren",
	}
	lastNames = []string{
		"Hopper", "Turing", "Johnson", "Dijkstra", "Liskov", "Knuth", "Perlman", "Hoare",
		"Allen", "Ritchie", "Hamilton", "Wirth", "Kowalewska", "García", "Björk",
	}
	// leavers are the names of the deleted users. The user who was deleted last is the first.
	leavers     = []string{"Inês Duarte", "Bruno Weber", "Léa Fontaine", "Omar Haddad", "Yuki Tanaka", "Nora Lindgren"}
	departments = []string{"Sales", "Support", "Engineering", "Finance", "Marketing", "Operations", "People", "Legal"}

	// clients and sources are the browsers and the client addresses of sign-ins.
	clients = []string{
		"Firefox on Windows", "Chrome on macOS", "Safari on iPhone", "Edge on Windows", "Chrome on Android", "Safari on macOS", "Firefox on Linux",
	}
	sources = []string{
		"192.0.2.10", "198.51.100.23", "203.0.113.77", "2001:db8:40::17", "192.0.2.44", "198.51.100.140", "203.0.113.9", "2001:db8:7::5", "192.0.2.91", "203.0.113.201", "198.51.100.66",
	}
	reasons = []string{"Parental leave", "Laptop reported as stolen", "On sabbatical until spring", "Contract ended", "Asked for by Legal", "Away for a long time"}
)

// The keys of the roles that makeRoles creates.
const (
	supportAgent    = "support-agent"
	peoplePartner   = "people-partner"
	departmentLead  = "department-lead"
	securityOfficer = "security-officer"
	auditor         = "auditor"
	directoryReader = "directory"
	invoiceApprover = "invoice-approver"
)

var (
	supports   = []string{"users:read", "users:suspend", "users:invite", "roles:read", "sessions:read", "sessions:revoke", "events:read"}
	approves   = []string{"shop/invoices:read", "shop/invoices:approve"}
	roleDrafts = []rolecall.RoleDraft{
		{
			Key: text(supportAgent), Name: "Support agent", Description: "Finds users, sends invitations and suspends accounts.",
			Permissions: supports[:5], // extendSupport adds the other two
		},
		{
			Key: text(peoplePartner), Name: "People partner", Description: "Creates, changes and deletes users, and assigns roles.",
			Permissions: []string{"users:read", "users:create", "users:update", "users:delete", "users:restore", "users:invite", "roles:read", "roles:assign"},
		},
		{
			Key: text(departmentLead), Name: "Department lead", Description: "Invites users and assigns support and approval roles.",
			Permissions: []string{"users:read", "users:invite", "roles:read", "roles:assign"},
			Grants:      slices.Concat(supports, approves),
		},
		{
			Key: text(securityOfficer), Name: "Security officer", Description: "Ends sessions, resets second factors and erases users.",
			Permissions: []string{"users:read", "users:suspend", "users:reset-factors", "users:erase", "roles:read", "sessions:*", "events:read", "tenant:read"},
		},
		{
			Key: text(auditor), Name: "Auditor", Description: "Reads everything and changes nothing.",
			Permissions: []string{"*:read", "*/*:read"},
		},
		{
			Key: text(directoryReader), Name: "Directory", Description: "Reads names and departments only.",
			Permissions: []string{"users.name:read", "users.department:read"},
		},
		{
			Key: text(invoiceApprover), Name: "Invoice approver", Description: "Approves invoices in the shop.",
			Permissions: approves,
		},
	}
	// staff maps the numbers of some users to the keys of their roles. These users make
	// most of the changes in the history. A department lead has the role only within
	// their own department.
	staff = map[int]string{
		16: departmentLead, 17: departmentLead, 18: departmentLead, 19: departmentLead, 20: departmentLead, 21: departmentLead, 22: departmentLead, 23: departmentLead,
		25: supportAgent, 33: supportAgent, 30: peoplePartner, 38: peoplePartner, officer: securityOfficer, 50: "administrator",
	}
)

// officer is the number of the user who is the security officer.
const officer = 42

// programs are the demo's service accounts.
var programs = []struct {
	rolecall.ServiceAccountDraft
	role        string
	token       string
	permissions []string
	left        time.Duration // time until the token expires
	endedFor    string        // reason of the suspension; empty: the account is active
}{
	{rolecall.ServiceAccountDraft{Name: "Shop", Description: "Checks who can approve an invoice."}, auditor, "Production", []string{"users.name:read", "shop/invoices:read"}, 160 * day, ""},
	{rolecall.ServiceAccountDraft{Name: "Payroll sync", Description: "Reads the departments of all users every night."}, directoryReader, "Nightly job", []string{"users.name:read", "users.department:read"}, 6 * day, ""},
	{rolecall.ServiceAccountDraft{Name: "Badge printer", Description: "Printed badges at the old office."}, directoryReader, "Printer on floor 2", []string{"users.name:read"}, 30 * day, "The office was closed"},
}

func text(s string) *string { return &s }
