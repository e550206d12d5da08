package console

import (
	"errors"

	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

func (c *console) settingsPages() []page {
	return []page{
		{path: "/{tenant}/settings", operation: "TenantController_getTenant", show: c.showSettings},
		{path: "/{tenant}/settings/edit", operation: "TenantController_updateTenant", show: c.showSettingsEdit, act: c.editSettings},
	}
}

// The names of form fields for settings that are not numbers. Each is the JSON pointer to a
// member of the operation's request body, without the leading slash.
const (
	fieldRequired      = "settings/secondFactor/required"
	fieldRequiredRoles = "settings/secondFactor/roles"
	fieldPasswords     = "settings/passwordSignIn"
	fieldSender        = "settings/mailSenderName"
	fieldBrandColor    = "settings/brandColor"
)

// settingWords describes a setting whose value is a number.
type settingWords struct {
	name         string
	unit         string // the message key of its unit; empty for a duration
	weakens      bool   // a change of the value can reduce security
	lessIsWeaker bool
}

// key returns the prefix of the message keys label, detail and weaker.
func (w settingWords) key() string { return "setting." + w.name }

func (w settingWords) label() string  { return msg(w.key() + ".label") }
func (w settingWords) detail() string { return msg(w.key() + ".detail") }

// settingGroup is a group of settings on the settings page.
type settingGroup struct {
	title    string // the message key of its title
	settings []settingWords
}

// settingGroups are the groups of number settings, in the order of the settings page.
var settingGroups = []settingGroup{
	{"user.sessions", []settingWords{
		{name: "sessionIdleSeconds", weakens: true},
		{name: "sessionAbsoluteSeconds", weakens: true},
		{name: "sessionsPerUser", unit: "user.session-count"},
		{name: "reauthenticationSeconds", weakens: true},
		{name: "refreshGraceSeconds", weakens: true},
	}},
	{"settings.passwords", []settingWords{
		{name: "passwordMinimum", unit: "settings.characters", weakens: true, lessIsWeaker: true},
		{name: "passwordResetSeconds", weakens: true},
		{name: "invitationSeconds", weakens: true},
	}},
	{"settings.names", []settingWords{
		{name: "nameMinimum", unit: "settings.characters"},
	}},
	{"settings.retention", []settingWords{
		{name: "eventsKeptSeconds", weakens: true, lessIsWeaker: true},
		{name: "idempotencyKeptSeconds"},
	}},
}

// settingTexts are the settings of all groups, by their names.
var settingTexts = func() map[string]settingWords {
	all := map[string]settingWords{}
	for _, g := range settingGroups {
		for _, w := range g.settings {
			all[w.name] = w
		}
	}
	return all
}()

// settingNamed returns the number setting with the name.
func settingNamed(name string) rolecall.NumberSetting {
	return rolecall.NumberSettings[slices.IndexFunc(rolecall.NumberSettings, func(n rolecall.NumberSetting) bool { return n.Name == name })]
}

// of formats the value with its unit, so that read can parse it.
func (w settingWords) of(value int64) string {
	if w.unit != "" {
		return msg(w.unit, "Count", int(value))
	}
	return lifetime(time.Duration(value) * time.Second)
}

// read parses the text of a form field. It returns false if the text is not a number of the
// setting's unit.
func (w settingWords) read(text string) (value int64, ok bool) {
	if w.unit == "" {
		return readLifetime(text)
	}
	digits := strings.TrimSpace(text)
	for _, count := range []int{1, 2, 5} { // these counts have different plural forms in some languages
		digits = strings.TrimSpace(strings.TrimSuffix(digits, unitName(w.unit, count)))
	}
	value, err := strconv.ParseInt(strings.ReplaceAll(digits, msg("number.group"), ""), 10, 64)
	return value, err == nil
}

// advice returns the help text of the setting in the form: its description, bounds and
// defaults.
func (w settingWords) advice(n rolecall.NumberSetting) string {
	least, most := w.bounds(n)
	if guarded := guardedDefault(n); guarded != n.Default() {
		return msg("settings.advice-guarded", "Detail", w.detail(), "Least", least, "Most", most, "Default", w.of(n.Default()), "Guarded", w.of(guarded))
	}
	return msg("settings.advice", "Detail", w.detail(), "Least", least, "Most", most, "Default", w.of(n.Default()))
}

// note returns the description of the setting. It adds the default for users who must have
// a second factor if their default differs.
func (w settingWords) note(n rolecall.NumberSetting) string {
	if guarded := guardedDefault(n); guarded != n.Default() {
		return msg("settings.note-guarded", "Detail", w.detail(), "Guarded", w.of(guarded))
	}
	return w.detail()
}

// guardedDefault returns the default of the setting for users who must have a second
// factor.
func guardedDefault(n rolecall.NumberSetting) int64 {
	return n.InForce(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
}

// bounds returns the smallest and the largest value of the setting.
func (w settingWords) bounds(n rolecall.NumberSetting) (least, most string) {
	least = w.of(n.Min)
	if w.unit != "" {
		least = thousands(int(n.Min))
	}
	return least, w.of(n.Max)
}

// formatFault returns the error message for a text that is not a value of the setting.
func (w settingWords) formatFault(n rolecall.NumberSetting) string {
	if w.unit == "" {
		return msg("settings.duration-format", "Example", w.of(n.Default()))
	}
	least, most := w.bounds(n)
	return msg("settings.number-format", "Least", least, "Most", most)
}

// isWeaker reports whether the new value is less secure than the value before. A value of 0
// for reauthenticationSeconds disables re-authentication, so it is less secure than all
// others.
func (w settingWords) isWeaker(n rolecall.NumberSetting, value, before int64) bool {
	switch {
	case !w.weakens || value == before:
		return false
	case n.Name == "reauthenticationSeconds" && (value == 0 || before == 0):
		return value == 0
	}
	return w.lessIsWeaker == (value < before)
}

// weakenings returns a warning for each setting that is less secure after the change.
// nameOf returns the name of a role.
func weakenings(before, after rolecall.TenantSettings, nameOf func(rolecall.RoleID) string) (list []string) {
	was, is := before.SecondFactor, after.SecondFactor
	switch {
	case was.Scope() == rolecall.SecondFactorOfNobody || is.Scope() == rolecall.SecondFactorOfAll:
	case is.Scope() == rolecall.SecondFactorOfNobody:
		list = append(list, msg("settings.weaker-nobody"))
	case was.Scope() == rolecall.SecondFactorOfAll:
		list = append(list, msg("settings.weaker-roles"))
	default:
		for _, id := range was.Roles {
			if !slices.Contains(is.Roles, id) {
				list = append(list, msg("settings.weaker-role", "Role", nameOf(id)))
			}
		}
	}
	if before.PasswordScope() == rolecall.PasswordsOfOwners && after.PasswordScope() == rolecall.PasswordsOfAll {
		list = append(list, msg("settings.weaker-passwords"))
	}
	for _, n := range rolecall.NumberSettings {
		w, value, old := settingTexts[n.Name], n.InForce(after), n.InForce(before)
		switch {
		case !w.isWeaker(n, value, old):
		case value == 0:
			list = append(list, msg("setting.reauthenticationSeconds.off"))
		default:
			list = append(list, msg(w.key()+".weaker", "New", w.of(value), "Old", w.of(old)))
		}
	}
	return list
}

// adjustments describes each setting that was not changed in the form and has another value after the
// change, because the change gives it another default. It leaves out those in weakenings.
func adjustments(before, after rolecall.TenantSettings, typed map[string]*int64) (list []string) {
	for _, n := range rolecall.NumberSettings {
		w, value, old := settingTexts[n.Name], n.InForce(after), n.InForce(before)
		if _, isTyped := typed[n.Name]; !isTyped && value != old && !w.isWeaker(n, value, old) {
			list = append(list, msg("settings.adjusted", "Setting", w.label(), "New", w.of(value), "Old", w.of(old)))
		}
	}
	return list
}

// warn adds the warnings about the change to view.
func (c *console) warn(v *pageContext, view *settingsView, after rolecall.TenantSettings, typed map[string]*int64) (err error) {
	before := view.tenant.Settings
	view.weakens = weakenings(before, after, view.roleName)
	view.adjusts, view.inForce = adjustments(before, after, typed), map[string]int64{}
	for _, n := range rolecall.NumberSettings {
		if _, isTyped := typed[n.Name]; !isTyped {
			view.inForce[n.Name] = n.InForce(after)
		}
	}
	if view.signsOut, err = c.signOuts(v, before, after); err != nil {
		return err
	}
	if view.locksOut, err = c.lockOuts(v, before, after); err != nil {
		return err
	}
	accepted := slices.Concat(view.weakens, view.adjusts, view.locksOut)
	if view.signsOut != nil { // without the number of users, because the number can change before the form is sent
		accepted = append(accepted, string(after.SecondFactor.Scope()))
		for _, id := range after.SecondFactor.Roles {
			accepted = append(accepted, id.String())
		}
	}
	view.accepted = strings.Join(accepted, "\n")
	return nil
}

// signOuts describes the effects of a change that requires a second factor from more users.
// It returns nil for other changes.
func (c *console) signOuts(v *pageContext, before, after rolecall.TenantSettings) (effects []string, err error) {
	was, is := before.SecondFactor, after.SecondFactor
	isNew := func(id rolecall.RoleID) bool { return !slices.Contains(was.Roles, id) }
	switch {
	case was.Scope() == rolecall.SecondFactorOfAll, is.Scope() != rolecall.SecondFactorOfAll && !slices.ContainsFunc(is.Roles, isNew):
		return nil, nil
	case is.Scope() == rolecall.SecondFactorOfAll && was.Scope() == rolecall.SecondFactorOfNobody:
		total, err := c.signin.UsersWithoutFactor(v.ctx, v.call)
		if err != nil {
			return nil, err
		}
		key := map[bool]string{true: "settings.signs-out", false: "settings.signs-out-at-least"}[total.Exact]
		effects = append(effects, msg(key, "Count", total.Count))
	default:
		effects = append(effects, msg("settings.signs-out-some"))
	}
	if c.isSignedOutBy(v, after) {
		effects = append(effects, msg("settings.signs-out-you"))
	}
	return append(effects, msg("settings.stops-tokens")), nil
}

// lockOuts describes the effects of a change after which only owners can sign in with a password. It returns
// nil for other changes.
func (c *console) lockOuts(v *pageContext, before, after rolecall.TenantSettings) ([]string, error) {
	if before.PasswordScope() == after.PasswordScope() || after.PasswordScope() != rolecall.PasswordsOfOwners {
		return nil, nil
	}
	effects := []string{msg("settings.locks-out"), msg("settings.locks-out-links"), msg("settings.locks-out-sessions")}
	if authz.ReadConnections.Authorize(v.call.Principal) != nil {
		return effects, nil
	}
	list, err := c.signin.Connections(v.ctx, v.call)
	if len(list) == 0 {
		effects = append(effects, msg("connections.no-way"))
	}
	return effects, err
}

// isSignedOutBy reports whether the settings require a second factor and the caller has
// signed in without one.
func (c *console) isSignedOutBy(v *pageContext, s rolecall.TenantSettings) bool {
	return !v.call.Session.SecondFactor && s.For(v.call.Assignments, c.access.Now()).RequireFactor()
}

// settingsView is the data of the pages of settings.
type settingsView struct {
	frame
	roleChoices
	tenant   rolecall.Tenant
	weakens  []string         // warnings about settings that are less secure after the change
	adjusts  []string         // settings whose value changes because their default does
	inForce  map[string]int64 // the values of these settings after the change
	signsOut []string         // the effects of requiring a second factor from more users
	locksOut []string         // the effects of allowing passwords only for owners
	accepted string           // identifies the warnings; the form sends it back if the user accepts them
	history  *history         // nil if the caller may not read events
}

func (c *console) settingsView(v *pageContext) (view settingsView, err error) {
	if view.tenant, err = c.directory.CurrentTenant(v.ctx, v.call); err == nil {
		view.roleChoices, err = c.readRoleChoices(v)
	}
	return view, err
}

func (c *console) showSettings(v *pageContext) error {
	view, err := c.settingsView(v)
	if err != nil {
		return err
	}
	if view.history, err = c.historyOf(v, rolecall.AnyID(view.tenant.ID), rolecall.EventTenantUpdated); err != nil {
		return err
	}
	return c.show(v, msg(settingsSection), settingsSection, func(f frame) templ.Component {
		view.frame = f
		return settingsPage(view)
	})
}

func (c *console) showSettingsEdit(v *pageContext) error {
	view, err := c.settingsView(v)
	if err != nil {
		return err
	}
	return c.showSettingsForm(v, view)
}

func (c *console) showSettingsForm(v *pageContext, view settingsView) error {
	return c.show(v, msg("settings.edit"), settingsSection, func(f frame) templ.Component {
		view.frame = f
		return settingsEditPage(view)
	})
}

// editSettings saves the changed settings. If the change makes settings less secure, or
// signs users out, editSettings first shows warnings. It saves when the user has accepted
// these warnings.
func (c *console) editSettings(v *pageContext) error {
	patch, err := settingsPatch(v)
	if err != nil {
		return err
	}
	view, err := c.settingsView(v)
	if err != nil {
		return err
	}
	if match := match(v, tenantTag); (match == nil || match(&view.tenant)) && patch.CheckOn(view.tenant.Settings) == nil {
		changed, _ := patch.Apply(view.tenant, c.access.Now())
		if err := c.warn(v, &view, changed.Settings, patch.Settings.Numbers); err != nil {
			return err
		}
		if view.accepted != strings.ReplaceAll(v.form.Get("accepted"), "\r\n", "\n") {
			return c.showSettingsForm(v, view)
		}
	}
	tenant, err := c.directory.UpdateTenant(v.ctx, v.call, patch, match(v, tenantTag))
	if err != nil {
		return inSettingWords(err)
	}
	if c.isSignedOutBy(v, tenant.Settings) {
		return signedOut(v, "second-factor-required")
	}
	return v.redirect(v.path("/settings") + "?done=saved")
}

// settingsPatch returns the changes in the form. It returns a field error if the text of a
// number cannot be parsed.
func settingsPatch(v *pageContext) (patch rolecall.TenantPatch, err error) {
	var faults rolecall.FieldErrors
	if name, changed := typed(v, "displayName"); changed {
		patch.DisplayName = rolecall.Some(name)
	}
	patch.Settings.Numbers = map[string]*int64{}
	for _, n := range rolecall.NumberSettings {
		text, changed := typed(v, "settings/"+n.Name)
		if !changed {
			continue
		}
		w := settingTexts[n.Name]
		if value, ok := w.read(text); ok {
			patch.Settings.Numbers[n.Name] = &value
		} else if strings.TrimSpace(text) == "" {
			patch.Settings.Numbers[n.Name] = nil
		} else {
			faults.Add("/settings/"+n.Name, "format", w.formatFault(n))
		}
	}
	if required, changed := typed(v, fieldRequired); changed {
		patch.Settings.SecondFactor.Required = rolecall.Some(required)
	}
	if roles, changed := typedSet(v, fieldRequiredRoles); changed && v.form.Get(fieldRequired) == string(rolecall.SecondFactorOfRoles) {
		patch.Settings.SecondFactor.Roles = rolecall.Some(roles)
	}
	if scope, changed := typed(v, fieldPasswords); changed {
		patch.Settings.Passwords = rolecall.Some(scope)
	}
	patch.Settings.Texts = map[string]*string{}
	for _, t := range rolecall.TextSettings {
		if text, changed := typed(v, "settings/"+t.Name); changed {
			patch.Settings.Texts[t.Name] = orNil(text)
		}
	}
	return patch, faults.Err()
}

// inSettingWords rewrites the field errors of settings for the form: bounds appear in the
// units of the form. It returns other errors unchanged.
func inSettingWords(err error) error {
	known, ok := errors.AsType[*rolecall.Error](err)
	if !ok || known.FieldErrors == nil {
		return err
	}
	faults := slices.Clone(known.FieldErrors)
	for i, fault := range faults {
		name := strings.TrimPrefix(fault.Pointer, "/settings/")
		w, isNumber := settingTexts[name]
		switch {
		case isNumber && fault.Code == "range":
			least, most := w.bounds(settingNamed(name))
			faults[i].Detail = msg("settings.out-of-bounds", "Least", least, "Most", most)
		case fault.Pointer == "/"+fieldBrandColor:
			faults[i].Detail = msg("settings.color-format")
		case name == "sessionIdleSeconds" && fault.Code == "conflict":
			faults[i].Detail = msg("settings.idle-too-long", "Default", settingTexts["sessionAbsoluteSeconds"].of(guardedDefault(settingNamed("sessionAbsoluteSeconds"))))
		case strings.Contains(fault.Detail, "sessionIdleSeconds"):
			faults[i].Detail = msg("settings.idle-conflict")
		case name == "passwordMinimum" && fault.Code == "conflict":
			faults[i].Detail = msg("settings.password-too-short")
		case strings.Contains(fault.Detail, "passwordMinimum"):
			faults[i].Detail = msg("settings.password-conflict")
		}
	}
	return known.WithFieldErrors(faults...)
}

// valueOf returns the value that the form shows for the setting: the saved one or, while the form asks for
// confirmation, the one after the change. So a user who wants to keep the old value can enter it.
func (s settingsView) valueOf(n rolecall.NumberSetting) int64 {
	if value, ok := s.inForce[n.Name]; ok && s.accepted != "" {
		return value
	}
	return n.InForce(s.tenant.Settings)
}

// requiredRoles returns the ids of the roles that require a second factor.
func (s settingsView) requiredRoles() (ids []string) {
	for _, id := range s.tenant.Settings.SecondFactor.Roles {
		ids = append(ids, id.String())
	}
	return ids
}

// scopeWords describes which users need a second factor.
func scopeWords(scope rolecall.SecondFactorScope) string {
	return msg("settings.scope-" + string(scope))
}

// passwordWords describes which users can sign in with a password.
func passwordWords(scope rolecall.PasswordScope) string {
	return msg("settings.passwords-" + string(scope))
}
