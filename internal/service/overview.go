package service

import (
	"context"

	"github.com/rolecall/rolecall"
)

const (
	overviewAssignments = 100
	overviewEvents      = 10
)

// Overview is what there is to know about a user at one glance. A part that the
// caller may not read is marked so and empty.
type Overview struct {
	User                rolecall.User
	Assignments         []rolecall.Assignment // at most 100
	AssignmentCount     int
	Permissions         []rolecall.Grant
	AssignmentsReadable bool // and the permissions that come from them
	SignIn              SignInState
	SignInReadable      bool
	Sessions            SessionSummary
	SessionsReadable    bool
	RecentEvents        []rolecall.Event // newest first
	EventsReadable      bool
	AllowedActions      []string // of the caller, on this user
}

// SignInState says whether the user can sign in, and if not, why.
type SignInState struct {
	CanSignIn   bool
	Reasons     []SignInReason
	LastLoginAt rolecall.Time // zero: never
}

// SignInReason is one obstacle, and the operation that removes it; empty if none
// does.
type SignInReason struct {
	Code      string
	Operation string
}

// SessionSummary counts a user's unexpired sessions.
type SessionSummary struct {
	Count    int
	NewestAt rolecall.Time // zero: there is none
}

// Overview returns the overview of the user, each part as far as the caller may
// read it, or ErrNotFound.
func (s *Service) Overview(ctx context.Context, c Call, id rolecall.UserID) (o Overview, err error) {
	if err := NeedReadUser(c.Principal, id); err != nil {
		return o, err
	}
	err = s.view(ctx, c, func(tx Tx) error {
		if o.User, err = seenUser(tx, c, id); err != nil {
			return err
		}
		self := c.IsSelf(id)
		o.AssignmentsReadable = self || c.Reach(rolecall.RolesRead).Includes(o.User.Department)
		o.SignInReadable = c.Sight(&o.User).Has(rolecall.MemberStatus)
		o.SessionsReadable = self || c.Reach(rolecall.SessionsRead).Includes(o.User.Department)
		o.EventsReadable = self || c.Reach(rolecall.EventsRead).IsEverywhere()
		assignments, err := s.liveAssignments(tx, id)
		if err != nil {
			return err
		}
		o.AllowedActions = s.allowedActions(c, &o.User, assignments)
		if o.AssignmentsReadable {
			o.AssignmentCount, o.Permissions = len(assignments), rolecall.GrantsOf(assignments)
			o.Assignments = assignments[:min(len(assignments), overviewAssignments)]
		}
		if o.SignInReadable || o.SessionsReadable {
			if err := s.signInParts(tx, c, &o); err != nil {
				return err
			}
		}
		if o.EventsReadable {
			o.RecentEvents, err = s.recentEvents(tx, c, id)
			return err
		}
		return nil
	})
	return o, err
}

// recentEvents returns the newest events about the user, with values as far as the
// caller may read them.
func (s *Service) recentEvents(tx Tx, c Call, id rolecall.UserID) ([]rolecall.Event, error) {
	recent, err := tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: overviewEvents})
	if err != nil {
		return nil, err
	}
	return recent.Items, showAllValues(c, recent.Items)
}

func (s *Service) signInParts(tx Tx, c Call, o *Overview) error {
	count, newest, last, err := tx.SessionSummary(o.User.ID, c.Tenant.Settings, s.now())
	if err != nil {
		return err
	}
	if o.SessionsReadable {
		o.Sessions = SessionSummary{count, newest}
	}
	if o.SignInReadable {
		o.SignIn = SignInState{CanSignIn: o.User.Status == rolecall.UserActive, LastLoginAt: last}
		switch o.User.Status {
		case rolecall.UserPending:
			o.SignIn.Reasons = []SignInReason{{Code: "user-pending", Operation: "UsersController_inviteUser"}}
		case rolecall.UserSuspended:
			o.SignIn.Reasons = []SignInReason{{Code: "user-suspended", Operation: "UsersController_resumeUser"}}
		}
	}
	return nil
}

// allowedActions returns what the caller may do to the user, as far as that can
// be told beforehand: a last owner and a concurrent change are found out by
// trying.
func (s *Service) allowedActions(c Call, u *rolecall.User, assignments []rolecall.Assignment) []string {
	actions := []string{}
	for m := range rolecall.AllUserMembers.All() {
		if m.Updatable() && mayPatch(c, u, rolecall.SetOf(m)) == nil {
			actions = append(actions, "update")
			break
		}
	}
	above := s.notAbove(c, assignments) != nil
	if c.reaches(rolecall.UsersDelete, u) == nil && !above {
		actions = append(actions, "delete")
	}
	if c.reaches(rolecall.UsersSuspend, u) == nil {
		switch {
		case u.Status == rolecall.UserSuspended:
			actions = append(actions, "resume")
		case !above:
			actions = append(actions, "suspend")
		}
	}
	if c.reaches(rolecall.UsersInvite, u) == nil && u.Status != rolecall.UserSuspended && mayTakeOver(c, assignments, s.now()) == nil {
		actions = append(actions, "invite")
	}
	if c.reaches(rolecall.RolesAssign, u) == nil {
		actions = append(actions, "assignRole")
	}
	if c.reaches(rolecall.UsersErase, u) == nil && !above {
		actions = append(actions, "erase")
	}
	return actions
}
