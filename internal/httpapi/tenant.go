package httpapi

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

func getTenant(x *exchange) error {
	tenant, err := x.server.service.CurrentTenant(x.ctx, x.call)
	if err != nil {
		return err
	}
	x.out = appendTenant(x.out, &tenant)
	return x.tagged(http.StatusOK)
}

func updateTenant(x *exchange) error {
	patch, err := x.tenantPatch()
	if err != nil {
		return err
	}
	tenant, err := x.server.service.UpdateTenant(x.ctx, x.call, patch, x.matchTenant())
	if err != nil {
		return err
	}
	if x.call.Reach(rolecall.TenantRead).IsNowhere() {
		x.out = append(appendID(append(x.out, `{"id":`...), tenant.ID), '}')
		return x.json(http.StatusOK)
	}
	x.out = appendTenant(x.out, &tenant)
	return x.tagged(http.StatusOK)
}

func (x *exchange) tenantPatch() (patch rolecall.TenantPatch, err error) {
	err = x.decode(
		member{"name", false, immutable},
		member{"displayName", false, optional(&patch.DisplayName, readString)},
		member{"settings", false, readSettings(&patch.Settings)},
	).err(patch.Check)
	return patch, err
}

// readSettings reads an object of settings; null is the default of all of them.
func readSettings(into *rolecall.SettingsPatch) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		into.Numbers = map[string]*int64{}
		members := []member{
			{"secondFactor", false, readSecondFactor(&into.SecondFactor)},
			{"mailSenderName", false, optional(&into.MailSender, readNullable)},
		}
		for _, n := range rolecall.NumberSettings {
			members = append(members, member{n.Name, false, readNumber(n.Name, into.Numbers)})
		}
		eachOrNull(d, pointer, value, members)
	}
}

// readSecondFactor reads of whom a second factor is demanded; null is of nobody.
func readSecondFactor(into *rolecall.SecondFactorPatch) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		eachOrNull(d, pointer, value, []member{
			{"required", false, optional(&into.Required, readNullable)},
			{"roles", false, optional(&into.Roles, readStrings)},
		})
	}
}

// eachOrNull reads an object of the members; null is null for each of them.
func eachOrNull(d *decoder, pointer string, value jsontext.Value, members []member) {
	if !isNull(value) {
		d.object(pointer, value, members)
		return
	}
	for _, m := range members {
		m.read(d, pointer+"/"+m.name, value)
	}
}

// readNumber reads a whole number, or null for the default.
func readNumber(name string, into map[string]*int64) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			into[name] = nil
			return
		}
		n, ok := wholeNumber(string(value))
		if !ok {
			d.faults.Add(pointer, "type", "must be a whole number")
			return
		}
		into[name] = &n
	}
}

// matchTenant is If-Match for the service.
func (x *exchange) matchTenant() service.Match[rolecall.Tenant] {
	if !x.in.ifMatch.given {
		return nil
	}
	wanted := x.in.ifMatch
	return func(t *rolecall.Tenant) bool { return wanted.matches(secret.ETag(appendTenant(nil, t))) }
}

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
