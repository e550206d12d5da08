package rolecall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestServiceAccountDraft(t *testing.T) {
	type d = rolecall.ServiceAccountDraft
	for name, test := range map[string]struct {
		draft d
		want  []string
	}{
		"only a name": {d{Name: "Import"}, nil},
		"longest":     {d{Name: strings.Repeat("名", 128), Description: strings.Repeat("d", 1024)}, nil},
		"too long":    {d{Name: strings.Repeat("n", 129), Description: strings.Repeat("d", 1025)}, []string{"/name length", "/description length"}},
		"nothing":     {d{}, []string{"/name length"}},
	} {
		if got := codes(test.draft.Check(rolecall.DefaultNameMin)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	draft := d{Name: "Import", Description: "Brings people."}
	a := draft.ServiceAccount(aMoment)
	if a.Status != rolecall.ServiceAccountActive || a.Version != 1 || a.CreatedAt != aMoment || a.ID.IsZero() {
		t.Errorf("%+v", a)
	}
	if off := a.WithStatus(rolecall.ServiceAccountSuspended, aMoment-1); off.Status != rolecall.ServiceAccountSuspended || off.Version != 2 || off.UpdatedAt <= a.UpdatedAt {
		t.Errorf("%+v", off)
	}
}

func TestServiceAccountPatch(t *testing.T) {
	type p = rolecall.ServiceAccountPatch
	draft := rolecall.ServiceAccountDraft{Name: "Import", Description: "Brings people."}
	before := draft.ServiceAccount(aMoment)
	for name, test := range map[string]struct {
		patch p
		want  []string
	}{
		"empty":             {p{}, nil},
		"same values":       {p{Name: rolecall.Some("Import"), Description: rolecall.Some("Brings people.")}, nil},
		"name":              {p{Name: rolecall.Some("IMPORT")}, []string{"name"}},
		"empty description": {p{Description: rolecall.Some("")}, []string{"description"}},
	} {
		if faults := test.patch.Check(rolecall.DefaultNameMin); faults != nil {
			t.Fatalf("%s: %v", name, faults)
		}
		after, changed := test.patch.Apply(before, aMoment-1)
		if !slices.Equal(changed, test.want) || (after.Version > before.Version) != (test.want != nil) || (after.UpdatedAt > before.UpdatedAt) != (test.want != nil) {
			t.Errorf("%s: changed %q at version %d, want %q", name, changed, after.Version, test.want)
		}
	}
	bad := p{Name: rolecall.Some("ab"), Description: rolecall.Some("\x00")}
	if got, want := codes(bad.Check(rolecall.DefaultNameMin)), []string{"/name length", "/description control-character"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
