package demo

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// person is a user of the demo, except the owner.
type person struct {
	number     int
	user       rolecall.User
	invitation secret.Token
	password   string
	call       access.Caller // the user as a caller; zero until appoint has assigned a staff role to the user
	signIn     signin.SignIn
	signIns    int
}

// source returns the client address of the user's nth sign-in.
func (p *person) source(n int) string { return sources[(p.number+4*n)%len(sources)] }

// attempt returns the request of the user's next sign-in.
func (h *history) attempt(p *person) access.Anonymous {
	return access.Anonymous{
		Tenant: h.tenant, TenantName: Tenant, Source: p.source(p.signIns),
		Client: clients[(p.number+2*p.signIns)%len(clients)],
	}
}

// departmentOf returns the index of the department of the user with the number i. It puts
// users with the same first name into four different departments, and not all into one.
func departmentOf(i int) int { return (i + i/len(departments)) % len(departments) }

func department(i int) *string { return &departments[departmentOf(i)] }

func nameOf(i int) string {
	if i >= personCount {
		return leavers[i-personCount]
	}
	return firstNames[i%len(firstNames)] + " " + lastNames[i%len(lastNames)]
}

// hire creates the user with the number i. It also invites the user, unless
// isForgotten(i) is true.
func (h *history) hire(ctx context.Context, i int) error {
	email := strings.ReplaceAll(rolecall.Fold(nameOf(i)), " ", ".") + "@demo.example"
	draft := rolecall.UserDraft{
		Email: email, Name: nameOf(i), Department: department(i), Invite: !isForgotten(i),
		ExternalID: text(fmt.Sprintf("E%05d", 10_000+i)),
		Metadata:   map[string]string{"floor": fmt.Sprint(1 + i%5), "locale": []string{"en", "de", "pl", "es"}[i%4]},
	}
	created, err := h.directory.CreateUser(ctx, h.byPartner(i), keyOf(email), draft)
	if err != nil {
		return err
	}
	p := &person{number: i, user: created.Value}
	h.people[i] = p
	if draft.Invite {
		p.invitation = secret.Token(h.lastMail.Token)
	}
	return nil
}

// accept accepts the invitation of the user, with a random password.
func (h *history) accept(ctx context.Context, i int) (err error) {
	p := h.people[i]
	p.password = secret.RandomPassword()
	p.signIn, err = h.signin.AcceptInvitation(ctx, h.attempt(p), p.invitation, p.password)
	return err
}

func (h *history) signIn(ctx context.Context, i int) (err error) {
	p := h.people[i]
	p.signIns++
	p.signIn, err = h.signin.Login(ctx, h.attempt(p), p.user.Email, p.password)
	return err
}

// work sends a request in the session of the user's last sign-in.
func (h *history) work(ctx context.Context, i int) error {
	_, err := h.signin.Authenticate(ctx, h.tenant, []secret.Token{h.people[i].signIn.Token}, true)
	return err
}

// mistype tries to sign in twice with a wrong password.
func (h *history) mistype(ctx context.Context, i int) error {
	return h.fail(ctx, i, 2, h.people[i].source(0))
}

// lockOut tries to sign in with wrong passwords from several sources, until the account
// has reached its limit. After that, the user can sign in only from known browsers.
func (h *history) lockOut(ctx context.Context, i int) error {
	return h.fail(ctx, i, 10, sources[:10]...)
}

func (h *history) fail(ctx context.Context, i, times int, sources ...string) error {
	p := h.people[i]
	for n := range times * len(sources) {
		attempt := h.attempt(p)
		attempt.Source = sources[n/times]
		if _, err := h.signin.Login(ctx, attempt, p.user.Email, "not the password"); !errors.Is(err, rolecall.ErrWrongCredentials) {
			return fmt.Errorf("sign in with a wrong password as %s: %w", p.user.Email, err)
		}
	}
	return h.access.Refusals.Flush(ctx)
}

// addFactor enrolls an authenticator app for a user who has signed in shortly before.
func (h *history) addFactor(ctx context.Context, i int) error {
	p := h.people[i]
	call := access.Caller{Principal: p.signIn.Principal, Source: p.signIn.Principal.Session.Source}
	made, err := h.signin.BeginTOTP(ctx, call)
	if err != nil {
		return err
	}
	app, err := base32.StdEncoding.DecodeString(made.Secret)
	if err != nil {
		return err
	}
	_, err = h.signin.ConfirmTOTP(ctx, call, secret.TOTP(app).Code(h.clock.Std().Unix()/30))
	return err
}

// makeSupportAgent assigns the role of a support agent within the user's department. The
// lead of the department assigns it.
func (h *history) makeSupportAgent(ctx context.Context, i int) error {
	return h.delegate(ctx, i, supportAgent, rolecall.AssignmentDraft{Departments: []string{*department(i)}})
}

// makeApprover assigns the role of an invoice approver within the user's department for a
// limited time. The lead of the department assigns it.
func (h *history) makeApprover(ctx context.Context, i int) error {
	until := h.end.Add([]time.Duration{26 * time.Hour, 5 * day, 12 * day, 40 * day, 200 * day}[i%5])
	if i%4 == 2 { // the assignment expires soon or has expired
		until = h.clock.Add(60 * day)
	}
	return h.delegate(ctx, i, invoiceApprover, rolecall.AssignmentDraft{Departments: []string{*department(i)}, ExpiresAt: &until})
}

