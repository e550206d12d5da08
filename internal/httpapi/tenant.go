package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) tenantOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/tenant", ID: "TenantController_getTenant", Summary: "Get the tenant",
			Description: "Returns the tenant of the request, with its settings.",
			Policy:      authz.ReadTenant,
			Answers:     operation.Answers{{http.StatusOK, "The tenant.", []string{"ETag"}}},
			Handler:     operation.JSON(s.getTenant),
		},
		{
			Method: http.MethodPatch, Path: "/tenant", ID: "TenantController_updateTenant", Summary: "Update the tenant",
			Description: "Changes the display name and the settings that are in the body.",
			Policy:      authz.UpdateTenant,
			Answers:     operation.Answers{{http.StatusOK, "The changed tenant. Callers without tenant:read get the ID only.", []string{"ETag"}}},
			Handler:     operation.JSON(s.updateTenant),
		},
	}
}

type getTenantRequest struct {
	operation.IfNoneMatchHeader
}

func (s *Server) getTenant(ctx context.Context, c access.Caller, _ *getTenantRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.CurrentTenant(ctx, c)
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, true)}, err
}

type updateTenantRequest struct {
	operation.IfMatchHeader
	Body tenantPatch
}

func (s *Server) updateTenant(ctx context.Context, c access.Caller, in *updateTenantRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.UpdateTenant(ctx, c, in.Body.patch(), match(in.IfMatch, tenantTag))
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, !c.Reach(rolecall.TenantRead).IsNowhere())}, err
}

// tenantPatch is a change of a tenant.
type tenantPatch struct {
	Name        wire.Immutable            `json:"name"`
	DisplayName rolecall.Optional[string] `json:"displayName" minLength:"1" maxLength:"255" doc:"Display name of the tenant."`
	Settings    settingsPatch             `json:"settings" doc:"The settings to change."`
}

var _ = operation.Component[tenantPatch]("UpdateTenant", "A merge patch (RFC 7396). Absent members do not change.")

func (p *tenantPatch) patch() rolecall.TenantPatch {
	return rolecall.TenantPatch{DisplayName: p.DisplayName, Settings: rolecall.SettingsPatch(p.Settings)}
}

// Check returns the field errors of the patch.
func (p *tenantPatch) Check() rolecall.FieldErrors {
	patch := p.patch()
	return patch.Check()
}

// settingsPatch is a change of the settings of a tenant. The value null restores the default of a
// setting, except of those whose default is no restriction.
type settingsPatch rolecall.SettingsPatch

var _ = operation.Component[settingsPatch]("UpdateTenantSettings", "The settings to change. Absent settings do not change. Where null is allowed, it restores the default.")
var _ = operation.SchemaOf[settingsPatch](settingsPatchSchema)

// settingsPatchSchema returns the schema of a change of settings. Each number can be null. Their defaults
// are in the descriptions, because generated clients send the default of a schema for an absent member.
func settingsPatchSchema(s *operation.Schemas, about string) *huma.Schema {
	settings := s.Object(reflect.TypeFor[otherSettingsPatch](), about)
	for _, n := range rolecall.NumberSettings {
		settings.Properties[n.Name] = &huma.Schema{
			Type: "integer", Nullable: true, Description: fmt.Sprintf("%s Null for the default, %d.", n.About, n.Default()),
			Minimum: new(float64(n.Min)), Maximum: new(float64(n.Max)),
		}
	}
	for _, t := range rolecall.TextSettings {
		text := &huma.Schema{Type: "string", Pattern: t.Pattern}
		if t.Pattern == "" {
			text = operation.Bounded(1, t.LengthMax)
		}
		text.Description = strings.TrimSpace(t.About + " " + text.Description)
		settings.Properties[t.Name] = operation.OrNull(text)
	}
	return settings
}

// UnmarshalWire reads an object of settings.
func (p *settingsPatch) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	p.Numbers, p.Texts = map[string]*int64{}, map[string]*string{}
	names := []string{"secondFactor", "passwordSignIn"}
	for _, n := range rolecall.NumberSettings {
		names = append(names, n.Name)
	}
	for _, t := range rolecall.TextSettings {
		names = append(names, t.Name)
	}
	d.Each(pointer, value, func(name string, value jsontext.Value) {
		if !slices.Contains(names, name) {
			d.Unknown(pointer, name, names)
			return
		}
		p.read(d, pointer, name, value)
	})
}

