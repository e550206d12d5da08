package rolecall_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func patchOf(settings rolecall.SettingsPatch) rolecall.TenantPatch {
	return rolecall.TenantPatch{Settings: settings}
}

func numbers(all map[string]*int64) rolecall.SettingsPatch {
	return rolecall.SettingsPatch{Numbers: all}
}

func number(name string, value int64) rolecall.SettingsPatch {
	return numbers(map[string]*int64{name: &value})
}

// factor returns a patch of the second factor rule. An empty scope and nil roles are not in
// the patch.
func factor(scope string, roles ...string) rolecall.SettingsPatch {
	var patch rolecall.SettingsPatch
	if scope != "" {
		patch.SecondFactor.Required = rolecall.Some(scope)
	}
	if roles != nil {
		patch.SecondFactor.Roles = rolecall.Some(roles)
	}
	return patch
}

func TestEverySettingHasADefaultAndBounds(t *testing.T) {
	for _, n := range rolecall.NumberSettings {
		if n.About == "" || n.Default() < n.Min || n.Default() > n.Max {
			t.Errorf("%s is %q, from %d to %d, by default %d", n.Name, n.About, n.Min, n.Max, n.Default())
		}
		for value, good := range map[int64]bool{n.Min: true, n.Max: true, n.Min - 1: false, n.Max + 1: false} {
			patch := patchOf(number(n.Name, value))
			if got := faultsOf(patch.Check()); good && got != "" || !good && got != "/settings/"+n.Name+" range" {
				t.Errorf("%s of %d: %q", n.Name, value, got)
			}
			if changed, _ := patch.Apply(rolecall.Tenant{}, aMoment); n.InForce(changed.Settings) != value {
				t.Errorf("%s is %d, not %d", n.Name, n.InForce(changed.Settings), value)
			}
		}
	}
}

func TestLifetimesWhereAFactorIsRequired(t *testing.T) {
	for name, c := range map[string]struct {
		settings       rolecall.TenantSettings
		idle, absolute time.Duration
	}{
		"of nobody":       {rolecall.TenantSettings{}, 12 * time.Hour, 7 * 24 * time.Hour},
		"of some":         {rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles}}, 12 * time.Hour, 7 * 24 * time.Hour},
		"of all":          {rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}}, time.Hour, 24 * time.Hour},
		"of all, but set": {rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}, SessionIdle: new(int64(7200)), SessionAbsolute: new(int64(172800))}, 2 * time.Hour, 48 * time.Hour},
		"a short life":    {rolecall.TenantSettings{SessionAbsolute: new(int64(600))}, 10 * time.Minute, 10 * time.Minute},
	} {
		if idle, absolute := c.settings.IdleLifetime(), c.settings.AbsoluteLifetime(); idle != c.idle || absolute != c.absolute {
			t.Errorf("%s: %v idle, %v at most", name, idle, absolute)
		}
	}
}

