package authz

import "github.com/rolecall/rolecall"

// SummaryParts says which parts of a tenant's summary a principal may read. A part about
// users needs its permission in the whole tenant, because it counts the users of all
// departments.
type SummaryParts struct {
	Invitations   bool
	Factors       bool
	Events        bool // failed sign-ins and activity
	UserRoles     bool // assignments of users that expire soon
	AccountRoles  bool
	UserTokens    bool
	AccountTokens bool
}

// SummaryParts returns the parts of the summary that the principal may read.
func (p *Principal) SummaryParts() SummaryParts {
	everywhere := func(permission rolecall.Permission) bool { return p.Reach(permission).IsEverywhere() }
	accounts := ReadServiceAccounts.Authorize(p) == nil
	return SummaryParts{
		Invitations:   everywhere(rolecall.UsersInvite),
		Factors:       everywhere(rolecall.UsersFactors) && p.Reads(rolecall.MemberStatus).IsEverywhere(),
		Events:        ReadEvents.Authorize(p) == nil,
		UserRoles:     everywhere(rolecall.RolesRead),
		AccountRoles:  accounts && !p.Reach(rolecall.RolesRead).IsNowhere(),
		UserTokens:    everywhere(rolecall.SessionsRead),
		AccountTokens: accounts,
	}
}

// readsSomeSummary returns ErrPermissionDenied if the principal may read no part of the
// summary.
func readsSomeSummary(p *Principal, _ rolecall.UserID) error {
	if p.SummaryParts() == (SummaryParts{}) {
		return denied(rolecall.EventsRead)
	}
	return nil
}
