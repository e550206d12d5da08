package console

import (
	"slices"

	"github.com/a-h/templ"
)

// serviceAccountActions are in the order in which they are offered.
var serviceAccountActions = []action{
	{
		path: "/resume", operation: "ServiceAccountsController_resumeServiceAccount", allowed: "resume", label: "Resume", asks: "Resume", done: "resumed", reasoned: true,
		tells: "Its tokens work again.",
		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.ResumeServiceAccount, v, v.accountID)
		},
	},
	{
		path: "/suspend", operation: "ServiceAccountsController_suspendServiceAccount", allowed: "suspend", label: "Suspend", asks: "Suspend", done: "service-account-suspended", grave: true, reasoned: true,
		tells: "Its tokens count for nothing at once, until it is resumed. Nothing is lost.",
		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.SuspendServiceAccount, v, v.accountID)
		},
	},
	{
		path: "/delete", operation: "ServiceAccountsController_deleteServiceAccount", allowed: "delete", label: "Delete", asks: "Delete", done: "service-account-deleted", grave: true, gone: true,
		tells: "Programs that use one of its tokens are refused from now on. Its roles and tokens are gone, and this cannot be undone.",
		do: func(s *console, v *pageContext) error {
			return s.directory.DeleteServiceAccount(v.ctx, v.call, v.accountID, nil)
		},
	},
}

func (c *console) serviceAccountActionPages() (pages []page) {
	for i := range serviceAccountActions {
		a := &serviceAccountActions[i]
		pages = append(pages, page{
			path: "/{tenant}/service-accounts/{id}" + a.path, operation: a.operation,
			show: func(v *pageContext) error { return c.askServiceAccountAction(v, a) },
			act:  func(v *pageContext) error { return c.act(v, a, "/service-accounts") },
		})
	}
	return pages
}

// askServiceAccountAction asks whether it is to be done.
func (c *console) askServiceAccountAction(v *pageContext, a *action) error {
	view, err := c.serviceAccountView(v)
	if err != nil {
		return err
	}
	return c.show(v, a.label, view.section, func(f frame) templ.Component {
		view.frame = f
		if !slices.Contains(view.actions(), a) && v.problem == nil {
			return unavailableAction(view.holder, a)
		}
		return actionDialog(f, view.holder, a)
	})
}

// actions returns those of the service account that the caller may do, in their order,
// as far as that can be told beforehand.
func (s serviceAccountView) actions() (list []*action) {
	for i := range serviceAccountActions {
		if a := &serviceAccountActions[i]; slices.Contains(s.allowed, a.allowed) {
			list = append(list, a)
		}
	}
	return list
}
