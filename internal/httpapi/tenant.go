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
	patch.Settings = map[string]*rolecall.Seconds{}
	err = x.decode(
		member{"name", false, immutable},
		member{"displayName", false, optional(&patch.DisplayName, readString)},
		member{"settings", false, readSettings(patch.Settings)},
	).err(patch.Check)
	return patch, err
}

// readSettings reads an object of settings; null is the default of all of them.
func readSettings(into map[string]*rolecall.Seconds) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		var settings []member
		for _, name := range rolecall.SettingNames() {
			settings = append(settings, member{name, false, readSeconds(name, into)})
			if isNull(value) {
				into[name] = nil
			}
		}
		readObject(settings...)(d, pointer, value)
	}
}

// readSeconds reads a whole number of seconds, or null for the default.
func readSeconds(name string, into map[string]*rolecall.Seconds) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			into[name] = nil
			return
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			d.faults.Add(pointer, "type", "must be a whole number of seconds")
			return
		}
		seconds := rolecall.Seconds(n)
		into[name] = &seconds
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
	for i, name := range rolecall.SettingNames() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = strconv.AppendInt(b, int64(t.Settings.Effective(name)), 10)
	}
	b = append(b, `},"createdAt":`...)
	b = appendTime(b, t.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, t.UpdatedAt)
	return append(b, '}')
}
