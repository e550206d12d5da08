package httpapi

import (
	"context"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/wire"
)

type getTenantRequest struct {
	ifNoneMatchHeader
}

func (s *Server) getTenant(ctx context.Context, c service.Call, _ *getTenantRequest) (Response[tenantBody], error) {
	tenant, err := s.service.CurrentTenant(ctx, c)
	return Response[tenantBody]{Body: tenantBody{&tenant, true}}, err
}

type updateTenantRequest struct {
	ifMatchHeader
	Body tenantPatch
}

func (s *Server) updateTenant(ctx context.Context, c service.Call, in *updateTenantRequest) (Response[tenantBody], error) {
	tenant, err := s.service.UpdateTenant(ctx, c, in.Body.patch(), match(in.IfMatch, tenantTag))
	return Response[tenantBody]{Body: tenantBody{&tenant, !c.Reach(rolecall.TenantRead).IsNowhere()}}, err
}

// tenantPatch is a change of a tenant.
type tenantPatch struct {
	Name        wire.Immutable            `json:"name"`
	DisplayName rolecall.Optional[string] `json:"displayName"`
	Settings    settingsPatch             `json:"settings"`
}

func (p *tenantPatch) patch() rolecall.TenantPatch {
	return rolecall.TenantPatch{DisplayName: p.DisplayName, Settings: rolecall.SettingsPatch(p.Settings)}
}

// Check returns what is wrong with the patch, nil if nothing is.
func (p *tenantPatch) Check() rolecall.Faults {
	patch := p.patch()
	return patch.Check()
}

// settingsPatch is a change of settings; null sets the defaults again.
type settingsPatch rolecall.SettingsPatch

// UnmarshalWire reads an object of settings. Null is null for each of them.
func (p *settingsPatch) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	p.Numbers = map[string]*int64{}
	names := []string{"secondFactor", "mailSenderName"}
	for _, n := range rolecall.NumberSettings {
		names = append(names, n.Name)
	}
	if value.Kind() == jsontext.KindNull {
		for _, name := range names {
			p.read(d, pointer, name, value)
		}
		return
	}
	d.Each(pointer, value, func(name string, value jsontext.Value) {
		if !slices.Contains(names, name) {
			d.Unknown(pointer, name, names)
			return
		}
		p.read(d, pointer, name, value)
	})
}

// read reads the setting.
func (p *settingsPatch) read(d *wire.Decoding, pointer, name string, value jsontext.Value) {
	switch name {
	case "secondFactor":
		if value.Kind() == jsontext.KindNull {
			p.SecondFactor.Required.Set, p.SecondFactor.Roles.Set = true, true
			return
		}
		var rule secondFactorPatch
		secondFactorDecoder.Continue(d, pointer+"/"+name, value, reflect.ValueOf(&rule).Elem())
		p.SecondFactor = rolecall.SecondFactorPatch(rule)
	case "mailSenderName":
		p.MailSender.Set = true
		if value.Kind() != jsontext.KindNull {
			if text, ok := d.Text(pointer+"/"+name, value); ok {
				p.MailSender.Value = &text
			}
		}
	default:
		p.Numbers[name] = nil
		if value.Kind() == jsontext.KindNull {
			return
		}
		n, ok := wholeNumber(string(value))
		if !ok {
			delete(p.Numbers, name)
			d.Add(pointer+"/"+name, "type", "must be a whole number")
			return
		}
		p.Numbers[name] = &n
	}
}

// secondFactorPatch changes who must have a second factor.
type secondFactorPatch struct {
	Required rolecall.Optional[*string]  `json:"required"`
	Roles    rolecall.Optional[[]string] `json:"roles"`
}

var secondFactorDecoder = wire.NewDecoder(reflect.TypeFor[secondFactorPatch]())

// tenantBody is a tenant with the settings that are in force, or its id alone if the
// caller may not read it.
type tenantBody struct {
	tenant   *rolecall.Tenant
	readable bool
}

// AppendJSON appends the members that the caller may read.
func (b tenantBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return append(appendID(append(out, `{"id":`...), b.tenant.ID), '}')
	}
	return appendTenant(out, b.tenant)
}

func (b tenantBody) hasTag() bool { return b.readable }

// tenantTag returns the ETag of a tenant.
func tenantTag(t *rolecall.Tenant) string { return secret.ETag(appendTenant(nil, t)) }

// appendTenant appends the tenant with the settings that are in force.
func appendTenant(b []byte, t *rolecall.Tenant) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, t.ID)
	b = append(b, `,"name":`...)
	b = appendText(b, t.Name)
	b = append(b, `,"displayName":`...)
	b = appendText(b, t.DisplayName)
	b = append(b, `,"status":`...)
	b = appendText(b, t.Status)
	b = append(b, `,"settings":{`...)
	for _, n := range rolecall.NumberSettings {
		b = append(appendText(b, n.Name), ':')
		b = append(strconv.AppendInt(b, n.InForce(t.Settings), 10), ',')
	}
	b = append(b, `"secondFactor":{"required":`...)
	b = appendText(b, t.Settings.SecondFactor.Scope())
	b = append(b, `,"roles":`...)
	b = appendList(b, t.Settings.SecondFactor.Roles, func(b []byte, id *rolecall.RoleID) []byte { return appendID(b, *id) })
	b = append(b, `},"mailSenderName":`...)
	b = appendTextOrNull(b, t.Settings.MailSender)
	b = append(b, `},"createdAt":`...)
	b = appendTime(b, t.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, t.UpdatedAt)
	if t.PurgeAt != 0 {
		b = append(b, `,"purgeAt":`...)
		b = appendTime(b, t.PurgeAt)
	}
	return append(b, '}')
}
