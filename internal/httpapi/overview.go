package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/timezone"
)

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

func (b *overviewBody) HiddenMembers() string { return b.User.HiddenMembers() }

// grantBody is a permission of a user, with the departments for which the user has it, and the
// roles that contain it.
type grantBody struct {
	Permission rolecall.Permission `json:"permission" doc:"The permission. It can have wildcards."`
	Reach      reachBody           `json:"reach" nullable:"true" doc:"The reach of the permission. Null for the whole tenant."`
	Roles      []roleName          `json:"roles" doc:"The roles that give the permission to the user."`
}

// signInState states whether a user can sign in, and the reasons if not.
type signInState struct {
	CanSignIn   bool           `json:"canSignIn" doc:"True if reasons is empty, so that nothing prevents the user from signing in. False also if only some of the sign-ins of the user are refused."`
	Reasons     []signInReason `json:"reasons" doc:"The reasons that prevent the user from signing in."`
	LastLoginAt rolecall.Time  `json:"lastLoginAt" nullable:"true" doc:"When the user signed in last. Null for never."`
}

type signInReason struct {
	Code      string        `json:"code" doc:"tenant-suspended, user-suspended, user-pending, invitation-void (its creator could not invite the user now), invitation-expired, no-password, no-identity (only owners can sign in with a password, and the user has no identity), second-factor-enrolment-required, second-factor-unusable (the user has passkeys only, and no domain is configured for them) or too-many-attempts (some sign-ins are refused until a given time, as covers says). Later versions may add values."`
	Operation optionalText  `json:"operation" nullable:"true" doc:"ID of the operation that removes the reason. Null if no operation does."`
	Remedy    optionalText  `json:"remedy" nullable:"true" doc:"Method and path of this operation, such as POST /users/{id}/password-resets. Null if no operation does."`
	Until     rolecall.Time `json:"until" nullable:"true" doc:"When the reason ends by itself. Null if it does not."`
	Covers    optionalText  `json:"covers" nullable:"true" doc:"For too-many-attempts, the sign-ins that are refused: source (from one address or network), unknown-browsers (from browsers in which the user has not signed in) or second-factor (codes from such browsers). Later versions may add values. Null for all."`
	Source    optionalText  `json:"source" nullable:"true" doc:"The address or network for which sign-ins are refused. Null if the caller may not read events."`
}

// pendingInvitation is an invitation that the user has not accepted.
type pendingInvitation struct {
	CreatedBy rolecall.UserID `json:"createdBy" nullable:"true" doc:"ID of the principal who created the invitation. Null for an operator."`
	CreatedAt rolecall.Time   `json:"createdAt" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt" doc:"When the invitation expires."`
}

type sessionSummary struct {
	Count    int           `json:"count" doc:"Number of live sessions."`
	NewestAt rolecall.Time `json:"newestAt" nullable:"true" doc:"When the newest session began. Null without sessions."`
}

type tokenSummary struct {
	Count int `json:"count" doc:"Number of API tokens that have not expired."`
}

type factorSummary struct {
	TOTP          bool `json:"totp" doc:"Whether the user has an authenticator app."`
	Passkeys      int  `json:"passkeys" doc:"Number of passkeys."`
	RecoveryCodes int  `json:"recoveryCodesLeft" doc:"Number of unused recovery codes."`
}

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

type getSummaryRequest struct {
	TimeZone timeZoneValue `query:"timeZone" example:"Europe/Berlin" doc:"Time zone of the days of activity, by its IANA name. Without it, UTC."`
}

// timeZoneValue is a query parameter with the name of a time zone.
type timeZoneValue struct{ zone *time.Location }

// SetParameter loads the time zone with this IANA name.
func (z *timeZoneValue) SetParameter(text string) (code, detail string) {
	zone, ok := timezone.Load(text)
	if !ok {
		return "format", "must be the IANA name of a time zone, such as Europe/Berlin"
	}
	z.zone = zone
	return "", ""
}

func (s *Server) getSummary(ctx context.Context, c access.Caller, in *getSummaryRequest) (operation.Response[summaryBody], error) {
	summary, err := s.directory.Summary(ctx, c, cmp.Or(in.TimeZone.zone, time.UTC))
	return operation.Response[summaryBody]{Body: newSummaryBody(&summary)}, err
}

