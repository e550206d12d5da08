package httpapi

import (
	"context"
	"strconv"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) getUserOverview(ctx context.Context, c service.Call, in *userRequest) (Response[overviewBody], error) {
	overview, err := s.service.Overview(ctx, c, in.ID)
	return Response[overviewBody]{Body: overviewBody{&overview, c.Sight(&overview.User)}}, err
}

// overviewBody is the overview of a user as far as the caller may read it.
type overviewBody struct {
	overview *service.Overview
	readable rolecall.UserMembers
}

// AppendJSON appends the parts that the caller may read.
func (b overviewBody) AppendJSON(out []byte) []byte {
	return appendOverview(out, b.overview, b.readable)
}

func (b overviewBody) hiddenMembers() string { return names(rolecall.AllUserMembers &^ b.readable) }

// appendOverview appends the parts that the caller may read; the others are
// absent.
func appendOverview(b []byte, o *service.Overview, sight rolecall.UserMembers) []byte {
	b = append(b, `{"user":`...)
	b = userBody{user: &o.User, readable: sight}.AppendJSON(b)
	if o.AssignmentsReadable {
		b = append(b, `,"assignments":`...)
		b = appendList(b, o.Assignments, appendAssignment)
		b = append(b, `,"assignmentCount":`...)
		b = strconv.AppendInt(b, int64(o.AssignmentCount), 10)
		b = append(b, `,"expiredAssignments":`...)
		b = appendList(b, o.Expired, appendAssignment)
		b = append(b, `,"permissions":`...)
		b = appendList(b, o.Permissions, appendGrant)
	}
	if o.SignInReadable {
		b = append(b, `,"signIn":`...)
		b = appendSignIn(b, &o.SignIn)
		b = append(b, `,"invitation":`...)
		b = appendPendingInvitation(b, &o.Invitation)
	}
	if o.SessionsReadable {
		b = append(b, `,"sessions":{"count":`...)
		b = strconv.AppendInt(b, int64(o.Sessions.Count), 10)
		b = append(b, `,"newestAt":`...)
		b = appendTimeOrNull(b, o.Sessions.NewestAt)
		b = append(b, `},"tokens":{"count":`...)
		b = strconv.AppendInt(b, int64(o.Tokens), 10)
		b = append(b, '}')
	}
	if o.FactorsReadable {
		b = append(b, `,"factors":{"totp":`...)
		b = strconv.AppendBool(b, o.Factors.TOTP)
		b = append(b, `,"passkeys":`...)
		b = strconv.AppendInt(b, int64(o.Factors.Passkeys), 10)
		b = append(b, `,"recoveryCodesLeft":`...)
		b = strconv.AppendInt(b, int64(o.Factors.RecoveryCodes), 10)
		b = append(b, '}')
	}
	if o.EventsReadable {
		b = append(b, `,"recentEvents":`...)
		b = appendList(b, o.RecentEvents, appendEvent)
	}
	b = append(b, `,"allowedActions":`...)
	b = appendList(b, o.AllowedActions, appendTextItem)
	return append(b, '}')
}

func appendGrant(b []byte, g *authz.Grant) []byte {
	b = append(b, `{"permission":`...)
	b = appendPermission(b, &g.Permission)
	b = append(b, `,"reach":`...)
	b = appendReach(b, g.Reach)
	b = append(b, `,"roles":`...)
	b = appendList(b, g.Roles, appendRoleName)
	return append(b, '}')
}

func appendSignIn(b []byte, s *service.SignInState) []byte {
	b = append(b, `{"canSignIn":`...)
	b = strconv.AppendBool(b, s.CanSignIn)
	b = append(b, `,"reasons":`...)
	b = appendList(b, s.Reasons, func(b []byte, r *service.SignInReason) []byte {
		b = append(b, `{"code":`...)
		b = appendText(b, r.Code)
		b = append(b, `,"operation":`...)
		b = appendNonEmpty(b, r.Operation)
		b = append(b, `,"until":`...)
		b = appendTimeOrNull(b, r.Until)
		b = append(b, `,"covers":`...)
		b = appendNonEmpty(b, r.Covers)
		b = append(b, `,"source":`...)
		b = appendNonEmpty(b, r.Source)
		return append(b, '}')
	})
	b = append(b, `,"lastLoginAt":`...)
	b = appendTimeOrNull(b, s.LastLoginAt)
	return append(b, '}')
}

// appendPendingInvitation appends by whom and when an invitation was made and when it
// ends, null if there is none.
func appendPendingInvitation(b []byte, i *rolecall.Invitation) []byte {
	if i.ExpiresAt == 0 {
		return append(b, "null"...)
	}
	b = append(b, `{"createdBy":`...)
	b = appendIDOrNull(b, i.CreatedBy)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, i.CreatedAt)
	b = append(b, `,"expiresAt":`...)
	b = appendTime(b, i.ExpiresAt)
	return append(b, '}')
}

// appendNonEmpty appends the text, null for an empty one.
func appendNonEmpty(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return appendText(b, text)
}

var assignmentEncoder = wire.NewEncoder[assignmentBody]()

func appendAssignment(b []byte, a *rolecall.Assignment) []byte {
	body := newAssignmentBody(a)
	return assignmentEncoder.Append(b, &body)
}
