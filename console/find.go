package console

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

// foundPerKind is the maximum number of results of each kind.
const foundPerKind = 5

func (c *console) findPages() []page {
	return []page{
		{path: "/{tenant}/find", operation: "AuthsController_getSession", show: c.showFind},
	}
}

// findView is the data of the page that finds users, roles, groups, service accounts, pages and actions.
type findView struct {
	frame
	query  string
	groups []foundGroup
}

// foundGroup has the results of one kind, and at least one of them.
type foundGroup struct {
	title   string
	results []foundResult
}

// foundResult is a link to a result. If isDialog is true, the address opens in the dialog.
type foundResult struct {
	address, name, note string
	icon                string
	isDialog            bool
}

// startedActions are the actions that the search offers. Each opens a form.
var startedActions = []struct {
	section
	isDialog bool
}{
	{section{name: "new-user.title", path: "/users/create", policies: []*authz.Policy{authz.CreateUser}}, true},
	{section{name: "roles.new", path: "/roles/create", policies: []*authz.Policy{authz.CreateRole}}, false},
	{section{name: "groups.new", path: "/groups/create", policies: []*authz.Policy{authz.CreateGroup}}, false},
	{section{name: "service-accounts.new", path: "/service-accounts/create", policies: []*authz.Policy{authz.CreateServiceAccount}}, true},
	{section{name: "webhooks.new", path: "/webhooks/create", policies: []*authz.Policy{authz.CreateWebhook}}, true},
	{section{name: "connections.new", path: "/connections/create", policies: []*authz.Policy{authz.CreateConnection}}, false},
	{section{name: "directories.new", path: "/directories/create", policies: []*authz.Policy{authz.CreateConnection}}, false},
	{section{name: "settings.edit", path: "/settings/edit", policies: []*authz.Policy{authz.UpdateTenant, authz.ReadTenant}}, false},
	{section{name: "account.change-password", path: "/account/password"}, true},
}

func (c *console) showFind(v *pageContext) error {
	view := findView{query: strings.TrimSpace(v.request.URL.Query().Get("q"))}
	if utf8.RuneCountInString(view.query) > searchLength || !utf8.ValidString(view.query) {
		view.query = ""
	}
	if view.query != "" {
		groups, err := c.found(v, view.query)
		if err != nil {
			return err
		}
		view.groups = groups
	}
	if pages := foundPages(v, view.query); len(pages) > 0 {
		view.groups = append(view.groups, foundGroup{msg("find.pages"), pages})
	}
	return c.show(v, msg("find.title"), "", func(f frame) templ.Component {
		view.frame = f
		return findPage(view)
	})
}

// found returns the users, roles, groups and service accounts that the caller may read and that
// match the text. Each word must begin a word of the name, or the text must be the whole
// email address, external ID or ID.
func (c *console) found(v *pageContext, text string) (groups []foundGroup, err error) {
	words := rolecall.Words(text)
	words = words[:min(len(words), searchWords)]
	for _, kind := range []struct {
		title string
		find  func(*pageContext, string, []string) ([]foundResult, error)
	}{
		{"nav.users", c.foundUsers}, {"nav.roles", c.foundRoles}, {"nav.groups", c.foundGroups}, {"nav.service-accounts", c.foundAccounts},
	} {
		results, err := kind.find(v, text, words)
		if err != nil && rolecall.KindOf(err) != rolecall.Forbidden && rolecall.KindOf(err) != rolecall.NotFound && !errors.Is(err, rolecall.ErrFieldNotReadable) {
			return nil, err
		}
		if len(results) > 0 {
			groups = append(groups, foundGroup{msg(kind.title), results[:min(len(results), foundPerKind)]})
		}
	}
	return groups, nil
}

func (c *console) foundUsers(v *pageContext, text string, words []string) (results []foundResult, err error) {
	var users []rolecall.User
	if id, err := rolecall.ParseID[rolecall.User](text); err == nil {
		user, err := c.directory.User(v.ctx, v.call, id)
		if err != nil {
			return nil, err
		}
		return []foundResult{foundUser(v, &user)}, nil
	}
	var refused error
	for _, l := range []directory.UserListing{{Email: text}, {TextFilter: rolecall.TextFilter{ExternalID: text}}, {Words: words}} {
		if l.Email != "" && !strings.Contains(text, "@") || l.Email == "" && l.ExternalID == "" && len(words) == 0 {
			continue
		}
		l.Limit = foundPerKind
		page, err := c.directory.Users(v.ctx, v.call, l)
		if err != nil {
			refused = err
			continue
		}
		for i := range page.Items {
			if !slices.ContainsFunc(users, func(u rolecall.User) bool { return u.ID == page.Items[i].ID }) {
				users = append(users, page.Items[i])
			}
		}
	}
	for i := range users {
		results = append(results, foundUser(v, &users[i]))
	}
	if results == nil {
		err = refused
	}
	return results, err
}