// summaryBody is the summary of a tenant. Parts that the caller may not read are nil.
type summaryBody struct {
	Invitations    *boundedCount   `json:"invitations,omitzero" doc:"Invitations that were not accepted and have not expired. At most 1,000 are counted. Needs users:invite."`
	SecondFactors  *factorCoverage `json:"secondFactors,omitzero" doc:"How many active users have a second factor. Needs users:reset-factors and users.status:read."`
	FailedSignIns  *failedSignIns  `json:"failedSignIns,omitzero" doc:"Failed sign-ins of the last 24 hours. Needs events:read."`
	ExpiringRoles  *expiringRoles  `json:"expiringRoles,omitzero" doc:"Role assignments that expire within 14 days. Those of users need roles:read. Those of service accounts also need service-accounts:read."`
	ExpiringTokens *expiringTokens `json:"expiringTokens,omitzero" doc:"API tokens that expire within 14 days. Those of users need sessions:read. Those of service accounts need service-accounts:read."`
	Activity       []dayActivity   `json:"activity,omitzero" doc:"The number of events of each of the last 30 days, oldest first. Needs events:read."`
}

type boundedCount struct {
	Count   int  `json:"count" doc:"The number that was counted."`
	IsExact bool `json:"isExact" doc:"Whether count is exact. Otherwise there are more."`
}

type factorCoverage struct {
	Users     int  `json:"users" doc:"Active users."`
	Protected int  `json:"protected" doc:"Active users with an authenticator app or a passkey."`
	IsExact   bool `json:"isExact" doc:"Whether all users were counted. Otherwise the numbers are of the first 5,000 users."`
}

type failedSignIns struct {
	boundedCount
	BlockedSources []blockedSource `json:"blockedSources" doc:"Networks whose sign-ins from unknown browsers are refused now, after too many failed ones. The networks of the newest failed sign-ins are checked, at most 20."`
}

type blockedSource struct {
	Source string        `json:"source" doc:"The IPv4 address, or the /64 network of the IPv6 address."`
	Until  rolecall.Time `json:"until" doc:"Until when sign-ins are refused."`
}

type expiringRoles struct {
	Items   []expiringRole `json:"items" doc:"The first 10 assignments to expire."`
	HasMore bool           `json:"hasMore" doc:"Whether more assignments expire within 14 days."`
}

type expiringRole struct {
	UserID           rolecall.UserID           `json:"userId" nullable:"true" doc:"ID of the user with the role. Null for a service account."`
	ServiceAccountID rolecall.ServiceAccountID `json:"serviceAccountId" nullable:"true" doc:"ID of the service account with the role. Null for a user."`
	RoleID           rolecall.RoleID           `json:"roleId" doc:"ID of the role."`
	RoleName         string                    `json:"roleName" doc:"Name of the role."`
	ExpiresAt        rolecall.Time             `json:"expiresAt" doc:"When the assignment expires."`
}

type expiringTokens struct {
	Items   []expiringToken `json:"items" doc:"The first 10 tokens to expire."`
	HasMore bool            `json:"hasMore" doc:"Whether more tokens expire within 14 days."`
}

type expiringToken struct {
	ID               rolecall.APITokenID       `json:"id" doc:"ID of the API token."`
	Name             string                    `json:"name" doc:"Name of the API token."`
	UserID           rolecall.UserID           `json:"userId" nullable:"true" doc:"ID of the user of the token. Null for a service account."`
	ServiceAccountID rolecall.ServiceAccountID `json:"serviceAccountId" nullable:"true" doc:"ID of the service account of the token. Null for a user."`
	ExpiresAt        rolecall.Time             `json:"expiresAt" doc:"When the token expires."`
}

type dayActivity struct {
	Date    string `json:"date" doc:"The day, such as 2026-11-24."`
	Events  int    `json:"events" doc:"Number of events. At most 1,000 are counted."`
	IsExact bool   `json:"isExact" doc:"Whether events is exact. Otherwise there are more."`
}

