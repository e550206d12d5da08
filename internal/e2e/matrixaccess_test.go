package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func inviteCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		line := "POST /users/" + s.id + "/invitations"
		p.compare(t, s.name, line, "", first(done(201, "userId createdAt expiresAt"),
			check{p.mayAnywhere("users:invite"), mayNot}, check{p.sees(s), notThere}, check{p.may("users:invite", s.department), mayNot}, check{p.mayTakeOver(s), beyondOwn}))
		p.compare(t, s.name+", with the link in the response", line, `{"delivery":"return"}`, first(done(201, "userId createdAt expiresAt token link"),
			check{p.mayAnywhere("users:invite") && p.mayAnywhere("users:issue-links") && p.program && p.holder == nil, mayNot},
			check{p.sees(s), notThere}, check{p.may("users:invite", s.department), mayNot}, check{p.mayTakeOver(s), beyondOwn}, check{p.may("users:issue-links", s.department), mayNot},
			check{p.operates != nil || !slices.Contains(s.holds, holding{"*:*", ""}), mayNot}))
		if s.exists && !p.speaksFor(s) {
			m.owner.do(t, "POST /users/"+s.id+"/suspend", "").expect(t, 200)
			p.compare(t, s.name+", suspended", line, "", first(expectation{status: 403, code: "user-suspended"},
				check{p.mayAnywhere("users:invite"), mayNot}, check{p.sees(s), notThere}, check{p.may("users:invite", s.department), mayNot}))
		}
	}
}

var _ = specify("UsersController_inviteUser", changesNothing, withObject(aUser, "POST /users/{id}/invitations", "", "user.invited user {id} []"), inviteCells) // the link goes to the address of the user

func withdrawCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		p.compare(t, s.name, "DELETE /users/"+s.id+"/invitations", "", p.protective(s, "users:invite", done(204, "")))
	}
}

var _ = specify("UsersController_withdrawInvitation", endsAccess, withObject(anInvitedUser, "DELETE /users/{id}/invitations", "", "user.invitation_withdrawn user {id} []"), withdrawCells)

func listInvitationsCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	invited := map[string]string{} // the department by user id
	for _, department := range []string{"Sales", "Ops"} {
		id := m.user(t, fmt.Sprintf("listed-guest-%d-%s", m.fresh, strings.ToLower(department)), department)
		m.owner.do(t, "POST /users/"+id+"/invitations", "").expect(t, 201)
		invited[id] = department
	}
	var listed []string
	for next, more := "", true; more; more = next != "" {
		a := p.compare(t, "invitations", "GET /invitations?limit=200"+next, "", first(done(200, "items nextCursor"), check{p.mayAnywhere("users:invite"), mayNot}))
		listed = append(listed, a.texts("userId")...)
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + url.QueryEscape(next)
		}
	}
	for id, department := range invited {
		if got := slices.Contains(listed, id); got != (p.live && p.may("users:invite", department)) {
			t.Errorf("an invitation in %s: listed is %v", department, got)
		}
	}
}

var _ = specify("InvitationsController_listInvitations", changesNothing, withoutObject("GET /invitations", ""), listInvitationsCells)

// mayTakeOver reports whether the principal may grant every permission of the subject.
func (p *principal) mayTakeOver(s *subject) bool {
	return !slices.ContainsFunc(s.holds, func(h holding) bool {
		return !p.has(slices.Concat(p.holds, p.grants), []string{h.permission}, h.department)
	})
}

func userEventsCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		a := p.compare(t, s.name, "GET /users/"+s.id+"/events?type=user.created", "", first(done(200, "items nextCursor"),
			check{p.is(s) || p.mayAnywhere("events:read"), mayNot}, check{p.sees(s), notThere}))
		if a.status != http.StatusOK {
			continue
		}
		if got := a.texts("subject/id"); !slices.Equal(got, []string{s.id}) {
			t.Errorf("%s: the events are about %q", s.name, got)
		}
		if got, wanted := a.members("/items/0/after"), sorted(strings.Fields(p.readableMembers(s))); !slices.Equal(got, wanted) && p.readableMembers(s) != "id" {
			t.Errorf("%s: the event shows %q, not %q", s.name, got, wanted)
		}
	}
}

var _ = specify("UsersController_listUserEvents", changesNothing, withObject(aUser, "GET /users/{id}/events", ""), userEventsCells)

const checkpointMembers = "builtAt note root size verifierKey"

func checkpointCells(t *testing.T, m *matrix, p *principal) {
	p.compare(t, "checkpoint", "GET /events/checkpoint", "", first(done(200, checkpointMembers), check{p.mayAnywhere("events:read"), mayNot}))
}

var _ = specify("EventsController_getCheckpoint", changesNothing, withoutObject("GET /events/checkpoint", ""), checkpointCells)

