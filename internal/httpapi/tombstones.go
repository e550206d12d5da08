package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// listDeletedUsers answers with a page of who can be restored, each as far as the
// caller may read it.
func listDeletedUsers(x *exchange) error {
	if faults := x.besidesDeleted(); faults != nil {
		return rolecall.ErrMalformed.WithFaults(faults...)
	}
	page, err := x.server.service.DeletedUsers(x.ctx, x.call, service.DeletedListing{After: x.in.after, Limit: x.in.limit})
	if err != nil {
		return err
	}
	var withheld rolecall.UserMembers
	x.out = appendPage(x, x.out, &page, func(b []byte, t *rolecall.Tombstone) []byte {
		sight := x.call.ListSight(&t.User)
		withheld |= rolecall.AllUserMembers &^ sight
		b = appendUser(b, &t.User, sight)
		b = append(b[:len(b)-1], `,"deletedAt":`...)
		b = appendTime(b, t.DeletedAt)
		return append(b, '}')
	})
	x.out = append(x.out, '}')
	x.withhold(withheld)
	return x.json(http.StatusOK)
}

// besidesDeleted returns a fault for each parameter that a list of deleted users
// does not take: they are in no index but that of their deletion.
func (x *exchange) besidesDeleted() (faults rolecall.Faults) {
	in := &x.in
	for _, given := range []struct {
		parameter *parameter
		is        bool
	}{
		{sortUsers, in.sort != order{}}, {search, in.words != nil}, {filterEmail, in.email != ""}, {filterExternalID, in.externalID != ""},
		{filterDepartment, in.department != ""}, {filterRole, !in.holds.IsZero()}, {count, in.count},
	} {
		if given.is {
			faults = append(faults, given.parameter.fault("combination", "does not go with status=deleted"))
		}
	}
	return faults
}

func restoreUser(x *exchange) error {
	restored, err := x.server.service.RestoreUser(x.ctx, x.call, x.in.user)
	if err != nil {
		return err
	}
	sight := x.call.Sight(&restored.User)
	x.out = append(x.out, `{"user":`...)
	x.out = appendUser(x.out, &restored.User, sight)
	if restored.RolesReadable {
		x.out = append(x.out, `,"rolesNotRestored":`...)
		x.out = appendList(x.out, restored.RolesNotRestored, appendIDItem)
	}
	x.out = append(x.out, '}')
	x.withhold(rolecall.AllUserMembers &^ sight)
	return x.json(http.StatusOK)
}

func eraseUser(x *exchange) error {
	if err := x.server.service.EraseUser(x.ctx, x.call, x.in.user); err != nil {
		return err
	}
	return x.nothing()
}
