package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

func (c *console) serviceAccountPages() []page {
	return []page{
		{path: "/{tenant}/service-accounts", operation: "ServiceAccountsController_listServiceAccounts", query: serviceAccountsQuery, show: c.showServiceAccounts},
		{path: "/{tenant}/service-accounts/create", operation: "ServiceAccountsController_createServiceAccount", needsKey: true, show: c.showNewServiceAccount, act: c.createServiceAccount},
		{path: "/{tenant}/service-accounts/{id}", operation: "ServiceAccountsController_getServiceAccount", show: c.showServiceAccount},
		{path: "/{tenant}/service-accounts/{id}/edit", operation: "ServiceAccountsController_updateServiceAccount", show: c.showServiceAccountEdit, act: c.editServiceAccount},
	}
}

// serviceAccountParameters are the query parameters that links to this list keep.
var serviceAccountParameters = []string{"q", "sort"}

// serviceAccountsView is the data of the list of service accounts.
type serviceAccountsView struct {
	frame
	pageLinks
	page rolecall.Page[rolecall.ServiceAccount]
}

func (c *console) showServiceAccounts(v *pageContext) error {
	list := serviceAccountsView{}
	if v.faults == nil {
		query := v.serviceAccountQuery()
		query.Count = true
		page, err := c.directory.ServiceAccounts(v.ctx, v.call, query)
		if err != nil {
			return err
		}
		list.page = page
	}
	return c.show(v, msg(serviceAccountsSection), serviceAccountsSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(serviceAccountParameters, list.page.Next)
		return serviceAccountsPage(list)
	})
}

// countWords returns the number of service accounts as text. The number is always exact, because a tenant has at most
// rolecall.ServiceAccountsMax.
func (l serviceAccountsView) countWords() string {
	if l.page.Total == nil {
		return ""
	}
	return msg("service-accounts.count", "Count", l.page.Total.Count)
}

// recentEvents is the number of events on a page that also shows other data.
const recentEvents = 10

// serviceAccountView is the data of the pages of one service account.
type serviceAccountView struct {
	frame
	holder
	account rolecall.ServiceAccount
	held    []rolecall.Assignment
	allowed []string              // the actions that the caller may perform on it
	ended   []rolecall.Assignment // expired assignments, the most recently expired one first
	tokens  []rolecall.APIToken   // newest first
	history *history              // nil if the caller may not read events
}

// serviceAccountView returns the service account that the path names.
func (c *console) serviceAccountView(v *pageContext) (view serviceAccountView, err error) {
	view.account, err = c.directory.ServiceAccount(v.ctx, v.call, v.accountID)
	if err != nil {
		return view, err
	}
	view.holder = accountHolder(v, &view.account)
	view.held, view.ended, err = c.directory.Assignments(v.ctx, v.call, rolecall.HolderOf(v.accountID))
	view.allowed = c.directory.ServiceAccountActions(v.call, &view.account, view.held)
	return view, err
}

func (c *console) showServiceAccount(v *pageContext) error {
	view, err := c.serviceAccountView(v)
	if err != nil {
		return err
	}
	tokens, err := c.directory.Tokens(v.ctx, v.call, rolecall.HolderOf(v.accountID), nil, rolecall.APITokensMax)
	if err != nil {
		return err
	}
	view.tokens = tokens.Items
	slices.Reverse(view.tokens)
	if view.history, err = c.historyOf(v, rolecall.AnyID(view.account.ID), ""); err != nil {
		return err
	}
	undoSuspended(v, "service-account-suspended", view.allowed, view.home)
	c.undoTaken(v, view.holder)
	return c.show(v, view.account.Name, view.section, func(f frame) templ.Component {
		view.frame = f
		return serviceAccountPage(view)
	})
}

func (c *console) showNewServiceAccount(v *pageContext) error {
	return c.show(v, msg("service-accounts.new"), serviceAccountsSection, newServiceAccountPage)
}

func (c *console) createServiceAccount(v *pageContext) error {
	draft := rolecall.ServiceAccountDraft{Name: v.form.Get("name"), Description: v.form.Get("description")}
	created, err := c.directory.CreateServiceAccount(v.ctx, v.call, v.key(), draft)
	if err != nil {
		return err
	}
	if authz.ReadServiceAccounts.Authorize(v.call.Principal) != nil {
		return v.redirect(v.path("/") + "?done=service-account-created")
	}
	return v.redirect(v.path("/service-accounts/"+created.Value.ID.String()) + "?done=service-account-created")
}

func (c *console) showServiceAccountEdit(v *pageContext) error {
	view, err := c.serviceAccountView(v)
	if err != nil {
		return err
	}
	return c.show(v, msg("form.edit"), view.section, func(f frame) templ.Component {
		view.frame = f
		return serviceAccountEditPage(view)
	})
}

func (c *console) editServiceAccount(v *pageContext) error {
	var patch rolecall.ServiceAccountPatch
	if name, changed := typed(v, "name"); changed {
		patch.Name = rolecall.Some(name)
	}
	if description, changed := typed(v, "description"); changed {
		patch.Description = rolecall.Some(description)
	}
	if _, err := c.directory.UpdateServiceAccount(v.ctx, v.call, v.accountID, patch, match(v, v.serviceAccountTag)); err != nil {
		return err
	}
	return v.redirect(v.path("/service-accounts/"+v.accountID.String()) + "?done=saved")
}

// serviceAccountActions are the actions on a service account, in the order of the menu.
var serviceAccountActions = []action{
	{
		path: "/resume", operation: "ServiceAccountsController_resumeServiceAccount", allowed: "resume", key: "account-action.resume", done: "resumed", reasoned: true,

		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.ResumeServiceAccount, v, v.accountID)
		},
	},
	{
		path: "/suspend", operation: "ServiceAccountsController_suspendServiceAccount", allowed: "suspend", key: "account-action.suspend", done: "service-account-suspended", destructive: true, reasoned: true,

		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.SuspendServiceAccount, v, v.accountID)
		},
	},
	{
		path: "/delete", operation: "ServiceAccountsController_deleteServiceAccount", allowed: "delete", key: "account-action.delete", done: "service-account-deleted", destructive: true, gone: true,

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

// askServiceAccountAction shows the confirmation page of the action.
func (c *console) askServiceAccountAction(v *pageContext, a *action) error {
	view, err := c.serviceAccountView(v)
	if err != nil {
		return err
	}
	return c.show(v, msg(a.key+".label"), view.section, func(f frame) templ.Component {
		view.frame = f
		if !slices.Contains(view.actions(), a) && v.problem == nil {
			return unavailableAction(view.holder, a)
		}
		return actionDialog(f, view.holder, a)
	})
}

// actions returns the actions that the caller probably may perform, in the order of the
// menu. The service decides.
func (s serviceAccountView) actions() (list []*action) {
	for i := range serviceAccountActions {
		if a := &serviceAccountActions[i]; slices.Contains(s.allowed, a.allowed) {
			list = append(list, a)
		}
	}
	return list
}
