package rolecall

import (
	"slices"
	"strings"
	"testing"
)

func aConnectionDraft() ConnectionDraft {
	return ConnectionDraft{Name: "Acme SSO", Issuer: "https://login.acme.example", ClientID: "rolecall", ClientSecret: "secret"}
}

func TestConnectionDrafts(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*ConnectionDraft)
		pointers []string
	}{
		"valid":      {func(*ConnectionDraft) {}, nil},
		"short name": {func(d *ConnectionDraft) { d.Name = "a" }, []string{"/name"}},
		"long issuer": {func(d *ConnectionDraft) {
			d.Issuer = "https://login.acme.example/" + strings.Repeat("a", ConnectionIssuerMax)
		}, []string{"/issuer"}},
		"domains": {func(d *ConnectionDraft) {
			d.Domains = []string{"acme.example", "gmail.com", "@acme.example", "a b", "acme.example."}
		}, []string{"/domains/2", "/domains/3", "/domains/4"}},
		"an empty list of domains": {func(d *ConnectionDraft) { d.Domains = []string{} }, []string{"/domains"}},
		"too many domains":         {func(d *ConnectionDraft) { d.Domains = make([]string, ConnectionDomainsMax+1) }, []string{"/domains"}},
		"unknown linking":          {func(d *ConnectionDraft) { d.Linking = Some(Linking("email")) }, []string{"/linking"}},
		"unknown second factor":    {func(d *ConnectionDraft) { d.SecondFactor = Some(ConnectionFactor("none")) }, []string{"/secondFactor"}},
		"trust without values":     {func(d *ConnectionDraft) { d.SecondFactor = Some(FactorTrust) }, []string{"/secondFactor"}},
		"trust":                    {func(d *ConnectionDraft) { d.SecondFactor, d.AMRValues = Some(FactorTrust), []string{"mfa"} }, nil},
		"too many values":          {func(d *ConnectionDraft) { d.ACRValues = strings.Split(many(ConnectionValuesMax+1), ",") }, []string{"/acrValues"}},
		"empty value":              {func(d *ConnectionDraft) { d.ACRValues = []string{""} }, []string{"/acrValues/0"}},
		"department":               {func(d *ConnectionDraft) { d.Provisioning = &Provisioning{Department: new(" ")} }, []string{"/provisioning/department"}},
		"groups":                   {func(d *ConnectionDraft) { d.Groups = &ConnectionGroups{Claim: "https://acme.example/groups"} }, nil},
		"groups without a claim":   {func(d *ConnectionDraft) { d.Groups = &ConnectionGroups{} }, []string{"/groups/claim"}},
		"groups by email":          {func(d *ConnectionDraft) { d.Groups = &ConnectionGroups{Claim: "groups", MatchBy: "email"} }, []string{"/groups/matchBy"}},
		"scopes": {func(d *ConnectionDraft) {
			d.Groups = &ConnectionGroups{Claim: "groups", Scopes: []string{"groups", "a b", `"`, `\\`, "", "é", "~!", strings.Repeat("s", ConnectionScopeMax+1)}}
		}, []string{"/groups/scopes/1", "/groups/scopes/2", "/groups/scopes/3", "/groups/scopes/4", "/groups/scopes/5", "/groups/scopes/7"}},
		"too many scopes": {func(d *ConnectionDraft) {
			d.Groups = &ConnectionGroups{Claim: "groups", Scopes: strings.Split(many(ConnectionScopesMax+1), ",")}
		}, []string{"/groups/scopes"}},
	} {
		draft := aConnectionDraft()
		test.change(&draft)
		var pointers []string
		for _, fault := range draft.Check() {
			pointers = append(pointers, fault.Pointer)
		}
		if !slices.Equal(pointers, test.pointers) {
			t.Errorf("%s: faults at %v, want %v", name, pointers, test.pointers)
		}
	}
}

func TestClientCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		code string
	}{
		"shortest":          {" ", ""},
		"longest":           {strings.Repeat("~", ConnectionClientMax), ""},
		"empty":             {"", "length"},
		"too long":          {strings.Repeat("a", ConnectionSecretMax+1), "length"},
		"NUL":               {"a\x00b", "format"},
		"control character": {"a\x7f", "format"},
		"not ASCII":         {"schlüssel", "format"},
		"not UTF-8":         {"a\xff", "format"},
	} {
		draft := aConnectionDraft()
		draft.ClientID, draft.ClientSecret = test.text, test.text
		patch := ConnectionPatch{ClientID: Some(test.text), ClientSecret: Some(test.text)}
		for _, faults := range []FieldErrors{draft.Check(), patch.Check()} {
			var want []string
			if test.code != "" {
				want = []string{"/clientId " + test.code, "/clientSecret " + test.code}
			}
			var got []string
			for _, fault := range faults {
				got = append(got, fault.Pointer+" "+fault.Code)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: faults %v, want %v", name, got, want)
			}
		}
	}
}

// many returns n different values, separated by commas.
func many(n int) string {
	var values []string
	for i := range n {
		values = append(values, strings.Repeat("v", i+1))
	}
	return strings.Join(values, ",")
}

func TestConnectionsAreNormalized(t *testing.T) {
	draft := aConnectionDraft()
	draft.Groups = &ConnectionGroups{Claim: "groups", Scopes: []string{"groups", "groups"}}
	draft.Domains, draft.AMRValues = []string{"ACME.example", "acme.example", "Bu\u0308cher.example", "xn--bcher-kva.example"}, []string{"mfa", "mfa"}
	c := draft.Connection(1_800_000_000_000_000)
	if want := []string{"acme.example", "bücher.example"}; !slices.Equal(c.Domains, want) || !slices.Equal(c.AMRValues, []string{"mfa"}) {
		t.Errorf("got %v and %v", c.Domains, c.AMRValues)
	}
	for domain, want := range map[string]bool{"bücher.example": true, "xn--bcher-kva.example": true, "BÜCHER.example": true, "bucher.example": false, "\u0130.example": false} {
		if c.HasDomain(DomainKey(domain)) != want {
			t.Errorf("%s is a domain of the connection: %t", domain, !want)
		}
	}
	if c.Linking != LinkInvited || c.SecondFactor != FactorRequire || c.Provisioning != nil || c.ACRValues == nil {
		t.Errorf("the defaults are %+v", c)
	}
	if g := c.Groups; g.MatchBy != MatchName || g.Create || !slices.Equal(g.Scopes, []string{"groups"}) {
		t.Errorf("the groups are %+v", g)
	}
	for email, want := range map[string]string{"Ada@ACME.example": "acme.example", "ada@Bu\u0308cher.example": "xn--bcher-kva.example", "ada": "", "a@b@c": "", "": ""} {
		if got := EmailDomain(email); got != want {
			t.Errorf("EmailDomain(%q) = %q, want %q", email, got, want)
		}
	}
}