func newSummaryBody(s *directory.Summary) (b summaryBody) {
	if s.Invitations != nil {
		b.Invitations = &boundedCount{s.Invitations.Count, s.Invitations.Exact}
	}
	if s.Factors != nil {
		b.SecondFactors = &factorCoverage{s.Factors.Users, s.Factors.Protected, s.Factors.Exact}
	}
	if s.SignIns != nil {
		b.FailedSignIns = &failedSignIns{boundedCount{s.SignIns.Count, s.SignIns.Exact}, operation.Bodies(s.SignIns.Blocked, func(b *directory.BlockedSource) blockedSource {
			return blockedSource(*b)
		})}
		b.Activity = operation.Bodies(s.Activity, func(d *directory.DayActivity) dayActivity { return dayActivity{d.Date, d.Events, d.Exact} })
	}
	if s.Roles != nil {
		b.ExpiringRoles = &expiringRoles{operation.Bodies(s.Roles.Items, func(r *rolecall.ExpiringRole) expiringRole {
			return expiringRole{r.Holder.UserID(), r.Holder.ServiceAccountID(), r.RoleID, r.RoleName, r.ExpiresAt}
		}), s.Roles.More}
	}
	if s.Tokens != nil {
		b.ExpiringTokens = &expiringTokens{operation.Bodies(s.Tokens.Items, func(t *rolecall.APIToken) expiringToken {
			return expiringToken{t.ID, t.Name, t.UserID, t.ServiceAccountID, t.ExpiresAt}
		}), s.Tokens.More}
	}
	return b
}

// exportOperations are the operations that answer with a CSV file.
var exportOperations = []*operation.Operation{
	{
		Method: http.MethodGet, Path: "/exports/users", ID: "ExportsController_exportUsers", Summary: "Export users",
		Description: "Exports the users that the caller may read as a CSV file, with the filters of GET /users. The columns are the ID and the members that the caller may read of some user. A cell is empty if the caller may not read the member of this user. " + aboutExports,
		Policy:      authz.ListUsers,
		Answers:     operation.Answers{{http.StatusOK, "The users.", []string{"Content-Disposition"}}},
		Problems:    problems{rolecall.ErrFieldNotReadable},
		Endpoint:    operation.CSV((*Server).exportUsers),
	},
	{
		Method: http.MethodGet, Path: "/exports/roles/{id}/users", ID: "ExportsController_exportRoleUsers", Summary: "Export the users with a role",
		Description: "Exports the users with the role as a CSV file, with the columns of GET /exports/users and the filters of GET /roles/{id}/users. " + aboutExports,
		Policy:      authz.ListRoleUsers,
		Answers:     operation.Answers{{http.StatusOK, "The users.", []string{"Content-Disposition"}}},
		Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFieldNotReadable},
		Endpoint:    operation.CSV((*Server).exportRoleUsers),
	},
	{
		Method: http.MethodGet, Path: "/exports/events", ID: "ExportsController_exportEvents", Summary: "Export events",
		Description: "Exports the events of the tenant as a CSV file, newest first, with the filters of GET /events. The columns before and after have JSON. The columns actor.name and subject.name have the names of the actor and of the user, role or service account that the event is about, if the caller may read them. " + aboutExports,
		Policy:      authz.ReadEvents,
		Answers:     operation.Answers{{http.StatusOK, "The events.", []string{"Content-Disposition"}}},
		Endpoint:    operation.CSV((*Server).exportEvents),
	},
}

// aboutExports is the part of the description that all exports share.
const aboutExports = "The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503."

type exportUsersRequest struct {
	userFilters
	operation.RawQuery
	Status string          `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
	Role   rolecall.RoleID `query:"role" doc:"Only users with this role. It needs the permission roles:read."`
}

func (s *Server) exportUsers(ctx context.Context, c access.Caller, in *exportUsersRequest) (*rolecall.Table, error) {
	return s.directory.ExportUsers(ctx, c, in.listing(in.Status, in.Role))
}

type exportRoleUsersRequest struct {
	rolePath
	userFilters
	operation.RawQuery
	Status string `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
}

func (s *Server) exportRoleUsers(ctx context.Context, c access.Caller, in *exportRoleUsersRequest) (*rolecall.Table, error) {
	return s.directory.ExportRoleUsers(ctx, c, in.ID, in.listing(in.Status, rolecall.RoleID{}))
}

type exportEventsRequest struct {
	eventFilters
	operation.RawQuery
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this user, role, service account or tenant."`
}

func (s *Server) exportEvents(ctx context.Context, c access.Caller, in *exportEventsRequest) (*rolecall.Table, error) {
	return s.directory.ExportEvents(ctx, c, in.listing(in.Subject))
}