func consistencyCells(t *testing.T, m *matrix, p *principal) {
	p.compare(t, "consistency", "GET /events/consistency?from=1", "", first(done(200, "checkpoint from hashes"), check{p.mayAnywhere("events:read"), mayNot}))
}

var _ = specify("EventsController_getConsistency", changesNothing, withoutObject("GET /events/consistency?from=1", ""), consistencyCells)

// eventProofCells compares the proofs of the creation of users. The values are part of a proof only if the
// caller may read all of them.
func eventProofCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		event := m.owner.do(t, "GET /events?type=user.created&subject="+s.id, "").expect(t, 200).text("/items/0/id")
		a := p.compare(t, s.name, "GET /events/"+cmp.Or(event, never)+"/proof", "", first(done(200, "checkpoint hashes id index leaf reason source values"),
			check{p.mayAnywhere("events:read"), mayNot}, check{event != "", notThere}))
		if a.status != http.StatusOK {
			continue
		}
		all := sorted(strings.Fields(p.readableMembers(s)))
		if got, want := a.value("/values") != nil, (!s.deleted || p.may("users:restore", s.department)) && slices.Equal(all, sorted(strings.Fields(m.principals[0].readableMembers(s)))); got != want {
			t.Errorf("%s: the proof has the values: %v, want %v", s.name, got, want)
		}
		if a.value("/source") == nil || a.value("/reason") == nil {
			t.Errorf("%s: the proof does not have the source and the reason", s.name)
		}
	}
}

var _ = specify("EventsController_getEventProof", changesNothing, func(t *testing.T, w *providerWorld) request {
	return request{line: "GET /events/" + w.owner.do(t, "GET /events?limit=1", "").expect(t, 200).text("/items/0/id") + "/proof"}
}, eventProofCells)

// changesCells compares the change feed, page by page.
func changesCells(t *testing.T, m *matrix, p *principal) {
	if p.scope == "changes" {
		who := *p
		who.live, who.holds = true, held("", "*:*", "*/*:*")
		p = &who
	}
	subjects := m.subjects(t, p)
	const path = "GET /changes?limit=200&type=user.created"
	a := p.compare(t, "changes", path, "", first(done(200, "items nextCursor upToDate"), check{p.mayAnywhere("changes:read"), mayNot}))
	if a.status != http.StatusOK {
		return
	}
	shown := map[string][]string{} // members of the event about a user, by id
	for {
		for i, id := range a.texts("data/subject/id") {
			shown[id] = a.members(fmt.Sprintf("/items/%d/data/after", i))
			for _, hidden := range []string{"source", "sessionId"} {
				if a.value(fmt.Sprintf("/items/%d/data/%s", i, hidden)) != nil {
					t.Errorf("%s: a change has %s", p.name, hidden)
				}
			}
		}
		if a.value("/upToDate") == true {
			break
		}
		a = p.do(t, path+"&after="+url.QueryEscape(a.text("/nextCursor")), "").expect(t, 200)
	}
	for _, s := range subjects {
		got, ok := shown[s.id]
		switch foreign := s.id == m.foreign.owner.id || s.id == never; {
		case foreign && ok:
			t.Errorf("%s: there is a change of them", s.name)
		case foreign || p.is(s):
		case !ok:
			t.Errorf("%s: no change of them", s.name)
		default:
			wanted := sorted(strings.Fields(p.membersOf(s.department)))
			if s.deleted && !p.may("users:restore", s.department) {
				wanted = nil
			}
			if !slices.Equal(got, wanted) {
				t.Errorf("%s: the change shows %q, not %q", s.name, got, wanted)
			}
		}
	}
}

var _ = specify("EventsController_listChanges", changesNothing, withoutObject("GET /changes?limit=2", ""), changesCells)

func eventsCells(t *testing.T, m *matrix, p *principal) {
	subjects := m.subjects(t, p)
	a := p.compare(t, "events", "GET /events?limit=200&type=user.created", "", first(done(200, "items nextCursor"), check{p.mayAnywhere("events:read"), mayNot}))
	if a.status != http.StatusOK {
		return
	}
	about := a.texts("subject/id")
	for _, s := range subjects {
		i := slices.Index(about, s.id)
		switch foreign := s.id == m.foreign.owner.id || s.id == never; {
		case foreign && i >= 0:
			t.Errorf("%s: there is an event about them", s.name)
		case foreign || p.is(s):
		case i < 0:
			t.Errorf("%s: no event about them", s.name)
		default:
			wanted := sorted(strings.Fields(p.membersOf(s.department)))
			if s.deleted && !p.may("users:restore", s.department) {
				wanted = nil // omitted from every response
			}
			if got := a.members(fmt.Sprintf("/items/%d/after", i)); !slices.Equal(got, wanted) {
				t.Errorf("%s: the event shows %q, not %q", s.name, got, wanted)
			}
		}
	}
}

