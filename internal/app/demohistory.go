package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// demo plays the demo's history, from its beginning to now.
type demo struct {
	service *service.Service
	tenant  rolecall.Tenant
	owner   service.Call
	clock   *rolecall.Time
	end     rolecall.Time
	deeds   []deed
	roles   map[string]rolecall.RoleID // by key
	people  map[int]*demoPerson        // by number
	tokens  []secret.Token             // of programs

	lastMail rolecall.Mail
}

// deed is what is done at a moment.
type deed struct {
	at rolecall.Time
	do func(context.Context) error
}

const day = 24 * time.Hour

// play plans what is done, and does it in the order of time.
func (d *demo) play(ctx context.Context) error {
	d.roles, d.people = map[string]rolecall.RoleID{}, map[int]*demoPerson{}
	d.at(d.joined(0).Add(-time.Hour), d.makeRoles)
	for i := range demoPeople {
		d.plan(i)
	}
	for i := range demoLeavers {
		d.planLeaver(demoPeople+i, d.end.Add(-time.Duration(1+5*i)*day))
	}
	d.planStaff()
	d.at(d.joined(11), d.extendSupport)
	d.at(d.end.Add(-90*day), d.makePrograms)
	d.at(d.end.Add(-4*time.Minute), d.usePrograms)
	slices.SortStableFunc(d.deeds, func(a, b deed) int { return cmp.Compare(a.at, b.at) })
	for _, deed := range d.deeds {
		*d.clock = deed.at
		if err := deed.do(ctx); err != nil {
			return fmt.Errorf("%v: %w", deed.at.Std(), err)
		}
	}
	return nil
}

// at plans a deed.
func (d *demo) at(moment rolecall.Time, do func(context.Context) error) {
	d.deeds = append(d.deeds, deed{moment, do})
}

// joined returns when somebody came: one after the other, the last few in the last
// days.
func (d *demo) joined(i int) rolecall.Time {
	if last := demoPeople - i; last <= demoInvited {
		return d.end.Add(-time.Duration(last) * 7 * time.Hour)
	}
	return d.end.Add(-demoAge + day + time.Duration(i)*30*time.Hour)
}

// demoInvited is how many have not yet accepted their invitations. Those of the first
// of them are over.
const demoInvited = 12

// isPending reports whether somebody has not come in yet.
func isPending(i int) bool { return demoPeople-i <= demoInvited || isForgotten(i) }

// isForgotten reports whether nobody has invited somebody.
func isForgotten(i int) bool { return i%60 == 35 }

// isSuspended reports whether somebody is kept from signing in.
func isSuspended(i int) bool { return i%17 == 3 && demoStaff[i] == "" }

// plan plans what happens to somebody, as their number says.
func (d *demo) plan(i int) {
	joined := d.joined(i)
	ago := d.end.Sub(joined)
	later := func(after time.Duration, when bool, do func(context.Context, int) error) {
		if at := joined.Add(after); when && at < d.end {
			d.at(at, func(ctx context.Context) error { return do(ctx, i) })
		}
	}
	later(0, true, d.hire)
	later(time.Duration(3+i%30)*time.Hour, !isPending(i), d.accept)
	later(3*day, i%19 == 5, d.makeSupportAgent)
	later(4*day, i%13 == 6, d.makeApprover)
	later(5*day, i%7 == 2, d.openDirectory)
	later(6*day, i%29 == 12, d.makeAuditor)
	later(9*day, i%10 == 4, d.move)
	if isPending(i) {
		return
	}
	later(ago*2/3, i%17 == 8 && demoStaff[i] == "", d.suspend)
	later(ago*3/4, i%17 == 8 && demoStaff[i] == "", d.resume)
	later(ago*9/10, isSuspended(i), d.suspend)
	if isSuspended(i) {
		return
	}
	today := ago - time.Duration(i/5%10)*time.Hour - time.Duration(30+i%29)*time.Minute
	later(today-time.Minute, i%15 == 7, d.mistype)
	later(today, i%5 == 2 || i%75 == 64, d.signIn)
	later(today+2*time.Minute, i%25 == 12, d.addFactor)
	later(ago-time.Duration(3+i%27)*time.Minute, i%10 == 2, d.work)
	later(ago-time.Duration(2+i%97)*time.Minute, i%25 == 17, d.signIn) // by a second client
	later(ago-time.Duration(1+i%59)*4*time.Minute, i%22 == 4, d.changeFloor)
	later(ago-time.Duration(1+i%61)*4*time.Minute, i%40 == 10, d.makeSupportAgent)
	later(ago-time.Duration(1+i%53)*4*time.Minute, i%35 == 9, d.closeDirectory)
	later(ago-20*time.Minute, i%75 == 64, d.lockOut)
}

// planLeaver plans for somebody who is deleted then; the last of them is erased besides.
func (d *demo) planLeaver(i int, deleted rolecall.Time) {
	of := func(do func(context.Context, int) error) func(context.Context) error {
		return func(ctx context.Context) error { return do(ctx, i) }
	}
	joined := d.end.Add(-200 * day)
	d.at(joined, of(d.hire))
	d.at(joined.Add(day), of(d.accept))
	d.at(deleted, of(d.dismiss))
	if i == demoPeople+len(demoLeavers)-1 {
		d.at(deleted.Add(day), of(d.erase))
	}
}

// planStaff plans that those who do things may.
func (d *demo) planStaff() {
	for _, i := range slices.Sorted(maps.Keys(demoStaff)) {
		d.at(d.joined(i).Add(2*day), func(ctx context.Context) error { return d.appoint(ctx, i) })
	}
}

// appoint gives one of the staff their role.
func (d *demo) appoint(ctx context.Context, i int) error {
	p, draft := d.people[i], rolecall.AssignmentDraft{}
	if demoStaff[i] == departmentLead {
		draft.Departments = []string{*demoDepartment(i)}
	}
	held, _, err := d.service.AssignRole(ctx, d.owner, p.user.ID, d.roles[demoStaff[i]], draft)
	p.call = service.Call{Principal: rolecall.NewPrincipal(d.tenant, p.user, rolecall.Session{}, []rolecall.Assignment{held}, *d.clock), Source: p.source(0)}
	return err
}

// by returns a call of one of the staff, of the owner as long as they are not there.
func (d *demo) by(i int) service.Call {
	if p := d.people[i]; p != nil && p.call.Principal != nil {
		return p.call
	}
	return d.owner
}

// byPartner, byAgent and byLead return who sees to somebody.
func (d *demo) byPartner(i int) service.Call { return d.by([]int{30, 38}[i%2]) }

func (d *demo) byAgent(i int) service.Call { return d.by([]int{25, 33}[i%2]) }

func (d *demo) byLead(i int) service.Call {
	const first = 16
	n := len(demoDepartments)
	return d.by(first + (departmentOf(i)-departmentOf(first)+n)%n)
}
