package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) overviewOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/users/{id}/overview", ID: "UsersController_getUserOverview", Summary: "Get a user's overview",
			Description: "Returns a summary of the user: roles, permissions, sign-in state, sessions, API tokens, second factors and recent events. Parts that the caller may not read are absent.",
			Policy:      authz.ReadUser,
			Answers:     operation.Answers{{http.StatusOK, "The overview.", []string{"Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getUserOverview),
		},
	}
}

func (s *Server) getUserOverview(ctx context.Context, c access.Caller, in *userRequest) (operation.Response[overviewBody], error) {
	overview, err := s.directory.Overview(ctx, c, in.ID)
	return operation.Response[overviewBody]{Body: newOverviewBody(c, &overview, s.remedies)}, err
}

// overviewBody is the overview of a user. Parts that the caller may not read are nil.
type overviewBody struct {
	User               userBody            `json:"user" doc:"The user, with the members that the caller may read."`
	Assignments        []assignmentBody    `json:"assignments,omitzero" doc:"The role assignments of the user that have not expired. At most 100, and fewer if their reaches are large."`
	AssignmentCount    *int                `json:"assignmentCount,omitzero" doc:"Number of role assignments of the user that have not expired."`
	ExpiredAssignments []assignmentBody    `json:"expiredAssignments,omitzero" doc:"Expired assignments, the most recently expired first. At most 100, and fewer if their reaches are large. They have no effect."`
	Permissions        []grantBody         `json:"permissions,omitzero" doc:"The permissions of the user, sorted by their text, and the roles that they come from. If hasMorePermissions is true, only the first ones."`
	HasMore            *bool               `json:"hasMorePermissions,omitzero" doc:"Whether the user has further permissions. The list of permissions ends at about 512 KiB."`
	SignIn             *signInState        `json:"signIn,omitzero" doc:"Whether the user can sign in."`
	Invitation         **pendingInvitation `json:"invitation,omitzero" nullable:"true" doc:"The latest invitation, if it was not accepted. It can be expired or invalid: see the reasons in signIn. Null without such an invitation."`
	Sessions           *sessionSummary     `json:"sessions,omitzero" doc:"The live sessions of the user."`
	Tokens             *tokenSummary       `json:"tokens,omitzero" doc:"The API tokens of the user that have not expired."`
	Factors            *factorSummary      `json:"factors,omitzero" doc:"The second factors of the user. Only the user, and callers who may reset the second factors of the user, get this member."`
	RecentEvents       []eventBody         `json:"recentEvents,omitzero" doc:"The latest events about the user, newest first."`
	AllowedActions     []string            `json:"allowedActions" doc:"The actions that the caller may perform on the user: update, delete, suspend, resume, invite, sendPasswordReset, changeEmail, assignRole, erase, resetFactors, revokeSessions or withdrawInvitation. Later versions may add values."`
}

var _ = operation.Component[overviewBody]("Overview", "A summary of a user. Parts that the caller may not read are absent.")

func (b *overviewBody) HiddenMembers() string { return b.User.HiddenMembers() }

// grantBody is a permission of a user, with the departments for which the user has it, and the
// roles that contain it.
type grantBody struct {
	Permission rolecall.Permission `json:"permission" doc:"The permission. It can have wildcards."`
	Reach      reachBody           `json:"reach" nullable:"true" doc:"The reach of the permission. Null for the whole tenant."`
	Roles      []roleName          `json:"roles" doc:"The roles that give the permission to the user."`
}

var _ = operation.Component[grantBody]("Grant", "A permission of a user, with its reach and the roles that give it.")

// signInState states whether a user can sign in, and the reasons if not.
type signInState struct {
	CanSignIn   bool           `json:"canSignIn" doc:"True if reasons is empty, so that nothing prevents the user from signing in. False also if only some of the sign-ins of the user are refused."`
	Reasons     []signInReason `json:"reasons" doc:"The reasons that prevent the user from signing in."`
	LastLoginAt rolecall.Time  `json:"lastLoginAt" nullable:"true" doc:"When the user signed in last. Null for never."`
}

var _ = operation.Component[signInState]("SignInState", "Whether the user can sign in, and if not, why.")