// read decodes the value of the setting with the name, and adds a field error if it is invalid.
func (p *settingsPatch) read(d *wire.Decoding, pointer, name string, value jsontext.Value) {
	switch name {
	case "secondFactor":
		var rule secondFactorPatch
		secondFactorDecoder.Continue(d, pointer+"/"+name, value, reflect.ValueOf(&rule).Elem())
		p.SecondFactor = rolecall.SecondFactorPatch(rule)
	case "passwordSignIn":
		if scope, ok := d.Text(pointer+"/"+name, value); ok {
			p.Passwords = rolecall.Some(scope)
		}
	default:
		if slices.ContainsFunc(rolecall.TextSettings, func(t rolecall.TextSetting) bool { return t.Name == name }) {
			p.Texts[name] = textOrNull(d, pointer+"/"+name, value)
			return
		}
		p.Numbers[name] = nil
		if value.Kind() == jsontext.KindNull {
			return
		}
		n, ok := wire.WholeNumber(string(value))
		if !ok {
			delete(p.Numbers, name)
			d.Add(pointer+"/"+name, "type", "must be a whole number")
			return
		}
		p.Numbers[name] = &n
	}
}

// textOrNull decodes a string or null. For any other value, it adds a field error.
func textOrNull(d *wire.Decoding, pointer string, value jsontext.Value) *string {
	if value.Kind() != jsontext.KindNull {
		if text, ok := d.Text(pointer, value); ok {
			return &text
		}
	}
	return nil
}

// otherSettingsPatch describes, for the OpenAPI document, the settings in a settingsPatch that
// are neither numbers nor texts.
type otherSettingsPatch struct {
	SecondFactor   secondFactorPatch         `json:"secondFactor" doc:"Which users must have a second factor."`
	PasswordSignIn rolecall.Optional[string] `json:"passwordSignIn" enum:"all,owners" doc:"Which users can begin a session with a password, a passkey alone or a mailed link: all, or only owners. With owners, other users sign in with a connection to an identity provider."`
}

// secondFactorPatch changes which users need a second factor.
type secondFactorPatch struct {
	Required rolecall.Optional[string]   `json:"required" enum:"none,all,roles" doc:"Which users must have a second factor: none, all, or roles (the users with one of the roles in the member roles)."`
	Roles    rolecall.Optional[[]string] `json:"roles" maxItems:"100" format:"uuid" doc:"IDs of the roles whose users must have a second factor. Stored only if the member required has the value roles. It can be empty only with another value."`
}

var _ = operation.Component[secondFactorPatch]("UpdateSecondFactorRule", "Which users must have a second factor.")

var secondFactorDecoder = wire.NewDecoder(reflect.TypeFor[secondFactorPatch]())

// tenantBody is a tenant with its effective settings. It has only the id if the caller may not read
// the tenant.
type tenantBody struct {
	ID          rolecall.TenantID     `json:"id" doc:"ID of the tenant."`
	Name        string                `json:"name" doc:"Name of the tenant. Requests send it in the header x-tenant-schema. It never changes."`
	DisplayName string                `json:"displayName" doc:"Display name of the tenant."`
	Status      rolecall.TenantStatus `json:"status" doc:"active, suspended or deleted. Later versions may add values."`
	Settings    settingsBody          `json:"settings" doc:"The effective settings."`
	Logo        *logoBody             `json:"logo" doc:"The logo of the tenant. GET /tenant/logo returns the image. Null if the tenant has no logo."`
	CreatedAt   rolecall.Time         `json:"createdAt" doc:"When the tenant was created."`
	UpdatedAt   rolecall.Time         `json:"updatedAt" doc:"When the tenant was changed last."`
	PurgeAt     rolecall.Time         `json:"purgeAt,omitzero" doc:"Only for a deleted tenant: until when it can be restored. After that, its data is removed. Only operators can read deleted tenants."`
	readable    bool
}

var _ = operation.ComponentOrID[tenantBody]("Tenant", "A tenant. Callers without tenant:read get the ID only.")
var _ = operation.Component[operation.Page[tenantBody]]("TenantPage", "A page of tenants.")