func (h *history) openDirectory(ctx context.Context, i int) error {
	return h.assign(ctx, h.byPartner(i), i, directoryReader, rolecall.AssignmentDraft{})
}

// makeAuditor assigns the role of an auditor for 90 days.
func (h *history) makeAuditor(ctx context.Context, i int) error {
	until := h.clock.Add(90 * day)
	return h.assign(ctx, h.owner, i, auditor, rolecall.AssignmentDraft{ExpiresAt: &until})
}

// delegate lets the lead of the user's department assign the role to the user. If the
// user is the lead, the owner assigns the role, because users cannot assign roles to
// themselves.
func (h *history) delegate(ctx context.Context, i int, role string, draft rolecall.AssignmentDraft) error {
	by := h.byLead(i)
	if by.User.ID == h.people[i].user.ID {
		by = h.owner
	}
	return h.assign(ctx, by, i, role, draft)
}

func (h *history) assign(ctx context.Context, by access.Caller, i int, role string, draft rolecall.AssignmentDraft) error {
	_, _, err := h.directory.AssignRole(ctx, by, rolecall.HolderOf(h.people[i].user.ID), h.roles[role], draft)
	return err
}

func (h *history) move(ctx context.Context, i int) error {
	_, err := h.directory.UpdateUser(ctx, h.byPartner(i), h.people[i].user.ID, rolecall.UserPatch{Department: rolecall.Some(department(i + 3))}, nil)
	return err
}

func (h *history) changeFloor(ctx context.Context, i int) error {
	patch := rolecall.UserPatch{Metadata: rolecall.Some(map[string]*string{"floor": text("6")})}
	_, err := h.directory.UpdateUser(ctx, h.byPartner(i), h.people[i].user.ID, patch, nil)
	return err
}

// closeDirectory removes the role that openDirectory has assigned to the user.
func (h *history) closeDirectory(ctx context.Context, i int) error {
	return h.directory.UnassignRole(ctx, h.byPartner(i), rolecall.HolderOf(h.people[i].user.ID), h.roles[directoryReader])
}

func (h *history) suspend(ctx context.Context, i int) error {
	_, err := h.directory.SuspendUser(ctx, h.byAgent(i), h.people[i].user.ID, reasons[i%len(reasons)])
	return err
}

func (h *history) resume(ctx context.Context, i int) error {
	_, err := h.directory.ResumeUser(ctx, h.byAgent(i), h.people[i].user.ID, "Back at work")
	return err
}

func (h *history) dismiss(ctx context.Context, i int) error {
	return h.directory.DeleteUser(ctx, h.byPartner(i), h.people[i].user.ID, nil)
}

func (h *history) erase(ctx context.Context, i int) error {
	return h.directory.EraseUser(ctx, h.by(officer), h.people[i].user.ID, "Requested by the person")
}

func (h *history) makeRoles(ctx context.Context) error {
	for _, draft := range roleDrafts {
		if _, err := h.directory.CreateRole(ctx, h.owner, keyOf(*draft.Key), draft); err != nil {
			return err
		}
		*h.clock = h.clock.Add(time.Minute)
	}
	all, err := h.directory.Roles(ctx, h.owner, directory.RoleListing{Limit: rolecall.MaxLimit})
	for _, role := range all.Items {
		h.roles[*role.Key] = role.ID
	}
	return err
}

// extendSupport adds the permissions to end sessions and to read events to the role of
// support agents.
func (h *history) extendSupport(ctx context.Context) error {
	_, err := h.directory.UpdateRole(ctx, h.owner, h.roles[supportAgent], rolecall.RolePatch{Permissions: rolecall.Some(supports)}, nil)
	return err
}

// makePrograms creates the service accounts, with one API token each. It suspends one of
// them.
func (h *history) makePrograms(ctx context.Context) error {
	for _, program := range programs {
		account, err := h.directory.CreateServiceAccount(ctx, h.owner, keyOf(program.Name), program.ServiceAccountDraft)
		if err != nil {
			return err
		}
		id := account.Value.ID
		if _, _, err := h.directory.AssignRole(ctx, h.owner, rolecall.HolderOf(id), h.roles[program.role], rolecall.AssignmentDraft{}); err != nil {
			return err
		}
		draft := rolecall.APITokenDraft{Name: program.token, Permissions: program.permissions, ExpiresAt: h.end.Add(program.left)}
		token, err := h.directory.CreateToken(ctx, h.owner, keyOf(program.token), rolecall.HolderOf(id), draft)
		if err != nil {
			return err
		}
		if program.endedFor != "" {
			*h.clock = h.clock.Add(day)
			if _, err := h.directory.SuspendServiceAccount(ctx, h.owner, id, program.endedFor); err != nil {
				return err
			}
			continue
		}
		h.tokens = append(h.tokens, token.Value.Secret)
	}
	return nil
}

// usePrograms sends a request with the API token of each active service account.
func (h *history) usePrograms(ctx context.Context) error {
	for i, token := range h.tokens {
		if _, err := h.signin.AuthenticateBearer(ctx, h.tenant, string(token), sources[i]); err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns the idempotency key of the request that creates the object with the name.
// No two requests of the demo use the same key.
func keyOf(name string) idempotency.Key {
	return idempotency.Key{Text: strings.ToLower(name), Fingerprint: secret.Digest([]byte(name))}
}
