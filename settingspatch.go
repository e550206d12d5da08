package rolecall

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// SettingsPatch is a change of settings: what it does not name stays; null sets the
// default again (RFC 7396).
type SettingsPatch struct {
	Numbers      map[string]*int64 // by JSON name
	SecondFactor SecondFactorPatch
	MailSender   Optional[*string]
}

// SecondFactorPatch is a change of a SecondFactorRule. Roles are kept only where
// roles are required.
type SecondFactorPatch struct {
	Required Optional[*string]
	Roles    Optional[[]string] // role ids
}

// check adds what is wrong with the members, each by itself.
func (p *SettingsPatch) check(faults *Faults) {
	for _, n := range NumberSettings {
		if value := p.Numbers[n.Name]; value != nil && !n.allows(*value) {
			faults.Add(settingPointer(n.Name), "range", fmt.Sprintf("must be from %d to %d", n.Min, n.Max))
		}
	}
	scopes := []SecondFactorScope{SecondFactorOfNobody, SecondFactorOfAll, SecondFactorOfRoles}
	if required := p.SecondFactor.Required.Value; required != nil && !slices.Contains(scopes, SecondFactorScope(*required)) {
		faults.Add(factorPointer, "format", "must be none, all or roles")
	}
	if len(p.SecondFactor.Roles.Value) > SecondFactorRolesMax {
		faults.Add(factorRolesPointer, "too-many", fmt.Sprintf("must be at most %d roles", SecondFactorRolesMax))
	}
	for i, text := range p.SecondFactor.Roles.Value {
		if _, err := ParseID[Role](text); err != nil {
			faults.Add(fmt.Sprintf("%s/%d", factorRolesPointer, i), "format", "must be a UUID")
		}
	}
	if sender := p.MailSender.Value; sender != nil {
		faults.Text(settingPointer("mailSenderName"), *sender, 1, MailSenderMax)
	}
}

const (
	factorPointer      = "/settings/secondFactor/required"
	factorRolesPointer = "/settings/secondFactor/roles"
)

func settingPointer(name string) string { return "/settings/" + name }

// checkTogether adds where what the patch makes of old does not fit together, at
// the member that the patch names and that has no fault of its own.
func (p *SettingsPatch) checkTogether(faults *Faults, old TenantSettings) {
	s := p.withinBounds().apply(old)
	conflict := func(detail string, pointers ...string) {
		i := slices.IndexFunc(pointers, p.names)
		if i >= 0 && !slices.ContainsFunc(*faults, func(f Fault) bool { return f.Pointer == pointers[i] }) {
			faults.Add(pointers[i], "conflict", detail)
		}
	}
	if s.SessionIdle != nil && s.IdleLifetime() > s.AbsoluteLifetime() {
		conflict(fmt.Sprintf("does not fit: sessionIdleSeconds must be at most sessionAbsoluteSeconds, which would be %d", inSeconds(TenantSettings.AbsoluteLifetime)(s)),
			settingPointer(sessionIdle), settingPointer(sessionAbsolute), factorPointer)
	}
	if s.PasswordMinimum() < DefaultPasswordMin && s.SecondFactor.Required != SecondFactorOfAll {
		conflict(fmt.Sprintf("does not fit: passwordMinimum must be at least %d unless secondFactor is required of all", DefaultPasswordMin),
			settingPointer(passwordMinimum), factorPointer)
	}
	switch named := p.SecondFactor.Roles.Value; {
	case s.SecondFactor.Required != SecondFactorOfRoles && len(named) > 0:
		conflict("does not fit: roles are named only where required is roles", factorRolesPointer)
	case s.SecondFactor.Required == SecondFactorOfRoles && len(s.SecondFactor.Roles) == 0 && len(named) == 0 && (p.names(factorPointer) || p.names(factorRolesPointer)):
		faults.Add(factorRolesPointer, "required", "must name at least one role where required is roles")
	}
}

// names reports whether the patch names the setting at pointer.
func (p *SettingsPatch) names(pointer string) bool {
	switch pointer {
	case factorPointer:
		return p.SecondFactor.Required.Set
	case factorRolesPointer:
		return p.SecondFactor.Roles.Set
	}
	_, named := p.Numbers[pointer[len("/settings/"):]]
	return named
}

// withinBounds returns the patch without the numbers that are out of their bounds.
func (p *SettingsPatch) withinBounds() *SettingsPatch {
	bounded := *p
	bounded.Numbers = maps.Clone(p.Numbers)
	for _, n := range NumberSettings {
		if value := bounded.Numbers[n.Name]; value != nil && !n.allows(*value) {
			delete(bounded.Numbers, n.Name)
		}
	}
	return &bounded
}

// apply returns the settings as the patch makes them.
func (p *SettingsPatch) apply(s TenantSettings) TenantSettings {
	for _, n := range NumberSettings {
		if value, named := p.Numbers[n.Name]; named {
			*n.stored(&s) = value
		}
	}
	s.SecondFactor = p.SecondFactor.apply(s.SecondFactor)
	if p.MailSender.Set {
		s.MailSender = p.MailSender.Value
	}
	return s
}

func (p *SecondFactorPatch) apply(r SecondFactorRule) SecondFactorRule {
	if p.Required.Set {
		r.Required = ""
		if scope := p.Required.Value; scope != nil && SecondFactorScope(*scope) != SecondFactorOfNobody {
			r.Required = SecondFactorScope(*scope)
		}
	}
	if p.Roles.Set {
		r.Roles = p.RoleIDs()
	}
	if r.Required != SecondFactorOfRoles {
		r.Roles = nil
	}
	return r
}

// RoleIDs returns the roles that the patch names, sorted, each once, without those
// that are no ids.
func (p *SecondFactorPatch) RoleIDs() []RoleID {
	var ids []RoleID
	for _, text := range p.Roles.Value {
		if id, err := ParseID[Role](text); err == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b RoleID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// CheckRoles adds those of the roles that the patch names and that are none of the
// tenant's.
func (p *SecondFactorPatch) CheckRoles(faults *Faults, roles []Role) {
	for i, text := range p.Roles.Value {
		if id, err := ParseID[Role](text); err == nil && !slices.ContainsFunc(roles, func(r Role) bool { return r.ID == id }) {
			faults.Add(fmt.Sprintf("%s/%d", factorRolesPointer, i), "unknown-role", "is not a role of this tenant")
		}
	}
}
