package console

import (
	"maps"
	"slices"

	"github.com/rolecall/rolecall"
)

// The fields of a row of metadata, and of what the form had shown of it.
const (
	fieldPairKey      = "metadata-key"
	fieldPairValue    = "metadata-value"
	fieldWasPairKey   = "was-metadata-key"
	fieldWasPairValue = "was-metadata-value"
)

// spareRows are the empty rows that a form has where no script adds them.
const spareRows = 3

// pairRow is one pair of metadata in a form.
type pairRow struct {
	key, value string
	saved      string // by somebody else meanwhile
	changed    bool   // somebody else has changed it
	gone       bool   // somebody else has removed it
}

// typedPairs returns the pairs that the fields of a form hold, in their order. A row
// of which nothing is filled in is none.
func typedPairs(v *pageContext, keys, values string) (rows [][2]string) {
	texts := v.form[values]
	for i, key := range v.form[keys] {
		value := ""
		if i < len(texts) {
			value = texts[i]
		}
		if key != "" || value != "" {
			rows = append(rows, [2]string{key, value})
		}
	}
	return rows
}

// pairsOf returns the pairs of the rows, and what is wrong with the rows as such.
func pairsOf(rows [][2]string) (map[string]string, rolecall.Faults) {
	var faults rolecall.Faults
	pairs := map[string]string{}
	for _, row := range rows {
		if _, twice := pairs[row[0]]; twice {
			faults.Add("/metadata/"+rolecall.EscapePointer(row[0]), "repeated", "stands more than once")
		}
		if row[0] == "" {
			faults.Add("/metadata", "required", "each value must have a key; empty both to remove a pair")
		}
		pairs[row[0]] = row[1]
	}
	return pairs, faults
}

// metadataPatch returns how the form changes the metadata: nil if it does not. A pair
// that was not touched is not sent.
func metadataPatch(v *pageContext) (map[string]*string, rolecall.Faults) {
	typed, faults := pairsOf(typedPairs(v, fieldPairKey, fieldPairValue))
	was, _ := pairsOf(typedPairs(v, fieldWasPairKey, fieldWasPairValue))
	if v.form[fieldPairKey] == nil {
		return nil, nil
	}
	patch := map[string]*string{}
	for key, value := range typed {
		if before, ok := was[key]; !ok || before != value {
			patch[key] = &value
		}
	}
	for key := range was {
		if _, ok := typed[key]; !ok {
			patch[key] = nil
		}
	}
	if len(patch) == 0 {
		return nil, faults
	}
	return patch, faults
}

// metadataRows returns the rows of a form, given what is saved now, and of those that
// were removed in the form the ones that somebody else has changed meanwhile: what was
// not touched shows what is saved, and what was shows what was typed.
func (f frame) metadataRows(saved rolecall.Metadata) (rows, removed []pairRow) {
	now := sortedPairs(saved)
	if f.problem == nil {
		for _, pair := range now {
			rows = append(rows, pairRow{key: pair[0], value: pair[1]})
		}
		return rows, nil
	}
	typed := typedPairs(f.pageContext, fieldPairKey, fieldPairValue)
	shown, _ := pairsOf(typed)
	was, _ := pairsOf(typedPairs(f.pageContext, fieldWasPairKey, fieldWasPairValue))
	stands, _ := pairsOf(now)
	for _, pair := range typed {
		before, had := was[pair[0]]
		value, has := stands[pair[0]]
		switch touched := !had || before != pair[1]; {
		case touched:
			changed := (has != had || value != before) && !(has && value == pair[1])
			rows = append(rows, pairRow{key: pair[0], value: pair[1], saved: value, changed: changed, gone: changed && !has})
		case has:
			rows = append(rows, pairRow{key: pair[0], value: value})
		}
	}
	for _, pair := range now {
		before, had := was[pair[0]]
		_, kept := shown[pair[0]]
		switch {
		case !kept && !had:
			rows = append(rows, pairRow{key: pair[0], value: pair[1]})
		case !kept && before != pair[1]:
			removed = append(removed, pairRow{key: pair[0], saved: pair[1]})
		}
	}
	return rows, removed
}

// sortedPairs returns the metadata by its keys.
func sortedPairs(m rolecall.Metadata) (list [][2]string) {
	pairs, err := m.Pairs()
	if err != nil {
		return nil // it was written by us
	}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, [2]string{key, pairs[key]})
	}
	return list
}