func TestSettingsThatMustFitTogether(t *testing.T) {
	role, other := rolecall.NewID[rolecall.Role](aMoment), rolecall.NewID[rolecall.Role](aMoment+1)
	ofAll := rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}
	ofRole := rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role}}
	both := func(a, b rolecall.SettingsPatch) rolecall.SettingsPatch {
		for name, value := range b.Numbers {
			a.Numbers = map[string]*int64{name: value}
		}
		return a
	}
	longName := rolecall.SettingsPatch{Texts: map[string]*string{"mailSenderName": new(strings.Repeat("a", 101))}}
	for name, c := range map[string]struct {
		old    rolecall.TenantSettings
		patch  rolecall.SettingsPatch
		faults string
	}{
		"a short password alone":               {rolecall.TenantSettings{}, number("passwordMinimum", 14), "/settings/passwordMinimum conflict"},
		"a short password with a factor":       {rolecall.TenantSettings{SecondFactor: ofAll}, number("passwordMinimum", 8), ""},
		"a short password with some factors":   {rolecall.TenantSettings{SecondFactor: ofRole}, number("passwordMinimum", 14), "/settings/passwordMinimum conflict"},
		"both at once":                         {rolecall.TenantSettings{}, both(factor("all"), number("passwordMinimum", 8)), ""},
		"a factor of fewer":                    {rolecall.TenantSettings{SecondFactor: ofAll, PasswordMin: new(int64(8))}, factor("roles", role.String()), "/settings/secondFactor/required conflict"},
		"no factor":                            {rolecall.TenantSettings{SecondFactor: ofAll, PasswordMin: new(int64(8))}, factor("none"), "/settings/secondFactor/required conflict"},
		"no factor and a long password":        {rolecall.TenantSettings{SecondFactor: ofAll, PasswordMin: new(int64(8))}, both(factor("none"), number("passwordMinimum", 15)), ""},
		"something else of an odd tenant":      {rolecall.TenantSettings{PasswordMin: new(int64(8)), SessionIdle: new(int64(86400)), SessionAbsolute: new(int64(600))}, number("sessionsPerUser", 5), ""},
		"idle longer than it lives":            {rolecall.TenantSettings{SessionAbsolute: new(int64(600))}, number("sessionIdleSeconds", 601), "/settings/sessionIdleSeconds conflict"},
		"idle as long as it lives":             {rolecall.TenantSettings{SessionAbsolute: new(int64(600))}, number("sessionIdleSeconds", 600), ""},
		"idle longer than the default":         {rolecall.TenantSettings{}, number("sessionIdleSeconds", 7*86400+1), "/settings/sessionIdleSeconds conflict"},
		"a life shorter than idle":             {rolecall.TenantSettings{SessionIdle: new(int64(600))}, number("sessionAbsoluteSeconds", 300), "/settings/sessionAbsoluteSeconds conflict"},
		"a life shorter than the default idle": {rolecall.TenantSettings{}, number("sessionAbsoluteSeconds", 300), ""},
		"a factor that shortens the life":      {rolecall.TenantSettings{SessionIdle: new(int64(86401))}, factor("all"), "/settings/secondFactor/required conflict"},
		"roles without a role":                 {rolecall.TenantSettings{}, factor("roles"), "/settings/secondFactor/roles required"},
		"roles that are taken away":            {rolecall.TenantSettings{SecondFactor: ofRole}, rolecall.SettingsPatch{SecondFactor: rolecall.SecondFactorPatch{Roles: rolecall.Some[[]string](nil)}}, "/settings/secondFactor/roles required"},
		"other roles":                          {rolecall.TenantSettings{SecondFactor: ofRole}, factor("", other.String()), ""},
		"roles where all are required":         {rolecall.TenantSettings{SecondFactor: ofAll}, factor("", role.String()), "/settings/secondFactor/roles conflict"},
		"no scope":                             {rolecall.TenantSettings{}, factor("everybody", "x"), "/settings/secondFactor/required format; /settings/secondFactor/roles/0 format; /settings/secondFactor/roles conflict"},
		"too many roles":                       {rolecall.TenantSettings{}, factor("roles", slices.Repeat([]string{role.String()}, 101)...), "/settings/secondFactor/roles too-many"},
		"a long name":                          {rolecall.TenantSettings{}, longName, "/settings/mailSenderName length"},
		"a color":                              {rolecall.TenantSettings{}, rolecall.SettingsPatch{Texts: map[string]*string{"brandColor": new("#09aFbc")}}, ""},
		"a short color":                        {rolecall.TenantSettings{}, rolecall.SettingsPatch{Texts: map[string]*string{"brandColor": new("#09f")}}, "/settings/brandColor format"},
		"a color of other letters":             {rolecall.TenantSettings{}, rolecall.SettingsPatch{Texts: map[string]*string{"brandColor": new("#09fg00")}}, "/settings/brandColor format"},
		"every fault at once":                  {rolecall.TenantSettings{}, both(longName, number("passwordMinimum", 14)), "/settings/mailSenderName length; /settings/passwordMinimum conflict"},
		"one fault of a member":                {rolecall.TenantSettings{}, number("passwordMinimum", 7), "/settings/passwordMinimum range"},
	} {
		patch := patchOf(c.patch)
		if got := faultsOf(patch.CheckOn(c.old)); got != c.faults {
			t.Errorf("%s: %q, not %q", name, got, c.faults)
		}
	}
}

func TestEventsAreKeptAtLeastAsLongAsOperatorsRequire(t *testing.T) {
	less, more := int64(2*86400), int64(500*86400)
	for _, test := range []struct {
		stored  *int64
		atLeast time.Duration
		want    time.Duration
	}{
		{nil, 0, rolecall.DefaultEventsKept}, {&less, 0, 48 * time.Hour}, {&less, 72 * time.Hour, 48 * time.Hour},
		{&more, 72 * time.Hour, 500 * 24 * time.Hour}, {nil, 72 * time.Hour, rolecall.DefaultEventsKept}, {nil, 600 * 24 * time.Hour, 600 * 24 * time.Hour},
	} {
		s := rolecall.TenantSettings{EventsKept: test.stored, EventsAtLeast: test.atLeast}
		if got := s.EventLifetime(); got != test.want {
			t.Errorf("%v with the minimum %v: kept %v, want %v", test.stored, test.atLeast, got, test.want)
		}
	}
	old := rolecall.TenantSettings{EventsKept: &less, EventsAtLeast: 72 * time.Hour}
	for value, want := range map[int64]string{259199: "[{/settings/eventsKeptSeconds range must be at least 259200, the minimum that the operators of this instance have set}]", 259200: "[]", 1: "[{/settings/eventsKeptSeconds range must be from 86400 to 316224000}]"} {
		patch := rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Numbers: map[string]*int64{"eventsKeptSeconds": &value}}}
		var got []string
		for _, f := range patch.CheckOn(old) {
			got = append(got, fmt.Sprintf("{%s %s %s}", f.Pointer, f.Code, f.Detail))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d: %v, want %v", value, got, want)
		}
	}
	other := rolecall.TenantPatch{DisplayName: rolecall.Some("Acme"), Settings: rolecall.SettingsPatch{Numbers: map[string]*int64{"eventsKeptSeconds": nil}}}
	if faults := other.CheckOn(old); faults != nil {
		t.Errorf("a change of other members and to the default: %v", faults)
	}
}

