package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

func listServiceAccounts(x *exchange) error {
	page, err := x.server.service.ServiceAccounts(x.ctx, x.call, x.serviceAccountQuery())
	if err != nil {
		return err
	}
	x.out = append(appendPage(x, x.out, &page, appendWholeServiceAccount), '}')
	return x.json(http.StatusOK)
}

func (x *exchange) serviceAccountQuery() rolecall.ServiceAccountQuery {
	in := &x.in
	return rolecall.ServiceAccountQuery{
		Words: in.words, ByName: in.sort.by == "name", Desc: in.sort.desc, After: in.after, Limit: in.limit, Count: in.count,
	}
}

func createServiceAccount(x *exchange) error {
	draft, err := x.serviceAccountDraft()
	if err != nil {
		return err
	}
	created, err := x.server.service.CreateServiceAccount(x.ctx, x.call, x.key(), draft)
	if err != nil {
		return err
	}
	x.created("/service-accounts/", rolecall.AnyID(created.Value.ID), created.Replayed)
	return x.serviceAccount(http.StatusCreated, &created.Value)
}

func getServiceAccount(x *exchange) error {
	account, err := x.server.service.ServiceAccount(x.ctx, x.call, x.in.account)
	if err != nil {
		return err
	}
	return x.serviceAccount(http.StatusOK, &account)
}

func updateServiceAccount(x *exchange) error {
	patch, err := x.serviceAccountPatch()
	if err != nil {
		return err
	}
	account, err := x.server.service.UpdateServiceAccount(x.ctx, x.call, x.in.account, patch, x.matchServiceAccount())
	if err != nil {
		return err
	}
	return x.serviceAccount(http.StatusOK, &account)
}

func deleteServiceAccount(x *exchange) error {
	if err := x.server.service.DeleteServiceAccount(x.ctx, x.call, x.in.account, x.matchServiceAccount()); err != nil {
		return err
	}
	return x.nothing()
}

func suspendServiceAccount(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	account, err := x.server.service.SuspendServiceAccount(x.ctx, x.call, x.in.account, reason)
	if err != nil {
		return err
	}
	return x.serviceAccount(http.StatusOK, &account)
}

func resumeServiceAccount(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	account, err := x.server.service.ResumeServiceAccount(x.ctx, x.call, x.in.account, reason)
	if err != nil {
		return err
	}
	return x.serviceAccount(http.StatusOK, &account)
}

func listServiceAccountRoles(x *exchange) error {
	live, expired, err := x.server.service.ServiceAccountRoles(x.ctx, x.call, x.in.account)
	return x.assignments(live, expired, err)
}

func assignServiceAccountRole(x *exchange) error {
	draft, err := x.assignmentDraft()
	if err != nil {
		return err
	}
	assignment, created, err := x.server.service.AssignServiceAccountRole(x.ctx, x.call, x.in.account, x.in.role, draft)
	if err != nil {
		return err
	}
	return x.assignment(&assignment, created)
}

func unassignServiceAccountRole(x *exchange) error {
	if err := x.server.service.UnassignServiceAccountRole(x.ctx, x.call, x.in.account, x.in.role); err != nil {
		return err
	}
	return x.nothing()
}

func (x *exchange) serviceAccountDraft() (draft rolecall.ServiceAccountDraft, err error) {
	err = x.decode(
		member{"name", true, readString(&draft.Name)},
		member{"description", false, readStringOrNull(&draft.Description)},
	).err(draft.Check)
	return draft, err
}

func (x *exchange) serviceAccountPatch() (patch rolecall.ServiceAccountPatch, err error) {
	err = x.decode(
		member{"name", false, optional(&patch.Name, readString)},
		member{"description", false, optional(&patch.Description, readStringOrNull)},
	).err(patch.Check)
	return patch, err
}

// readsServiceAccounts reports whether the caller may read service accounts; who may
// not sees no more of them than the id.
func (x *exchange) readsServiceAccounts() bool {
	return x.call.Reach(rolecall.ServiceAccountsRead).IsEverywhere()
}

// serviceAccount answers with the service account, or with its id alone.
func (x *exchange) serviceAccount(status int, a *rolecall.ServiceAccount) error {
	readable := x.readsServiceAccounts() && a.CreatedAt != 0
	x.out = appendServiceAccount(x.out, a, readable)
	if !readable {
		x.header["Withheld-Fields"] = serviceAccountFields
		return x.json(status)
	}
	return x.tagged(status)
}

var serviceAccountFields = []string{"name, description, status, createdAt, updatedAt"}

// matchServiceAccount is If-Match for the service: the tag of what this caller sees
// of the service account.
func (x *exchange) matchServiceAccount() service.Match[rolecall.ServiceAccount] {
	if !x.in.ifMatch.given {
		return nil
	}
	wanted, readable := x.in.ifMatch, x.readsServiceAccounts()
	return func(a *rolecall.ServiceAccount) bool {
		return wanted.matches(secret.ETag(appendServiceAccount(nil, a, readable)))
	}
}

// appendWholeServiceAccount appends the service account with all of its members.
func appendWholeServiceAccount(b []byte, a *rolecall.ServiceAccount) []byte {
	return appendServiceAccount(b, a, true)
}

// appendServiceAccount appends the service account, or its id alone if it is not
// readable.
func appendServiceAccount(b []byte, a *rolecall.ServiceAccount, readable bool) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, a.ID)
	if !readable {
		return append(b, '}')
	}
	b = append(b, `,"name":`...)
	b = appendText(b, a.Name)
	b = append(b, `,"description":`...)
	b = appendText(b, a.Description)
	b = append(b, `,"status":`...)
	b = appendText(b, a.Status)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, a.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, a.UpdatedAt)
	return append(b, '}')
}
