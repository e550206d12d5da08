package directory

import (
	"context"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/store"
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
	Expired             []rolecall.Assignment // at most 100, the last expired first
	Permissions         []authz.Grant
	AssignmentsReadable bool // and the permissions that come from them
	SignIn              SignInState
	Invitation          rolecall.Invitation // zero: there is none
	SignInReadable      bool                // and the invitation
	Sessions            SessionSummary
	Tokens              int  // API tokens that are not over
	SessionsReadable    bool // and the tokens
	Factors             FactorSummary
	FactorsReadable     bool
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
	Until     rolecall.Time // when the obstacle ends by itself; zero: it does not
	Covers    string        // which sign-ins are refused; empty: all
	Source    string        // from which address or network; empty if the caller may not read it
}

// What a limit on failed attempts covers.
const (
	coversSource       = "source"
	coversUnknown      = "unknown-browsers"
	coversSecondFactor = "second-factor"
)

// SessionSummary counts a user's unexpired sessions.
type SessionSummary struct {
	Count    int
	NewestAt rolecall.Time // zero: there is none
}

// FactorSummary counts what a user can show beside the password.
type FactorSummary struct {
	TOTP          bool
	Passkeys      int
	RecoveryCodes int // that are left
}

// Overview returns the overview of the user, each part as far as the caller may
// read it, or ErrNotFound.
func (s *Service) Overview(ctx context.Context, c access.Caller, id rolecall.UserID) (o Overview, err error) {
	if err := authz.ReadUser.AuthorizeFor(c.Principal, id); err != nil {
		return o, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if o.User, err = access.VisibleUser(tx, c, id); err != nil {
			return err
		}
		assignments, expired, err := s.assignments(tx, rolecall.HolderOf(id))
		if err != nil {
			return err
		}
		isReadable := func(policy *authz.Policy) bool {
			return policy.AuthorizeUser(c.Principal, &o.User, assignments, s.now()) == nil
		}
		o.AssignmentsReadable = isReadable(authz.ReadUserRoles)
		o.SignInReadable = c.Sight(&o.User).Has(rolecall.MemberStatus)
		o.SessionsReadable = isReadable(authz.ReadSessions)
		o.FactorsReadable = isReadable(authz.ReadFactors)
		o.EventsReadable = isReadable(authz.ReadUserEvents)
		o.AllowedActions = authz.UserActions(c.Principal, &o.User, assignments, s.now())
		if o.AssignmentsReadable {
			o.AssignmentCount, o.Permissions = len(assignments), authz.GrantsOf(assignments)
			o.Assignments = assignments[:min(len(assignments), overviewAssignments)]
			o.Expired = expired[:min(len(expired), overviewAssignments)]
		}
		if o.SignInReadable || o.SessionsReadable || o.FactorsReadable {
			if err := s.signInParts(tx, c, &o, assignments); err != nil {
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

// recentEvents returns the newest events about the user, as far as the caller may read
// them.
func (s *Service) recentEvents(tx *store.Tx, c access.Caller, id rolecall.UserID) ([]rolecall.Event, error) {
	recent, err := tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: overviewEvents})
	if err != nil {
		return nil, err
	}
	return recent.Items, authz.RedactEvents(c.Principal, recent.Items)
}

// signInParts fills in what hangs on how the user signs in, by one statement.
func (s *Service) signInParts(tx *store.Tx, c access.Caller, o *Overview, assignments []rolecall.Assignment) error {
	account, factor := s.limiter.Account(c.Tenant.Name, o.User.EmailKey()), s.limiter.SecondFactor(o.User.ID)
	summary, err := tx.SignInSummary(o.User.ID, account.Key, factor.Key, c.Tenant.Settings.For(assignments, s.now()), s.now())
	if err != nil {
		return err
	}
	if o.SessionsReadable {
		o.Sessions, o.Tokens = SessionSummary{summary.Sessions, summary.NewestAt}, summary.Tokens
	}
	if o.FactorsReadable {
		o.Factors = FactorSummary{summary.HasTOTP, summary.Passkeys, summary.RecoveryCodes}
	}
	if o.SignInReadable {
		o.Invitation = summary.Invited
		reasons, err := s.obstacles(tx, c, &o.User, assignments, &summary)
		if err != nil {
			return err
		}
		limited, err := s.limitedAttempts(tx, c, o)
		if err != nil {
			return err
		}
		reasons = append(reasons, limited...)
		o.SignIn = SignInState{CanSignIn: len(reasons) == 0, Reasons: reasons, LastLoginAt: summary.LastLoginAt}
	}
	return nil
}

// obstacles returns why the user cannot sign in, and what mends it.
func (s *Service) obstacles(tx *store.Tx, c access.Caller, u *rolecall.User, assignments []rolecall.Assignment, summary *rolecall.SignInSummary) ([]SignInReason, error) {
	const (
		invite       = "UsersController_inviteUser"
		resetFactors = "UsersController_resetFactors"
		// A new password clears the failed sign-ins, and not the failed second factors.
		sendReset = "UsersController_sendPasswordReset"
	)
	var reasons []SignInReason
	add := func(hinders bool, code, operation string) {
		if hinders {
			reasons = append(reasons, SignInReason{Code: code, Operation: operation})
		}
	}
	now, settings, invited := s.now(), &c.Tenant.Settings, &summary.Invited
	active, pending := u.Status == rolecall.UserActive, u.Status == rolecall.UserPending
	add(c.Tenant.Status == rolecall.TenantSuspended, "tenant-suspended", "OperatorController_resumeTenant")
	add(u.Status == rolecall.UserSuspended, "user-suspended", "UsersController_resumeUser")
	add(pending, "user-pending", invite)
	if pending && invited.Live(now) {
		may, err := s.access.MayStill(tx, c.Tenant, authz.InviteUser, invited.CreatedBy, u.ID)
		if err != nil {
			return nil, err
		}
		add(!may, "invitation-void", invite)
	}
	add(pending && invited.ExpiresAt != 0 && !invited.Live(now), "invitation-expired", invite)
	add(active && !summary.HasPassword && summary.Passkeys == 0, "no-password", sendReset)
	demanded := settings.SecondFactor.Demands(assignments, now) && !summary.HasTOTP && summary.Passkeys == 0
	add(active && demanded, "second-factor-enrolment-required", "AuthsController_beginEnrolment")
	unusable := s.access.Passkeys == nil && summary.Passkeys > 0 && !summary.HasTOTP && summary.RecoveryCodes == 0
	add(active && unusable, "second-factor-unusable", resetFactors)
	return reasons, nil
}

// failuresRead is how many recent failed sign-ins are looked at for their sources.
const failuresRead = 20

// limitedAttempts returns which sign-ins of the user are refused because too many
// failed, and until when. The counters are keyed by hashes, so the sources to look for
// come from the recent failed sign-ins. A known browser has a counter of its own, which
// cannot be found this way.
func (s *Service) limitedAttempts(tx *store.Tx, c access.Caller, o *Overview) (reasons []SignInReason, err error) {
	const sendReset = "UsersController_sendPasswordReset"
	if o.User.Status != rolecall.UserActive {
		return nil, nil
	}
	now, email := s.now(), o.User.EmailKey()
	buckets := []rolecall.Bucket{s.limiter.Account(c.Tenant.Name, email), s.limiter.SecondFactor(o.User.ID)}
	found := []SignInReason{{Operation: sendReset, Covers: coversUnknown}, {Covers: coversSecondFactor}}
	failed, err := tx.Events(rolecall.EventQuery{Type: rolecall.EventSignInFailed, Subject: rolecall.AnyID(o.User.ID), From: now.Add(-15 * time.Minute), Limit: failuresRead})
	if err != nil {
		return nil, err
	}
	var seen []string
	for i := range failed.Items {
		network := ratelimit.NetworkOf(failed.Items[i].Source)
		if slices.Contains(seen, network) {
			continue
		}
		seen = append(seen, network)
		ofUser := s.limiter.SignIn(c.Tenant.Name, email, failed.Items[i].Source)
		buckets = append(buckets, ofUser[0], ofUser[2]) // of the account and the source, and of the source
		found = append(found, SignInReason{Operation: sendReset, Covers: coversSource, Source: network}, SignInReason{Covers: coversSource, Source: network})
	}
	states, err := tx.Attempts(buckets, now)
	for i, state := range states {
		r := found[i]
		if state.Count < buckets[i].Limit {
			continue
		}
		if !o.EventsReadable {
			r.Source = ""
		}
		r.Code, r.Until = rolecall.ErrTooManyAttempts.Code, state.EndsAt
		reasons = append(reasons, r)
	}
	return reasons, err
}
