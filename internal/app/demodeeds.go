package app

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// demoPerson is somebody of the demo.
type demoPerson struct {
	number     int
	user       rolecall.User
	invitation secret.Token
	password   string
	call       service.Call // to do things with; zero until the first
	signIn     service.SignIn
	signIns    int
}

// source returns where somebody signs in for the nth time.
func (p *demoPerson) source(n int) string { return demoSources[(p.number+4*n)%len(demoSources)] }

// attempt returns a sign-in of somebody from what they signed in with so far.
func (d *demo) attempt(p *demoPerson) service.Attempt {
	return service.Attempt{
		Tenant: d.tenant, TenantName: demoTenant, Source: p.source(p.signIns),
		Client: demoClients[(p.number+2*p.signIns)%len(demoClients)],
	}
}

// departmentOf returns the place of somebody's department among all: so that no two
// departments have people of the same first names.
func departmentOf(i int) int { return (i + i/len(demoDepartments)) % len(demoDepartments) }

func demoDepartment(i int) *string { return &demoDepartments[departmentOf(i)] }

func demoName(i int) string {
	if i >= demoPeople {
		return demoLeavers[i-demoPeople]
	}
	return demoFirst[i%len(demoFirst)] + " " + demoLast[i%len(demoLast)]
}

// hire makes a person, and invites them unless that was forgotten.
func (d *demo) hire(ctx context.Context, i int) error {
	email := strings.ReplaceAll(rolecall.Fold(demoName(i)), " ", ".") + "@demo.example"
	draft := rolecall.UserDraft{
		Email: email, Name: demoName(i), Department: demoDepartment(i), Invite: !isForgotten(i),
		ExternalID: text(fmt.Sprintf("E%05d", 10_000+i)),
		Metadata:   map[string]string{"floor": fmt.Sprint(1 + i%5), "locale": []string{"en", "de", "pl", "es"}[i%4]},
	}
	created, err := d.service.CreateUser(ctx, d.byPartner(i), demoKey(email), draft)
	if err != nil {
		return err
	}
	p := &demoPerson{number: i, user: created.Value}
	d.people[i] = p
	if draft.Invite {
		p.invitation = secret.Token(d.lastMail.Token)
	}
	return nil
}

// accept comes in by the invitation.
func (d *demo) accept(ctx context.Context, i int) (err error) {
	p := d.people[i]
	p.password = secret.RandomPassword()
	p.signIn, err = d.service.AcceptInvitation(ctx, d.attempt(p), p.invitation, p.password)
	return err
}

func (d *demo) signIn(ctx context.Context, i int) (err error) {
	p := d.people[i]
	p.signIns++
	p.signIn, err = d.service.Login(ctx, d.attempt(p), p.user.Email, p.password)
	return err
}

// work uses the session of the last sign-in.
func (d *demo) work(ctx context.Context, i int) error {
	_, err := d.service.Authenticate(ctx, d.tenant, []secret.Token{d.people[i].signIn.Token}, true)
	return err
}

// mistype gives a wrong password twice.
func (d *demo) mistype(ctx context.Context, i int) error {
	return d.fail(ctx, i, 2, d.people[i].source(0))
}

// lockOut gives so many wrong passwords, from several places, that the account is
// closed to browsers that it is not known by.
func (d *demo) lockOut(ctx context.Context, i int) error {
	return d.fail(ctx, i, 10, demoSources[:10]...)
}

func (d *demo) fail(ctx context.Context, i, times int, sources ...string) error {
	p := d.people[i]
	for n := range times * len(sources) {
		attempt := d.attempt(p)
		attempt.Source = sources[n/times]
		if _, err := d.service.Login(ctx, attempt, p.user.Email, "not the password"); !errors.Is(err, rolecall.ErrWrongCredentials) {
			return fmt.Errorf("a wrong password of %s: %w", p.user.Email, err)
		}
	}
	return d.service.Flush(ctx)
}

// addFactor gets somebody who has just signed in an authenticator app.
func (d *demo) addFactor(ctx context.Context, i int) error {
	p := d.people[i]
	call := service.Call{Principal: p.signIn.Principal, Source: p.signIn.Principal.Session.Source}
	made, err := d.service.BeginTOTP(ctx, call)
	if err != nil {
		return err
	}
	app, err := base32.StdEncoding.DecodeString(made.Secret)
	if err != nil {
		return err
	}
	_, err = d.service.ConfirmTOTP(ctx, call, secret.TOTP(app).Code(d.clock.Std().Unix()/30))
	return err
}

// makeSupportAgent has the lead make somebody help in their department.
func (d *demo) makeSupportAgent(ctx context.Context, i int) error {
	return d.delegate(ctx, i, supportAgent, rolecall.AssignmentDraft{Departments: []string{*demoDepartment(i)}})
}

// makeApprover has the lead let somebody approve in their department for a while.
func (d *demo) makeApprover(ctx context.Context, i int) error {
	until := d.end.Add([]time.Duration{26 * time.Hour, 5 * day, 12 * day, 40 * day, 200 * day}[i%5])
	if i%4 == 2 { // the end comes soon, or has come already
		until = d.clock.Add(60 * day)
	}
	return d.delegate(ctx, i, invoiceApprover, rolecall.AssignmentDraft{Departments: []string{*demoDepartment(i)}, ExpiresAt: &until})
}