var _ = specify("EventsController_listEvents", changesNothing, withoutObject("GET /events?limit=2", ""), eventsCells)

const everyTenantMember = "id name displayName status settings logo createdAt updatedAt"

func getTenantCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "the tenant", "GET /tenant", "", first(done(200, everyTenantMember), check{p.mayAnywhere("tenant:read"), mayNot}))
}

var _ = specify("TenantController_getTenant", changesNothing, withoutObject("GET /tenant", ""), getTenantCells)

func getSummaryCells(t *testing.T, _ *matrix, p *principal) {
	var parts []string
	add := func(part string, may bool) {
		if may {
			parts = append(parts, part)
		}
	}
	add("invitations", p.mayEverywhere("users:invite"))
	add("secondFactors", p.mayEverywhere("users:reset-factors") && p.mayEverywhere("users.status:read"))
	add("failedSignIns activity", p.mayEverywhere("events:read"))
	add("expiringRoles", p.mayEverywhere("roles:read") || p.mayEverywhere("service-accounts:read") && p.mayAnywhere("roles:read"))
	add("expiringTokens", p.mayEverywhere("sessions:read") || p.mayEverywhere("service-accounts:read"))
	p.compare(t, "the summary", "GET /tenant/summary", "", first(done(200, strings.Join(parts, " ")), check{parts != nil, mayNot}))
}

var _ = specify("TenantController_getSummary", changesNothing, withoutObject("GET /tenant/summary?timeZone=Europe/Berlin", ""), getSummaryCells)

func updateTenantCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	p.compare(t, "the tenant", "PATCH /tenant", fmt.Sprintf(`{"displayName":"Renamed %d"}`, m.fresh), first(done(200, everyTenantMember), check{p.mayAnywhere("tenant:update"), mayNot}))
}

var _ = specify("TenantController_updateTenant", grantsAccess, func(*testing.T, *providerWorld) request {
	return request{line: "PATCH /tenant", body: `{"displayName":"Acme ` + newKey() + `"}`, events: []string{"tenant.updated tenant {tenant} [displayName]"}}
}, updateTenantCells) // the settings decide who can sign in, and how

func getLogoCells(t *testing.T, m *matrix, p *principal) {
	m.owner.do(t, "PUT /tenant/logo", aLogo(t, 64)).expect(t, 200)
	p.compare(t, "the logo", "GET /tenant/logo", "", first(done(200, ""), check{p.mayAnywhere("tenant:read"), mayNot}))
}

var _ = specify("TenantController_getLogo", changesNothing, func(t *testing.T, w *providerWorld) request {
	w.owner.do(t, "PUT /tenant/logo", aLogo(t, 64)).expect(t, 200)
	return request{line: "GET /tenant/logo"}
}, getLogoCells)

func setLogoCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	p.compare(t, "the logo", "PUT /tenant/logo", aLogo(t, 100+m.fresh%900), first(done(200, "mediaType width height size updatedAt"), check{p.mayAnywhere("tenant:update"), mayNot}))
}

var _ = specify("TenantController_setLogo", grantsAccess, func(t *testing.T, w *providerWorld) request {
	w.owner.do(t, "DELETE /tenant/logo", "")
	return request{line: "PUT /tenant/logo", body: aLogo(t, 320), events: []string{"tenant.logo_changed tenant {tenant} [logo]"}}
}, setLogoCells) // users recognise the page for their password by it

func deleteLogoCells(t *testing.T, m *matrix, p *principal) {
	m.owner.do(t, "PUT /tenant/logo", aLogo(t, 64)).expect(t, 200)
	p.compare(t, "the logo", "DELETE /tenant/logo", "", first(done(204, ""), check{p.mayAnywhere("tenant:update"), mayNot}))
}

var _ = specify("TenantController_deleteLogo", grantsAccess, func(t *testing.T, w *providerWorld) request {
	w.owner.do(t, "PUT /tenant/logo", aLogo(t, 64)).expect(t, 200)
	return request{line: "DELETE /tenant/logo", events: []string{"tenant.logo_removed tenant {tenant} [logo]"}}
}, deleteLogoCells)

// The permissions and departments in the checks. "" means the whole tenant.
var (
	checkedPermissions = []string{"users:read", "users.email:read", "users:delete", "users.name:update", "roles:read", "roles:create", "roles:assign", "events:read", "tenant:update", "shop/a:b"}
	checkedDepartments = []string{"", "Sales", "Ops"}
)