// TestTextSettings checks that a patch stores each text setting in its normal form, and that Equal compares it.
func TestTextSettings(t *testing.T) {
	for name, c := range map[string]struct{ given, stored string }{
		"mailSenderName": {"  People of Acme ", "People of Acme"},
		"brandColor":     {"#09AFbc", "#09afbc"},
	} {
		setting := rolecall.TextSettings[slices.IndexFunc(rolecall.TextSettings, func(s rolecall.TextSetting) bool { return s.Name == name })]
		for _, step := range []struct{ value, want *string }{{&c.given, &c.stored}, {nil, nil}} {
			patch := patchOf(rolecall.SettingsPatch{Texts: map[string]*string{name: step.value}})
			got, _ := patch.Apply(rolecall.Tenant{Settings: rolecall.TenantSettings{MailSender: new("Old"), BrandColor: new("#000000")}}, aMoment)
			if value := setting.Stored(&got.Settings); !reflect.DeepEqual(value, step.want) {
				t.Errorf("%s is stored wrongly: %+v", name, got.Settings)
			}
			if equal := got.Settings.Equal(rolecall.TenantSettings{MailSender: new("Old"), BrandColor: new("#000000")}); equal {
				t.Errorf("Equal does not compare %s", name)
			}
		}
	}
}

func TestTheRuleOfSecondFactors(t *testing.T) {
	first, second := rolecall.NewID[rolecall.Role](aMoment), rolecall.NewID[rolecall.Role](aMoment+1)
	ofRoles := func(roles ...rolecall.RoleID) rolecall.SecondFactorRule {
		return rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: roles}
	}
	for name, c := range map[string]struct {
		old   rolecall.SecondFactorRule
		patch rolecall.SettingsPatch
		want  rolecall.SecondFactorRule
	}{
		"roles are a set":       {rolecall.SecondFactorRule{}, factor("roles", second.String(), first.String(), second.String()), ofRoles(first, second)},
		"the roles alone":       {ofRoles(first), factor("", second.String()), ofRoles(second)},
		"all, and no roles":     {ofRoles(first), factor("all"), rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}},
		"none is the zero rule": {ofRoles(first), factor("none"), rolecall.SecondFactorRule{}},
		"nothing said":          {ofRoles(first), rolecall.SettingsPatch{}, ofRoles(first)},
	} {
		patch := patchOf(c.patch)
		got, changed := patch.Apply(rolecall.Tenant{Settings: rolecall.TenantSettings{SecondFactor: c.old}}, aMoment)
		rule := got.Settings.SecondFactor
		if rule.Required != c.want.Required || !slices.Equal(rule.Roles, c.want.Roles) || (changed == nil) != (name == "nothing said") {
			t.Errorf("%s: %+v, changed %q", name, rule, changed)
		}
	}
	holds := []rolecall.Assignment{{Role: rolecall.Role{ID: first}, ExpiresAt: aMoment}}
	for name, c := range map[string]struct {
		rule rolecall.SecondFactorRule
		now  rolecall.Time
		want bool
	}{
		"nobody": {rolecall.SecondFactorRule{}, 0, false}, "all": {rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}, 0, true},
		"holders": {ofRoles(second, first), aMoment - 1, true}, "others": {ofRoles(second), aMoment - 1, false}, "whose role is over": {ofRoles(first), aMoment, false},
	} {
		if got := c.rule.Demands(holds, c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestInvalidRolesOfTheSecondFactorRule(t *testing.T) {
	known := rolecall.NewID[rolecall.Role](aMoment)
	patch := factor("roles", rolecall.NewID[rolecall.Role](aMoment).String(), known.String(), "x").SecondFactor
	var faults rolecall.FieldErrors
	if patch.CheckRoles(&faults, []rolecall.Role{{ID: known}}); faultsOf(faults) != "/settings/secondFactor/roles/0 unknown-role" {
		t.Errorf("%+v", faults)
	}
}

// faultsOf returns the pointers and the codes of all field errors as one text.
func faultsOf(faults rolecall.FieldErrors) string {
	return strings.Join(codes(faults), "; ")
}