func (d *demo) openDirectory(ctx context.Context, i int) error {
	return d.assign(ctx, d.byPartner(i), i, directory, rolecall.AssignmentDraft{})
}

// makeAuditor lets somebody look at everything for a quarter of a year.
func (d *demo) makeAuditor(ctx context.Context, i int) error {
	until := d.clock.Add(90 * day)
	return d.assign(ctx, d.owner, i, auditor, rolecall.AssignmentDraft{ExpiresAt: &until})
}

// delegate has the lead of the department that somebody came to give them a role; the
// owner where nobody may give it to themselves.
func (d *demo) delegate(ctx context.Context, i int, role string, draft rolecall.AssignmentDraft) error {
	by := d.byLead(i)
	if by.User.ID == d.people[i].user.ID {
		by = d.owner
	}
	return d.assign(ctx, by, i, role, draft)
}

func (d *demo) assign(ctx context.Context, by service.Call, i int, role string, draft rolecall.AssignmentDraft) error {
	_, _, err := d.service.AssignRole(ctx, by, d.people[i].user.ID, d.roles[role], draft)
	return err
}

func (d *demo) move(ctx context.Context, i int) error {
	_, err := d.service.UpdateUser(ctx, d.byPartner(i), d.people[i].user.ID, rolecall.UserPatch{Department: rolecall.Some(demoDepartment(i + 3))}, nil)
	return err
}

func (d *demo) changeFloor(ctx context.Context, i int) error {
	patch := rolecall.UserPatch{Metadata: rolecall.Some(map[string]*string{"floor": text("6")})}
	_, err := d.service.UpdateUser(ctx, d.byPartner(i), d.people[i].user.ID, patch, nil)
	return err
}

// closeDirectory takes a role that somebody was given before.
func (d *demo) closeDirectory(ctx context.Context, i int) error {
	return d.service.UnassignRole(ctx, d.byPartner(i), d.people[i].user.ID, d.roles[directory])
}

func (d *demo) suspend(ctx context.Context, i int) error {
	_, err := d.service.SuspendUser(ctx, d.byAgent(i), d.people[i].user.ID, demoReasons[i%len(demoReasons)])
	return err
}

func (d *demo) resume(ctx context.Context, i int) error {
	_, err := d.service.ResumeUser(ctx, d.byAgent(i), d.people[i].user.ID, "Back at work")
	return err
}

func (d *demo) dismiss(ctx context.Context, i int) error {
	return d.service.DeleteUser(ctx, d.byPartner(i), d.people[i].user.ID, nil)
}

func (d *demo) erase(ctx context.Context, i int) error {
	return d.service.EraseUser(ctx, d.by(demoOfficer), d.people[i].user.ID)
}

func (d *demo) makeRoles(ctx context.Context) error {
	for _, draft := range demoRoles {
		if _, err := d.service.CreateRole(ctx, d.owner, demoKey(*draft.Key), draft); err != nil {
			return err
		}
		*d.clock = d.clock.Add(time.Minute)
	}
	all, err := d.service.Roles(ctx, d.owner, service.RoleListing{Limit: rolecall.MaxLimit})
	for _, role := range all.Items {
		d.roles[*role.Key] = role.ID
	}
	return err
}

// extendSupport lets support agents see sessions and end them.
func (d *demo) extendSupport(ctx context.Context) error {
	_, err := d.service.UpdateRole(ctx, d.owner, d.roles[supportAgent], rolecall.RolePatch{Permissions: rolecall.Some(supports)}, nil)
	return err
}

// makePrograms makes service accounts with a token each. One of them came to an end.
func (d *demo) makePrograms(ctx context.Context) error {
	for _, program := range demoPrograms {
		account, err := d.service.CreateServiceAccount(ctx, d.owner, demoKey(program.Name), program.ServiceAccountDraft)
		if err != nil {
			return err
		}
		id := account.Value.ID
		if _, _, err := d.service.AssignServiceAccountRole(ctx, d.owner, id, d.roles[program.role], rolecall.AssignmentDraft{}); err != nil {
			return err
		}
		draft := rolecall.APITokenDraft{Name: program.token, Permissions: program.permissions, ExpiresAt: d.end.Add(program.left)}
		token, err := d.service.CreateServiceAccountToken(ctx, d.owner, demoKey(program.token), id, draft)
		if err != nil {
			return err
		}
		if program.endedFor != "" {
			*d.clock = d.clock.Add(day)
			if _, err := d.service.SuspendServiceAccount(ctx, d.owner, id, program.endedFor); err != nil {
				return err
			}
			continue
		}
		d.tokens = append(d.tokens, token.Value.Secret)
	}
	return nil
}

// usePrograms lets those that are at work ask something.
func (d *demo) usePrograms(ctx context.Context) error {
	for i, token := range d.tokens {
		if _, err := d.service.AuthenticateBearer(ctx, d.tenant, string(token), demoSources[i]); err != nil {
			return err
		}
	}
	return nil
}

// demoKey returns the idempotency key of something that is made once.
func demoKey(name string) service.Key {
	return service.Key{Text: strings.ToLower(name), Fingerprint: secret.Digest([]byte(name))}
}
