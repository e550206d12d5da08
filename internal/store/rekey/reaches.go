package rekey

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall"
)

type holderRow struct {
	holder, role rolecall.AnyID
	departments  string
}

// reaches logs the assignments that apply to other departments by the new keys.
func (t *tenantRun) reaches(tenant string) error {
	before, after := map[string][]string{}, map[string][]string{}
	for _, department := range slices.Sorted(maps.Keys(t.departments)) {
		old, key := earlierKey(department), rolecall.TextKey(department)
		before[old], after[key] = append(before[old], department), append(after[key], department)
	}
	for table, holder := range map[string]string{"assignments": "user_id", "service_account_roles": "service_account_id"} {
		var rows []holderRow
		err := t.query("select "+holder+", role_id, departments from "+table+" where tenant_id = $1 and departments is not null", []any{t.id(t.tenant)},
			into(&rows, func(r *holderRow) []any { return []any{&r.holder, &r.role, &r.departments} }))
		if err != nil {
			return err
		}
		for _, row := range rows {
			var names []string
			if err := json.Unmarshal([]byte(row.departments), &names); err != nil {
				return err
			}
			gained, lost := differences(names, before, after)
			if len(gained)+len(lost) > 0 {
				slog.WarnContext(t.ctx, "the departments of an assignment are compared differently now: check its reach",
					"tenant", tenant, holder, row.holder.String(), "role_id", row.role.String(), "reach", names, "gains_users_of", gained, "loses_users_of", lost)
			}
		}
	}
	return nil
}

// differences returns the departments of users that a reach with these names gains and loses.
func differences(names []string, before, after map[string][]string) (gained, lost []string) {
	old, current := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		for _, department := range before[earlierKey(name)] {
			old[department] = true
		}
		for _, department := range after[rolecall.TextKey(name)] {
			current[department] = true
		}
	}
	missing := func(in, from map[string]bool) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(in)), func(department string) bool { return from[department] })
	}
	return missing(current, old), missing(old, current)
}

// earlierKey returns the key of a department before this migration.
func earlierKey(text string) string {
	folded := norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text)))
	runes := []rune(folded)
	return string(runes[:min(len(runes), 200)])
}