func foundUser(v *pageContext, u *rolecall.User) foundResult {
	sight := v.call.ReadableListMembers(u)
	r := foundResult{address: userAddress(v, u.ID, ""), name: nameOf(v, u), icon: "users"}
	if sight.Has(rolecall.MemberEmail) {
		r.note = u.Email
	}
	return r
}

func (c *console) foundRoles(v *pageContext, text string, words []string) (results []foundResult, err error) {
	var roles []rolecall.Role
	if id, err := rolecall.ParseID[rolecall.Role](text); err == nil {
		role, err := c.directory.Role(v.ctx, v.call, id)
		if err != nil {
			return nil, err
		}
		roles = []rolecall.Role{role}
	} else if len(words) > 0 {
		page, err := c.directory.Roles(v.ctx, v.call, directory.RoleListing{Words: words, ByName: true, Limit: foundPerKind})
		if err != nil {
			return nil, err
		}
		roles = page.Items
	}
	for i := range roles {
		results = append(results, foundResult{address: v.path("/roles/" + roles[i].ID.String()), name: roles[i].Name, note: roles[i].Description, icon: "roles"})
	}
	return results, nil
}

func (c *console) foundGroups(v *pageContext, text string, words []string) (results []foundResult, err error) {
	var groups []rolecall.Group
	if id, err := rolecall.ParseID[rolecall.Group](text); err == nil {
		group, err := c.directory.Group(v.ctx, v.call, id)
		if err != nil {
			return nil, err
		}
		groups = []rolecall.Group{group}
	} else if len(words) > 0 {
		page, err := c.directory.Groups(v.ctx, v.call, rolecall.GroupQuery{Words: words, ByName: true, Limit: foundPerKind})
		if err != nil {
			return nil, err
		}
		groups = page.Items
	}
	for i := range groups {
		results = append(results, foundResult{address: groupAddress(v, groups[i].ID, ""), name: groups[i].Name, note: groups[i].Description, icon: "groups"})
	}
	return results, nil
}

func (c *console) foundAccounts(v *pageContext, text string, words []string) (results []foundResult, err error) {
	var accounts []rolecall.ServiceAccount
	if id, err := rolecall.ParseID[rolecall.ServiceAccount](text); err == nil {
		account, err := c.directory.ServiceAccount(v.ctx, v.call, id)
		if err != nil {
			return nil, err
		}
		accounts = []rolecall.ServiceAccount{account}
	} else if len(words) > 0 {
		page, err := c.directory.ServiceAccounts(v.ctx, v.call, rolecall.ServiceAccountQuery{Words: words, Limit: foundPerKind})
		if err != nil {
			return nil, err
		}
		accounts = page.Items
	}
	for i := range accounts {
		results = append(results, foundResult{address: v.path("/service-accounts/" + accounts[i].ID.String()), name: accounts[i].Name, note: accounts[i].Description, icon: "machines"})
	}
	return results, nil
}

// keywordsPrefix and the message key of a page form the key of further words by which the search finds
// the page.
const keywordsPrefix = "keywords."

func keywordsOf(name string) string {
	if key := keywordsPrefix + name; hasMessage(key) {
		return msg(key)
	}
	return ""
}

// foundPages returns the pages and actions that the caller may open and whose name contains
// all words of the text.
func foundPages(v *pageContext, text string) (results []foundResult) {
	means := func(name string) bool {
		name = strings.ToLower(name)
		return !slices.ContainsFunc(strings.Fields(strings.ToLower(text)), func(word string) bool { return !strings.Contains(name, word) })
	}
	add := func(s section, isDialog bool) {
		if name := msg(s.name); s.open(v.call.Principal) && means(name+" "+keywordsOf(s.name)) {
			results = append(results, foundResult{address: v.path(s.path), name: name, note: s.keys, icon: s.icon, isDialog: isDialog})
		}
	}
	for _, s := range slices.Concat(sections, userLists[1:], developerLists[1:], settingsLists[1:]) {
		add(s, false)
	}
	add(section{name: "nav.your-account", path: "/account", keys: "g a"}, false)
	for _, a := range startedActions {
		add(a.section, a.isDialog)
	}
	return results
}