func checkAllCells(t *testing.T, _ *matrix, p *principal) {
	var checks, wanted []string
	for _, permission := range checkedPermissions {
		for _, department := range checkedDepartments {
			named := "null"
			if department != "" {
				named = quoted(department)
			}
			check := `{"permission":` + quoted(permission) + `,"department":` + named
			checks, wanted = append(checks, check+"}"), append(wanted, fmt.Sprintf(`%s,"allowed":%v}`, check, p.may(permission, department)))
		}
	}
	a := p.compare(t, "all", "POST /auths/checks", `{"checks":[`+strings.Join(checks, ",")+`]}`, done(200, "results"))
	if a.status == http.StatusOK && string(a.body) != `{"results":[`+strings.Join(wanted, ",")+`]}` {
		t.Errorf("answered %s, not %s", a.body, wanted)
	}
	if user := a.header.Get("X-Auth-User"); user != "" != (a.status == http.StatusOK) || user != "" && (user != p.id || a.header.Get("X-Auth-Tenant") != p.tenant) {
		t.Errorf("%d says %q", a.status, a.header)
	}
}

var _ = specify("AuthsController_checkAll", changesNothing, withoutObject("POST /auths/checks", `{"checks":[{"permission":"users:read"}]}`), checkAllCells)

func checkCells(t *testing.T, _ *matrix, p *principal) {
	for _, permission := range checkedPermissions {
		for _, department := range checkedDepartments {
			query := "?permission=" + permission
			if department != "" {
				query += "&department=" + department
			}
			a := p.compare(t, permission+" in "+department, "GET /auths/check"+query, "", first(done(204, ""), check{p.may(permission, department), mayNot}))
			if user := a.header.Get("X-Auth-User"); a.status == http.StatusNoContent && (user != p.id || a.header.Get("X-Auth-Tenant") != p.tenant) || a.status != http.StatusNoContent && user != "" {
				t.Errorf("%s in %q: %d says %q", permission, department, a.status, a.header)
			}
		}
	}
}

var _ = specify("AuthsController_check", changesNothing, withoutObject("GET /auths/check?permission=users:read", ""), checkCells)

func confirmCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "a wrong password", "POST /auths/confirm", confirmation("wrong"), p.ofOneself(expectation{status: 422, code: "validation"}))
	members := "id authenticatedAt confirmedAt secondFactor idleExpiresAt expiresAt"
	if p.sendsSession() {
		members += " token"
	}
	a := p.compare(t, "the right one", "POST /auths/confirm", confirmation(password), p.ofOneself(done(200, members)))
	if p.sendsSession() {
		p.bearer = a.text("/token")
	}
}

var _ = specify("AuthsController_confirm", provesItself, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: c, id: c.id, line: "POST /auths/confirm", body: confirmation(password), events: []string{"session.confirmed user {id} []"}}
}, confirmCells)

func changePasswordCells(t *testing.T, _ *matrix, p *principal) {
	const other = "another " + password
	if p.program {
		p.compare(t, "a program's", "PUT /auths/password", passwords(password, other), needsSession)
		return
	}
	p.compare(t, "a wrong one", "PUT /auths/password", passwords("wrong", other), expectation{status: 422, code: "validation"})
	p.compare(t, "the right one", "PUT /auths/password", passwords(password, other), done(204, ""))
	p.compare(t, "and back", "PUT /auths/password", passwords(other, password), done(204, ""))
}

var _ = specify("AuthsController_changePassword", provesItself, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: c, id: c.id, line: "PUT /auths/password", body: passwords(password, newPassword), events: []string{"user.password_changed user {id} []"}}
}, changePasswordCells)

func acceptInvitationCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	token := m.invite(t, m.owner, m.user(t, fmt.Sprintf("guest-%d", m.fresh), ""))
	p.do(t, "POST /auths/invitations/accept", acceptance(never, password)).refused(t, 401, "invitation-invalid")
	p.in(m.foreign.name).do(t, "POST /auths/invitations/accept", acceptance(token, password)).refused(t, 401, "invitation-invalid")
	body := acceptance(token, password)
	if p.sendsSession() {
		body = strings.TrimSuffix(body, "}") + `,"transport":"bearer"}`
	}
	a := p.do(t, "POST /auths/invitations/accept", body).expect(t, 200)
	if !slices.Equal(a.members("/user"), sorted(strings.Fields(everyMember))) {
		t.Errorf("one sees %q of oneself", a.members("/user"))
	}
	if p.program {
		return
	}
	p.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	if p.live {
		p.signInAgain(t)
	}
}

var _ = specify("AuthsController_acceptInvitation", provesItself, func(t *testing.T, w *providerWorld) request {
	id := aUser(t, w)
	return request{as: w.anonymous(), id: id, line: "POST /auths/invitations/accept", body: acceptance(w.invite(t, w.owner, id), password), events: []string{"user.invitation_accepted user {id} []", "session.started user {id} []"}}
}, acceptInvitationCells)
