package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/timezone"
)

func (s *Server) summaryOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/tenant/summary", ID: "TenantController_getSummary", Summary: "Get a summary of the tenant",
			Description: "Returns what administrators look at first: open invitations, failed sign-ins and blocked sources, the coverage of second factors, roles and API tokens that expire within 14 days, and the number of events of each of the last 30 days. Parts that the caller may not read are absent.",
			Policy:      authz.ReadSummary,
			Answers:     operation.Answers{{http.StatusOK, "The summary.", nil}},
			Handler:     operation.JSON(s.getSummary),
		},
	}
}

type getSummaryRequest struct {
	TimeZone timeZoneValue `query:"timeZone" example:"Europe/Berlin" doc:"Time zone of the days of activity, by its IANA name. Without it, UTC."`
}

// timeZoneValue is a query parameter with the name of a time zone.
type timeZoneValue struct{ zone *time.Location }

var _ = operation.SchemaOf[timeZoneValue](func(*operation.Schemas, string) *huma.Schema {
	return operation.Bounded(1, 64)
})

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

var _ = operation.Component[summaryBody]("TenantSummary", "A summary of the tenant. Parts that the caller may not read are absent.")

type boundedCount struct {
	Count   int  `json:"count" doc:"The number that was counted."`
	IsExact bool `json:"isExact" doc:"Whether count is exact. Otherwise there are more."`
}

var _ = operation.Component[boundedCount]("BoundedCount", "A number of things, counted up to a limit.")

type factorCoverage struct {
	Users     int  `json:"users" doc:"Active users."`
	Protected int  `json:"protected" doc:"Active users with an authenticator app or a passkey."`
	IsExact   bool `json:"isExact" doc:"Whether all users were counted. Otherwise the numbers are of the first 5,000 users."`
}

var _ = operation.Component[factorCoverage]("FactorCoverage", "How many active users have a second factor.")

type failedSignIns struct {
	boundedCount
	BlockedSources []blockedSource `json:"blockedSources" doc:"Networks whose sign-ins from unknown browsers are refused now, after too many failed ones. The networks of the newest failed sign-ins are checked, at most 20."`
}

var _ = operation.Component[failedSignIns]("FailedSignIns", "The failed sign-ins of the last 24 hours.")

type blockedSource struct {
	Source string        `json:"source" doc:"The IPv4 address, or the /64 network of the IPv6 address."`
	Until  rolecall.Time `json:"until" doc:"Until when sign-ins are refused."`
}

var _ = operation.Component[blockedSource]("BlockedSource", "A network whose sign-ins are refused after too many failures.")

type expiringRoles struct {
	Items   []expiringRole `json:"items" doc:"The first 10 assignments to expire."`
	HasMore bool           `json:"hasMore" doc:"Whether more assignments expire within 14 days."`
}

var _ = operation.Component[expiringRoles]("ExpiringRoles", "Role assignments that expire soon.")

type expiringRole struct {
	UserID           rolecall.UserID           `json:"userId" nullable:"true" doc:"ID of the user with the role. Null for a service account."`
	ServiceAccountID rolecall.ServiceAccountID `json:"serviceAccountId" nullable:"true" doc:"ID of the service account with the role. Null for a user."`
	RoleID           rolecall.RoleID           `json:"roleId" doc:"ID of the role."`
	RoleName         string                    `json:"roleName" doc:"Name of the role."`
	ExpiresAt        rolecall.Time             `json:"expiresAt" doc:"When the assignment expires."`
}

var _ = operation.Component[expiringRole]("ExpiringRole", "A role assignment that expires soon.")

type expiringTokens struct {
	Items   []expiringToken `json:"items" doc:"The first 10 tokens to expire."`
	HasMore bool            `json:"hasMore" doc:"Whether more tokens expire within 14 days."`
}

var _ = operation.Component[expiringTokens]("ExpiringTokens", "API tokens that expire soon.")

type expiringToken struct {
	ID               rolecall.APITokenID       `json:"id" doc:"ID of the API token."`
	Name             string                    `json:"name" doc:"Name of the API token."`
	UserID           rolecall.UserID           `json:"userId" nullable:"true" doc:"ID of the user of the token. Null for a service account."`
	ServiceAccountID rolecall.ServiceAccountID `json:"serviceAccountId" nullable:"true" doc:"ID of the service account of the token. Null for a user."`
	ExpiresAt        rolecall.Time             `json:"expiresAt" doc:"When the token expires."`
}

var _ = operation.Component[expiringToken]("ExpiringToken", "An API token that expires soon.")

type dayActivity struct {
	Date    string `json:"date" doc:"The day, such as 2026-11-24."`
	Events  int    `json:"events" doc:"Number of events. At most 1,000 are counted."`
	IsExact bool   `json:"isExact" doc:"Whether events is exact. Otherwise there are more."`
}

var _ = operation.Component[dayActivity]("DayActivity", "The number of events of a day.")

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