func newTenantBody(t *rolecall.Tenant, readable bool) tenantBody {
	return tenantBody{t.ID, t.Name, t.DisplayName, t.Status, settingsBody(t.Settings), newLogoBody(t.Logo), t.CreatedAt, t.UpdatedAt, t.PurgeAt, readable}
}

// settingsBody is the effective settings of a tenant. Its JSON has a number for each entry of
// rolecall.NumberSettings, a text or null for each of rolecall.TextSettings, and the members of otherSettings.
type settingsBody rolecall.TenantSettings

var _ = operation.Component[settingsBody]("TenantSettings", "The effective settings of a tenant.")
var _ = operation.SchemaOf[settingsBody](settingsSchema)

// settingsSchema returns the schema of the effective settings of a tenant.
func settingsSchema(s *operation.Schemas, about string) *huma.Schema {
	settings := s.Object(reflect.TypeFor[otherSettings](), about)
	for _, n := range rolecall.NumberSettings {
		settings.Properties[n.Name] = &huma.Schema{Type: "integer", Description: n.About}
		settings.Required = append(settings.Required, n.Name)
	}
	for _, t := range rolecall.TextSettings {
		settings.Properties[t.Name] = operation.OrNull(&huma.Schema{Type: "string", Description: t.About})
		settings.Required = append(settings.Required, t.Name)
	}
	slices.Sort(settings.Required)
	return settings
}

// otherSettings are the settings that are neither numbers nor texts.
type otherSettings struct {
	SecondFactor   secondFactorRule       `json:"secondFactor" doc:"Which users must have a second factor."`
	PasswordSignIn rolecall.PasswordScope `json:"passwordSignIn" doc:"Which users can begin a session with a password, a passkey alone or a mailed link: all, or only owners. With owners, other users sign in with a connection to an identity provider."`
}

// secondFactorRule states which users need a second factor.
type secondFactorRule struct {
	Required rolecall.SecondFactorScope `json:"required" doc:"Which users must have a second factor: none, all, or roles (the users with one of the roles in the member roles)."`
	Roles    []rolecall.RoleID          `json:"roles" doc:"IDs of the roles whose users must have a second factor."`
}

var _ = operation.Component[secondFactorRule]("SecondFactorRule", "Which users must have a second factor.")

var otherSettingsEncoder = wire.NewEncoder[otherSettings]()

// AppendJSON appends the effective settings.
func (s *settingsBody) AppendJSON(b []byte) []byte {
	settings := rolecall.TenantSettings(*s)
	b = append(b, '{')
	for _, n := range rolecall.NumberSettings {
		b = append(wire.AppendText(b, n.Name), ':')
		b = append(strconv.AppendInt(b, n.InForce(settings), 10), ',')
	}
	rule := secondFactorRule{settings.SecondFactor.Scope(), settings.SecondFactor.Roles}
	other := otherSettings{SecondFactor: rule, PasswordSignIn: settings.PasswordScope()}
	last := len(b) - 1
	b = otherSettingsEncoder.Append(b[:last], &other)
	b[last] = ','
	b = b[:len(b)-1] // the brace
	for _, t := range rolecall.TextSettings {
		b = append(wire.AppendText(append(b, ','), t.Name), ':')
		if value := t.Stored(&settings); value != nil {
			b = wire.AppendText(b, *value)
		} else {
			b = append(b, "null"...)
		}
	}
	return append(b, '}')
}

var (
	tenantEncoder = wire.NewEncoder[tenantFields]()
	tenantID0     = tenantEncoder.Fields("id")
)

// tenantFields is tenantBody without its methods, so that tenantEncoder encodes the fields.
type tenantFields tenantBody

// AppendJSON appends the members that the caller may read.
func (b *tenantBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return tenantEncoder.AppendFields(out, (*tenantFields)(b), tenantID0)
	}
	return tenantEncoder.Append(out, (*tenantFields)(b))
}

func (b *tenantBody) HasTag() bool { return b.readable }

// tenantTag returns the ETag of a tenant.
func tenantTag(t *rolecall.Tenant) string {
	body := newTenantBody(t, true)
	return secret.ETag(body.AppendJSON(nil))
}