func TestConnectionPatches(t *testing.T) {
	draft := aConnectionDraft()
	draft.Groups = &ConnectionGroups{Claim: "groups"}
	old := draft.Connection(1_800_000_000_000_000)
	for name, test := range map[string]struct {
		patch   ConnectionPatch
		changed []string
		fails   bool
	}{
		"nothing":             {ConnectionPatch{}, nil, false},
		"equal":               {ConnectionPatch{Name: Some(old.Name), Domains: Some([]string{})}, nil, false},
		"name":                {ConnectionPatch{Name: Some("Acme")}, []string{"name"}, false},
		"secret":              {ConnectionPatch{ClientSecret: Some("secret")}, []string{"clientSecret"}, false},
		"trust":               {ConnectionPatch{SecondFactor: Some(FactorTrust)}, []string{"secondFactor"}, true},
		"trust with values":   {ConnectionPatch{SecondFactor: Some(FactorTrust), ACRValues: Some([]string{"phr"})}, []string{"secondFactor", "acrValues"}, false},
		"provisioning":        {ConnectionPatch{Provisioning: Some(&Provisioning{})}, []string{"provisioning"}, false},
		"provisioning is off": {ConnectionPatch{Provisioning: Some[*Provisioning](nil)}, nil, false},
		"equal groups":        {ConnectionPatch{Groups: Some(&ConnectionGroups{Claim: "groups", MatchBy: MatchName, Scopes: []string{}})}, nil, false},
		"groups":              {ConnectionPatch{Groups: Some(&ConnectionGroups{Claim: "groups", Create: true})}, []string{"groups"}, false},
		"scopes of groups":    {ConnectionPatch{Groups: Some(&ConnectionGroups{Claim: "groups", Scopes: []string{"groups"}})}, []string{"groups"}, false},
		"groups are off":      {ConnectionPatch{Groups: Some[*ConnectionGroups](nil)}, []string{"groups"}, false},
		"groups of no claim":  {ConnectionPatch{Groups: Some(&ConnectionGroups{})}, []string{"groups"}, true},
	} {
		c, changed, err := test.patch.Apply(old, old.UpdatedAt)
		if !slices.Equal(changed, test.changed) || (err != nil) != test.fails {
			t.Errorf("%s: changed %v with %v", name, changed, err)
		}
		if want := old.Version + int64(min(len(changed), 1)); c.Version != want {
			t.Errorf("%s: version %d, want %d", name, c.Version, want)
		}
	}
}

// TestDomainsAreNotLostWhileTheyLimit empties the domains of connections. Without domains, addresses of all
// domains would be accepted.
func TestDomainsAreNotLostWhileTheyLimit(t *testing.T) {
	draft := aConnectionDraft()
	draft.Domains = []string{"acme.example"}
	for name, test := range map[string]struct {
		linking      Linking
		provisioning *Provisioning
		patch        ConnectionPatch
		fails        bool
	}{
		"neither":                {LinkInvited, nil, ConnectionPatch{}, false},
		"linking":                {LinkVerifiedEmail, nil, ConnectionPatch{}, true},
		"provisioning":           {LinkInvited, &Provisioning{}, ConnectionPatch{}, true},
		"linking at once":        {LinkInvited, nil, ConnectionPatch{Linking: Some(LinkVerifiedEmail)}, true},
		"linking ends at once":   {LinkVerifiedEmail, nil, ConnectionPatch{Linking: Some(LinkInvited)}, false},
		"the other one remains":  {LinkVerifiedEmail, &Provisioning{}, ConnectionPatch{Linking: Some(LinkInvited)}, true},
		"provisioning ends, too": {LinkInvited, &Provisioning{}, ConnectionPatch{Provisioning: Some[*Provisioning](nil)}, false},
	} {
		old := draft.Connection(1_800_000_000_000_000)
		old.Linking, old.Provisioning = test.linking, test.provisioning
		for _, empty := range [][]string{nil, {}} {
			test.patch.Domains = Some(empty)
			if _, _, err := test.patch.Apply(old, old.UpdatedAt); (err != nil) != test.fails {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestClaimsThatProveASecondFactor(t *testing.T) {
	c := Connection{SecondFactor: FactorTrust, ACRValues: []string{"phr"}, AMRValues: []string{"mfa", "hwk"}}
	for _, test := range []struct {
		acr  string
		amr  []string
		want bool
	}{{"phr", nil, true}, {"", []string{"pwd", "mfa"}, true}, {"PHR", []string{"pwd"}, false}, {"", nil, false}, {"mfa", []string{"phr"}, false}} {
		if got := c.Proves(test.acr, test.amr); got != test.want {
			t.Errorf("acr %q, amr %q: %v", test.acr, test.amr, got)
		}
	}
	c.SecondFactor = FactorRequire
	if c.Proves("phr", []string{"mfa"}) {
		t.Error("a connection that does not trust the provider accepts its second factor")
	}
}