type signInReason struct {
	Code      string        `json:"code" doc:"tenant-suspended, user-suspended, user-pending, invitation-void (its creator could not invite the user now), invitation-expired, no-password, no-identity (only owners can sign in with a password, and the user has no identity), second-factor-enrolment-required, second-factor-unusable (the user has passkeys only, and no domain is configured for them) or too-many-attempts (some sign-ins are refused until a given time, as covers says). Later versions may add values."`
	Operation optionalText  `json:"operation" nullable:"true" doc:"ID of the operation that removes the reason. Null if no operation does."`
	Remedy    optionalText  `json:"remedy" nullable:"true" doc:"Method and path of this operation, such as POST /users/{id}/password-resets. Null if no operation does."`
	Until     rolecall.Time `json:"until" nullable:"true" doc:"When the reason ends by itself. Null if it does not."`
	Covers    optionalText  `json:"covers" nullable:"true" doc:"For too-many-attempts, the sign-ins that are refused: source (from one address or network), unknown-browsers (from browsers in which the user has not signed in) or second-factor (codes from such browsers). Later versions may add values. Null for all."`
	Source    optionalText  `json:"source" nullable:"true" doc:"The address or network for which sign-ins are refused. Null if the caller may not read events."`
}

var _ = operation.Component[signInReason]("SignInReason", "A reason why sign-ins are refused.")

// pendingInvitation is an invitation that the user has not accepted.
type pendingInvitation struct {
	CreatedBy rolecall.UserID `json:"createdBy" nullable:"true" doc:"ID of the principal who created the invitation. Null for an operator."`
	CreatedAt rolecall.Time   `json:"createdAt" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt" doc:"When the invitation expires."`
}

var _ = operation.Component[pendingInvitation]("PendingInvitation", "An invitation that was not accepted.")

type sessionSummary struct {
	Count    int           `json:"count" doc:"Number of live sessions."`
	NewestAt rolecall.Time `json:"newestAt" nullable:"true" doc:"When the newest session began. Null without sessions."`
}

var _ = operation.Component[sessionSummary]("SessionSummary", "The live sessions of a user.")

type tokenSummary struct {
	Count int `json:"count" doc:"Number of API tokens that have not expired."`
}

var _ = operation.Component[tokenSummary]("TokenSummary", "The API tokens of a user.")

type factorSummary struct {
	TOTP          bool `json:"totp" doc:"Whether the user has an authenticator app."`
	Passkeys      int  `json:"passkeys" doc:"Number of passkeys."`
	RecoveryCodes int  `json:"recoveryCodesLeft" doc:"Number of unused recovery codes."`
}

var _ = operation.Component[factorSummary]("FactorSummary", "The second factors of a user.")

// newOverviewBody returns the body. The argument remedies has the method and path of each operation by its ID.
func newOverviewBody(c access.Caller, o *directory.Overview, remedies map[string]string) overviewBody {
	b := overviewBody{User: newUserBody(c, &o.User), AllowedActions: o.AllowedActions}
	if o.AssignmentsReadable {
		b.Assignments, b.ExpiredAssignments = operation.Bodies(o.Assignments, newAssignmentBody), operation.Bodies(o.Expired, newAssignmentBody)
		b.AssignmentCount, b.HasMore = &o.AssignmentCount, &o.MorePermissions
		b.Permissions = operation.Bodies(o.Permissions, func(g *authz.Grant) grantBody {
			return grantBody{g.Permission, reachBody{g.Reach}, operation.Bodies(g.Roles, newRoleName)}
		})
	}
	if o.SignInReadable {
		b.SignIn = &signInState{
			CanSignIn: o.SignIn.CanSignIn, LastLoginAt: o.SignIn.LastLoginAt,
			Reasons: operation.Bodies(o.SignIn.Reasons, func(r *directory.SignInReason) signInReason {
				return signInReason{r.Code, optionalText(r.Operation), optionalText(remedies[r.Operation]), r.Until, optionalText(r.Covers), optionalText(r.Source)}
			}),
		}
		var pending *pendingInvitation
		if i := &o.Invitation; i.ExpiresAt != 0 {
			pending = &pendingInvitation{i.CreatedBy, i.CreatedAt, i.ExpiresAt}
		}
		b.Invitation = &pending
	}
	if o.SessionsReadable {
		b.Sessions, b.Tokens = &sessionSummary{o.Sessions.Count, o.Sessions.NewestAt}, &tokenSummary{o.Tokens}
	}
	if o.FactorsReadable {
		b.Factors = &factorSummary{o.Factors.TOTP, o.Factors.Passkeys, o.Factors.RecoveryCodes}
	}
	if o.EventsReadable {
		b.RecentEvents = operation.Bodies(o.RecentEvents, newEventBody)
	}
	return b
}
