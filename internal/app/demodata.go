package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// demoPeople is how many users the demo has beside its owner: each first name
// with each last name.
var demoPeople = len(demoFirst) * len(demoLast)

// demoStep is the time from one newcomer to the next.
const demoStep = 30 * time.Hour

// demoBegin is when the demo's history begins: so that it ends now.
func demoBegin() rolecall.Time { return now().Add(-demoStep * time.Duration(demoPeople+2)) }

var (
	demoFirst = []string{
		"Grace", "Alan", "Katherine", "Edsger", "Barbara", "Donald", "Radia", "Tony",
		"Frances", "Dennis", "Margaret", "Niklaus", "Sofia", "José", "Zoë", "Søren",
	}
	demoLast = []string{
		"Hopper", "Turing", "Johnson", "Dijkstra", "Liskov", "Knuth", "Perlman", "Hoare",
		"Allen", "Ritchie", "Hamilton", "Wirth", "Kowalewska", "García", "Björk",
	}
	demoDepartments = []string{"Sales", "Support", "Engineering", "Finance", "Marketing", "Operations", "People", "Legal"}
	demoRoles       = []rolecall.RoleDraft{
		{
			Key: text("support-agent"), Name: "Support agent", Description: "Looks people up and pauses accounts.",
			Permissions: []string{"users:read", "users:suspend", "roles:read", "sessions:read", "events:read"},
		},
		{
			Key: text("people-partner"), Name: "People partner", Description: "Hires, moves and says goodbye.",
			Permissions: []string{"users:read", "users:create", "users:update", "users:delete", "users:invite"},
		},
		{
			Key: text("directory"), Name: "Directory", Description: "Sees names and departments, and nothing else.",
			Permissions: []string{"users.name:read", "users.department:read"},
		},
		{
			Key: text("invoice-approver"), Name: "Invoice approver", Description: "Approves invoices in the shop.",
			Permissions: []string{"shop/invoices:read", "shop/invoices:approve"},
		},
	}
)

func text(s string) *string { return &s }

// demo plays the demo's history, from its beginning to now.
type demo struct {
	service *service.Service
	tenant  rolecall.Tenant
	call    service.Call // of the owner
	clock   *rolecall.Time
	roles   []rolecall.RoleID
}

func (d *demo) play(ctx context.Context) error {
	for _, draft := range demoRoles {
		role, err := d.service.CreateRole(ctx, d.call, demoKey(*draft.Key), draft)
		if err != nil {
			return err
		}
		d.roles = append(d.roles, role.Value.ID)
		*d.clock = d.clock.Add(time.Minute)
	}
	for i := range demoPeople {
		next := d.clock.Add(demoStep)
		if err := d.hire(ctx, i); err != nil {
			return fmt.Errorf("person %d: %w", i, err)
		}
		*d.clock = next
	}
	return nil
}

// hire makes a person and lets happen to them what their number says.
func (d *demo) hire(ctx context.Context, i int) error {
	first, last := demoFirst[i%len(demoFirst)], demoLast[i%len(demoLast)]
	email := rolecall.Fold(first+"."+last) + "@demo.example"
	draft := rolecall.UserDraft{
		Email: email, Name: first + " " + last, Department: &demoDepartments[i%len(demoDepartments)],
		ExternalID: text(fmt.Sprintf("E%05d", 10_000+i)),
		Metadata:   map[string]string{"floor": fmt.Sprint(1 + i%5), "locale": []string{"en", "de", "pl", "es"}[i%4]},
	}
	created, err := d.service.CreateUser(ctx, d.call, demoKey(email), draft)
	if err != nil {
		return err
	}
	id := created.Value.ID
	steps := []struct {
		when bool
		do   func() error
	}{
		{i%11 != 5, func() error { return d.signIn(ctx, email, i%6 == 1) }}, // the others are pending
		{i%3 == 0, func() error { return d.assign(ctx, id, i) }},
		{i%10 == 4, func() error { return d.move(ctx, id, i) }},
		{i%17 == 3, func() error { return d.suspend(ctx, id) }},
	}
	for _, step := range steps {
		if !step.when {
			continue
		}
		*d.clock = d.clock.Add(time.Hour)
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// signIn gives a person a password, and uses it.
func (d *demo) signIn(ctx context.Context, email string, use bool) error {
	password := secret.RandomPassword()
	if err := d.service.SetPassword(ctx, demoTenant, email, password); err != nil || !use {
		return err
	}
	attempt := service.Attempt{Tenant: d.tenant, TenantName: demoTenant, Source: "127.0.0.1"}
	_, err := d.service.Login(ctx, attempt, email, password)
	return err
}

// assign gives a person a role: everywhere, in their department, or for a time.
func (d *demo) assign(ctx context.Context, id rolecall.UserID, i int) error {
	var draft rolecall.AssignmentDraft
	switch i / 3 % 4 {
	case 1, 2:
		draft.Departments = []string{demoDepartments[i%len(demoDepartments)]}
	case 3:
		expiry := d.clock.Add(time.Duration(30+i) * 24 * time.Hour)
		draft.ExpiresAt = &expiry
	}
	_, _, err := d.service.AssignRole(ctx, d.call, id, d.roles[i/3%len(d.roles)], draft)
	return err
}

func (d *demo) move(ctx context.Context, id rolecall.UserID, i int) error {
	patch := rolecall.UserPatch{Department: rolecall.Some(&demoDepartments[(i+3)%len(demoDepartments)])}
	_, err := d.service.UpdateUser(ctx, d.call, id, patch, nil)
	return err
}

func (d *demo) suspend(ctx context.Context, id rolecall.UserID) error {
	_, err := d.service.SuspendUser(ctx, d.call, id, "Away for a long time")
	return err
}

// demoKey returns the idempotency key of something that is made once.
func demoKey(name string) service.Key {
	return service.Key{Text: strings.ToLower(name), Fingerprint: secret.Digest([]byte(name))}
}
