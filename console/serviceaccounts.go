package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/service"
)

func (c *console) serviceAccountPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/service-accounts", Operation: "ServiceAccountsController_listServiceAccounts", Show: c.showServiceAccounts},
		{Path: "/{tenant}/service-accounts/create", Operation: "ServiceAccountsController_createServiceAccount", Show: c.showNewServiceAccount, Act: c.createServiceAccount},
		{Path: "/{tenant}/service-accounts/{id}", Operation: "ServiceAccountsController_getServiceAccount", Show: c.showServiceAccount},
		{Path: "/{tenant}/service-accounts/{id}/edit", Operation: "ServiceAccountsController_updateServiceAccount", Show: c.showServiceAccountEdit, Act: c.editServiceAccount},
	}
}

// serviceAccountParameters are those of the list of service accounts, as userParameters
// are of users.
var serviceAccountParameters = []string{"q", "sort"}

// serviceAccountsView is what the page of service accounts shows.
type serviceAccountsView struct {
	frame
	pageLinks
	page rolecall.Page[rolecall.ServiceAccount]
}

func (c *console) showServiceAccounts(v *httpapi.Visit) error {
	list := serviceAccountsView{}
	if v.Faults() == nil {
		query := v.ServiceAccountQuery()
		query.Count = true
		page, err := c.service.ServiceAccounts(v.Context(), v.Call(), query)
		if err != nil {
			return err
		}
		list.page = page
	}
	return c.show(v, "Service accounts", "Service accounts", func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(serviceAccountParameters, list.page.Next)
		return serviceAccountsPage(list)
	})
}

// countWords says how many service accounts the list has: so few that they are always
// counted.
func (l serviceAccountsView) countWords() string {
	if l.page.Total == nil {
		return ""
	}
	return plural(l.page.Total.Count, "service account")
}

// recentEvents is how much of a history is on a page beside other things.
const recentEvents = 10

// serviceAccountView is what the pages of one service account show.
type serviceAccountView struct {
	frame
	holder
	account rolecall.ServiceAccount
	held    []rolecall.Assignment
	allowed []string              // what the caller may do to it
	ended   []rolecall.Assignment // expired, the last one first
	tokens  []rolecall.APIToken   // the newest first
	events  []rolecall.Event      // the newest first; nil if the caller may not read them
	names   names                 // of who is in the events
}

// serviceAccountView returns the service account of the path.
func (c *console) serviceAccountView(v *httpapi.Visit) (view serviceAccountView, err error) {
	view.account, err = c.service.ServiceAccount(v.Context(), v.Call(), v.ServiceAccount())
	if err != nil {
		return view, err
	}
	view.holder = accountHolder(v, &view.account)
	view.held, view.ended, err = c.service.ServiceAccountRoles(v.Context(), v.Call(), v.ServiceAccount())
	view.allowed = c.service.ServiceAccountActions(v.Call(), &view.account, view.held)
	return view, err
}

func (c *console) showServiceAccount(v *httpapi.Visit) error {
	view, err := c.serviceAccountView(v)
	if err != nil {
		return err
	}
	tokens, err := c.service.ServiceAccountTokens(v.Context(), v.Call(), v.ServiceAccount(), nil, rolecall.APITokensMax)
	if err != nil {
		return err
	}
	view.tokens = tokens.Items
	slices.Reverse(view.tokens)
	if err := c.addHistory(v, &view); err != nil {
		return err
	}
	return c.show(v, view.account.Name, view.section, func(f frame) templ.Component {
		view.frame = f
		return serviceAccountPage(view)
	})
}

// addHistory adds what happened to the service account lately, for who may read events.
func (c *console) addHistory(v *httpapi.Visit, view *serviceAccountView) error {
	if service.NeedReadEvents(v.Call().Principal, rolecall.UserID{}) != nil {
		return nil
	}
	recent, err := c.service.Events(v.Context(), v.Call(), service.EventListing{Subject: rolecall.AnyID(view.account.ID), Limit: recentEvents})
	if err != nil {
		return err
	}
	view.events = recent.Items
	view.names, err = c.namesIn(v, recent.Items)
	return err
}

func (c *console) showNewServiceAccount(v *httpapi.Visit) error {
	return c.show(v, "New service account", "Service accounts", newServiceAccountPage)
}

func (c *console) createServiceAccount(v *httpapi.Visit) error {
	draft := rolecall.ServiceAccountDraft{Name: v.Form("name"), Description: v.Form("description")}
	created, err := c.service.CreateServiceAccount(v.Context(), v.Call(), v.Key(), draft)
	if err != nil {
		return err
	}
	if service.NeedReadServiceAccounts(v.Call().Principal, rolecall.UserID{}) != nil {
		return v.Redirect(v.Path("/") + "?done=service-account-created")
	}
	return v.Redirect(v.Path("/service-accounts/"+created.Value.ID.String()) + "?done=service-account-created")
}

func (c *console) showServiceAccountEdit(v *httpapi.Visit) error {
	view, err := c.serviceAccountView(v)
	if err != nil {
		return err
	}
	return c.show(v, "Edit", view.section, func(f frame) templ.Component {
		view.frame = f
		return serviceAccountEditPage(view)
	})
}

func (c *console) editServiceAccount(v *httpapi.Visit) error {
	var patch rolecall.ServiceAccountPatch
	if name, changed := typed(v, "name"); changed {
		patch.Name = rolecall.Some(name)
	}
	if description, changed := typed(v, "description"); changed {
		patch.Description = rolecall.Some(description)
	}
	if _, err := c.service.UpdateServiceAccount(v.Context(), v.Call(), v.ServiceAccount(), patch, v.MatchServiceAccount()); err != nil {
		return err
	}
	return v.Redirect(v.Path("/service-accounts/"+v.ServiceAccount().String()) + "?done=saved")
}
