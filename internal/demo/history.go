package demo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// history creates the users of the demo and their past changes, in the order of time.
type history struct {
	access    *access.Service
	directory *directory.Service
	signin    *signin.Service
	tenant    rolecall.Tenant
	owner     access.Caller
	clock     *rolecall.Time
	end       rolecall.Time
	actions   []action
	roles     map[string]rolecall.RoleID // ids of the roles by key
	people    map[int]*person            // users by number
	tokens    []secret.Token             // API tokens of the service accounts

	lastMail rolecall.Mail
}

// action is a change of the history and the time at which it happens.
type action struct {
	at rolecall.Time
	do func(context.Context) error
}

const day = 24 * time.Hour

// run schedules all actions, and then executes them in the order of their times.
func (h *history) run(ctx context.Context) error {
	h.roles, h.people = map[string]rolecall.RoleID{}, map[int]*person{}
	h.schedule(h.joined(0).Add(-time.Hour), h.makeRoles)
	for i := range personCount {
		h.plan(i)
	}
	for i := range leavers {
		h.planLeaver(personCount+i, h.end.Add(-time.Duration(1+5*i)*day))
	}
	h.planStaff()
	h.schedule(h.joined(11), h.extendSupport)
	h.schedule(h.end.Add(-90*day), h.makePrograms)
	h.schedule(h.end.Add(-4*time.Minute), h.usePrograms)
	slices.SortStableFunc(h.actions, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	for _, action := range h.actions {
		*h.clock = action.at
		if err := action.do(ctx); err != nil {
			return fmt.Errorf("%v: %w", action.at.Std(), err)
		}
	}
	return nil
}

// schedule adds an action.
func (h *history) schedule(at rolecall.Time, do func(context.Context) error) {
	h.actions = append(h.actions, action{at, do})
}

// joined returns the time at which the user with the number i is created. Most users are
// created 30 hours apart. The last pendingCount users are created in the last days, 7
// hours apart.
func (h *history) joined(i int) rolecall.Time {
	if last := personCount - i; last <= pendingCount {
		return h.end.Add(-time.Duration(last) * 7 * time.Hour)
	}
	return h.end.Add(-age + day + time.Duration(i)*30*time.Hour)
}

// pendingCount is the number of the last users. They have not accepted their invitations.
// The invitations of the first of them have expired.
const pendingCount = 12

// isPending reports whether the user with the number i has never had a password, because
// they have not accepted their invitation or were not invited.
func isPending(i int) bool { return personCount-i <= pendingCount || isForgotten(i) }

// isForgotten reports whether the user with the number i is not invited.
func isForgotten(i int) bool { return i%60 == 35 }

// isSuspended reports whether the user with the number i is suspended at the end of the
// history.
func isSuspended(i int) bool { return i%17 == 3 && staff[i] == "" }

// plan schedules the actions on the user with the number i, and of this user. The number
// decides which actions these are.
func (h *history) plan(i int) {
	joined := h.joined(i)
	ago := h.end.Sub(joined)
	later := func(after time.Duration, when bool, do func(context.Context, int) error) {
		if at := joined.Add(after); when && at < h.end {
			h.schedule(at, func(ctx context.Context) error { return do(ctx, i) })
		}
	}
	later(0, true, h.hire)
	later(time.Duration(3+i%30)*time.Hour, !isPending(i), h.accept)
	later(3*day, i%19 == 5, h.makeSupportAgent)
	later(4*day, i%13 == 6, h.makeApprover)
	later(5*day, i%7 == 2, h.openDirectory)
	later(6*day, i%29 == 12, h.makeAuditor)
	later(9*day, i%10 == 4, h.move)
	if isPending(i) {
		return
	}
	later(ago*2/3, i%17 == 8 && staff[i] == "", h.suspend)
	later(ago*3/4, i%17 == 8 && staff[i] == "", h.resume)
	later(ago*9/10, isSuspended(i), h.suspend)
	if isSuspended(i) {
		return
	}
	today := ago - time.Duration(i/5%10)*time.Hour - time.Duration(30+i%29)*time.Minute
	later(today-time.Minute, i%15 == 7, h.mistype)
	later(today, i%5 == 2 || i%75 == 64, h.signIn)
	later(today+2*time.Minute, i%25 == 12, h.addFactor)
	later(ago-time.Duration(3+i%27)*time.Minute, i%10 == 2, h.work)
	later(ago-time.Duration(2+i%97)*time.Minute, i%25 == 17, h.signIn) // sign-in from a second client
	later(ago-time.Duration(1+i%59)*4*time.Minute, i%22 == 4, h.changeFloor)
	later(ago-time.Duration(1+i%61)*4*time.Minute, i%40 == 10, h.makeSupportAgent)
	later(ago-time.Duration(1+i%53)*4*time.Minute, i%35 == 9, h.closeDirectory)
	later(ago-20*time.Minute, i%75 == 64, h.lockOut)
}

// planLeaver schedules the actions on a user who is deleted at the given time. The last
// of the leavers is also erased.
func (h *history) planLeaver(i int, deleted rolecall.Time) {
	of := func(do func(context.Context, int) error) func(context.Context) error {
		return func(ctx context.Context) error { return do(ctx, i) }
	}
	joined := h.end.Add(-200 * day)
	h.schedule(joined, of(h.hire))
	h.schedule(joined.Add(day), of(h.accept))
	h.schedule(deleted, of(h.dismiss))
	if i == personCount+len(leavers)-1 {
		h.schedule(deleted.Add(day), of(h.erase))
	}
}

// planStaff schedules the assignments of roles to the users of staff.
func (h *history) planStaff() {
	for _, i := range slices.Sorted(maps.Keys(staff)) {
		h.schedule(h.joined(i).Add(2*day), func(ctx context.Context) error { return h.appoint(ctx, i) })
	}
}

// appoint assigns the role in staff to the user with the number i.
func (h *history) appoint(ctx context.Context, i int) error {
	p, draft := h.people[i], rolecall.AssignmentDraft{}
	if staff[i] == departmentLead {
		draft.Departments = []string{*department(i)}
	}
	held, _, err := h.directory.AssignRole(ctx, h.owner, rolecall.HolderOf(p.user.ID), h.roles[staff[i]], draft)
	p.call = access.Caller{Principal: authz.NewPrincipal(h.tenant, p.user, rolecall.Session{}, []rolecall.Assignment{held}, *h.clock), Source: p.source(0)}
	return err
}

// by returns the user with the number i as a caller. It returns the owner until appoint
// has assigned a staff role to this user.
func (h *history) by(i int) access.Caller {
	if p := h.people[i]; p != nil && p.call.Principal != nil {
		return p.call
	}
	return h.owner
}

// byPartner, byAgent and byLead return the caller for a change of the user with the
// number i: a people partner, a support agent, or the lead of the user's department.
func (h *history) byPartner(i int) access.Caller { return h.by([]int{30, 38}[i%2]) }

func (h *history) byAgent(i int) access.Caller { return h.by([]int{25, 33}[i%2]) }

func (h *history) byLead(i int) access.Caller {
	const first = 16
	n := len(departments)
	return h.by(first + (departmentOf(i)-departmentOf(first)+n)%n)
}
