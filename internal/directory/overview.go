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

// Overview summarizes a user. If the caller may not read a part, the part is empty and its
// Readable member is false.
type Overview struct {
	User                rolecall.User
	Assignments         []rolecall.Assignment // at most 100, and at most 256 KiB
	AssignmentCount     int
	Expired             []rolecall.Assignment // likewise, the most recently expired first
	Permissions         []authz.Grant
	MorePermissions     bool // Permissions lacks some, as the result of authz.GrantsOf
	AssignmentsReadable bool // applies to Permissions too
	SignIn              SignInState
	Invitation          rolecall.Invitation // zero if the user has no invitation
	SignInReadable      bool                // applies to Invitation too
	Sessions            SessionSummary
	Tokens              int  // number of unexpired API tokens
	SessionsReadable    bool // applies to Tokens too
	Factors             FactorSummary
	FactorsReadable     bool
	RecentEvents        []rolecall.Event // newest first
	EventsReadable      bool
	AllowedActions      []string // operations that the caller may perform on this user
}

// SignInState says whether the user can sign in. If not, it has the reasons.
type SignInState struct {
	CanSignIn   bool
	Reasons     []SignInReason
	LastLoginAt rolecall.Time // zero if the user never signed in
}

// SignInReason is one reason why sign-in is refused. Operation is the operation that
// removes the reason. It is empty if no operation can remove the reason.
type SignInReason struct {
	Code      string
	Operation string
	Until     rolecall.Time // when the reason ends without an operation; zero if it does not
	Covers    string        // which sign-ins are refused; empty: all sign-ins
	Source    string        // the network of the failed attempts, for coversSource; empty if the caller may not read it
}

// The values of SignInReason.Covers: sign-ins from the network in Source, sign-ins from
// unknown browsers, and attempts to verify a second factor.
const (
	coversSource       = "source"
	coversUnknown      = "unknown-browsers"
	coversSecondFactor = "second-factor"
)

// SessionSummary counts a user's unexpired sessions.
type SessionSummary struct {
	Count    int
	NewestAt rolecall.Time // zero without a session
}

// FactorSummary counts the second factors of a user.
type FactorSummary struct {
	TOTP          bool
	Passkeys      int
	RecoveryCodes int // number of unused codes
}

// Overview returns the overview of the user with the parts that the caller may read.
// Overview can fail with ErrNotFound or ErrPermissionDenied.
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
		o.SignInReadable = c.ReadableMembers(&o.User).Has(rolecall.MemberStatus)
		o.SessionsReadable = isReadable(authz.ReadSessions)
		o.FactorsReadable = isReadable(authz.ReadFactors)
		o.EventsReadable = isReadable(authz.ReadUserEvents)
		o.AllowedActions = authz.UserActions(c.Principal, &o.User, assignments, s.now())
		if o.AssignmentsReadable {
			o.AssignmentCount, o.Assignments, o.Expired = len(assignments), forOverview(assignments), forOverview(expired)
			o.Permissions, o.MorePermissions = authz.GrantsOf(assignments)
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

// forOverview returns the first of the assignments, as many as an overview has.
func forOverview(assignments []rolecall.Assignment) []rolecall.Assignment {
	room := rolecall.MaxPageBytes / 4
	for i := range assignments {
		if room -= assignments[i].Size(); room < 0 || i == overviewAssignments {
			return assignments[:i]
		}
	}
	return assignments
}

// recentEvents returns the 10 newest events about the user, with only the values that the
// caller may read.
func (s *Service) recentEvents(tx *store.Tx, c access.Caller, id rolecall.UserID) ([]rolecall.Event, error) {
	recent, err := tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: overviewEvents})
	if err != nil {
		return nil, err
	}
	return recent.Items, authz.RedactEvents(c.Principal, recent.Items)
}

// signInParts sets the parts of the overview that describe sign-in, sessions, tokens and
// second factors. It leaves out the parts that the caller may not read.
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

// obstacles returns the reasons why the user cannot sign in, with the operations that
// remove them. It does not include limits of failed attempts, which limitedAttempts
// returns.
func (s *Service) obstacles(tx *store.Tx, c access.Caller, u *rolecall.User, assignments []rolecall.Assignment, summary *rolecall.SignInSummary) ([]SignInReason, error) {
	const (
		invite       = "UsersController_inviteUser"
		resetFactors = "UsersController_resetFactors"
		// A new password resets the counters of failed passwords. It does not reset the
		// counters of failed second factors.
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
		may, err := s.access.IsStillAuthorized(tx, c.Tenant, authz.InviteUser, invited.CreatedBy, u.ID)
		if err != nil {
			return nil, err
		}
		add(!may, "invitation-void", invite)
	}
	add(pending && invited.ExpiresAt != 0 && !invited.Live(now), "invitation-expired", invite)
	if passwords := settings.AllowsPassword(authz.IsOwner(assignments, now)); active && (!passwords || !summary.HasPassword && summary.Passkeys == 0) {
		hasConnection, err := signsInByConnection(tx, u.ID)
		if err != nil {
			return nil, err
		}
		add(!hasConnection && passwords, "no-password", sendReset)
		add(!hasConnection && !passwords, "no-identity", "")
	}
	demanded := settings.SecondFactor.Demands(assignments, now) && !summary.HasTOTP && summary.Passkeys == 0
	add(active && demanded, "second-factor-enrolment-required", "AuthsController_beginEnrolment")
	unusable := s.access.Passkeys == nil && summary.Passkeys > 0 && !summary.HasTOTP && summary.RecoveryCodes == 0
	add(active && unusable, "second-factor-unusable", resetFactors)
	return reasons, nil
}

// signsInByConnection reports whether the user has an identity, or a connection links one by the address.
func signsInByConnection(tx *store.Tx, user rolecall.UserID) (bool, error) {
	identities, err := tx.Identities(user)
	if err != nil || len(identities) > 0 {
		return true, err
	}
	all, err := tx.Connections()
	return slices.ContainsFunc(all, func(c rolecall.Connection) bool { return c.Linking == rolecall.LinkVerifiedEmail }), err
}

// failuresRead is the number of recent failed sign-ins that limitedAttempts reads to find
// the client addresses.
const failuresRead = 20

// limitedAttempts returns which sign-ins of the user are refused because of too many
// failures, and until when. The key of a counter is a hash of the client address, which
// does not reveal the address. Therefore, limitedAttempts reads recent failed sign-ins of
// the user and computes the keys from their addresses. It cannot find the counter of a
// known device.
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
		buckets = append(buckets, ofUser[0], ofUser[2]) // one counts account and address together, the other only the address
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
