package authz_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

const aMoment = rolecall.Time(1_790_000_000_123_456)

func permissions(texts ...string) []rolecall.Permission {
	list := make([]rolecall.Permission, 0, len(texts))
	for _, text := range texts {
		p, err := rolecall.ParsePermission(text)
		if err != nil {
			panic(text + " " + err.Error())
		}
		list = append(list, p)
	}
	return list
}

func texts(permissions []rolecall.Permission) []string {
	list := make([]string, 0, len(permissions))
	for _, p := range permissions {
		list = append(list, p.String())
	}
	return list
}

func covered(held []rolecall.Permission, p rolecall.Permission) bool {
	return slices.ContainsFunc(held, func(h rolecall.Permission) bool { return h.Covers(p) })
}

// departmentNames has different spellings of the same departments, because reaches compare
// folded names.
var departmentNames = rapid.SampledFrom([]string{"Sales", "SALES", "ｓales", "Support", "Legal", "LEGAL", "Research"})

var reaches = rapid.Custom(func(t *rapid.T) rolecall.Reach {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return rolecall.Everywhere()
	case 1:
		return rolecall.Nowhere()
	default:
		return rolecall.Within(rapid.SliceOfN(departmentNames, 0, 4).Draw(t, "departments")...)
	}
})

var anyPermission = rapid.Custom(func(t *rapid.T) rolecall.Permission {
	return rolecall.Permission{
		Application: rapid.SampledFrom([]string{"", "", "*", "shop"}).Draw(t, "application"),
		Resource:    rapid.SampledFrom([]string{"*", "users", "roles"}).Draw(t, "resource"),
		Field:       rapid.SampledFrom([]string{"", "*", "email", "name"}).Draw(t, "field"),
		Action:      rapid.SampledFrom([]string{"*", "read", "update"}).Draw(t, "action"),
	}
})
