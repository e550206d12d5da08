package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
)

func (c *console) tokenPages() (pages []page) {
	for i := range holderKinds {
		k := &holderKinds[i]
		if k.listTokens == "" {
			continue
		}
		path := "/{tenant}" + k.path + "/{id}/tokens"
		pages = append(pages,
			page{path: path, operation: k.listTokens, query: pageParameters, show: k.page(c.showTokens)},
			page{path: path + "/create", operation: k.createToken, needsKey: true, show: k.page(c.showNewToken), act: k.page(c.createToken)},
			page{path: path + "/{tokenId}/revoke", operation: k.revokeToken, show: k.page(c.askRevokeToken), act: k.page(c.revokeToken)},
		)
	}
	return pages
}

// tokensView is the data of the pages about the API tokens of a user or service account.
type tokensView struct {
	frame
	holder
	pageLinks
	page  rolecall.Page[rolecall.APIToken]
	names names                                   // names of the creators of the tokens
	held  []rolecall.Assignment                   // the holder's assignments; a new token can have the permissions of their roles
	made  idempotency.Created[directory.APIToken] // the token that the form has just created
}

func (c *console) showTokens(v *pageContext, k *holderKind) error {
	var view tokensView
	var err error
	if view.holder, err = k.find(c, v); err != nil {
		return err
	}
	if v.faults == nil {
		if view.page, err = c.directory.Tokens(v.ctx, v.call, k.id(v), v.after, v.limit); err != nil {
			return err
		}
	}
	var makers []rolecall.AnyID
	for i := range view.page.Items {
		makers = append(makers, rolecall.AnyID(view.page.Items[i].CreatedBy))
	}
	if view.names, err = c.namesOf(v, makers); err != nil {
		return err
	}
	return c.show(v, msg("user.api-tokens"), view.section, func(f frame) templ.Component {
		view.frame = f
		view.pageLinks = f.pagesOf(nil, view.page.Next)
		return tokensPage(view)
	})
}

func (c *console) showNewToken(v *pageContext, k *holderKind) error {
	var view tokensView
	var err error
	if view.holder, err = k.find(c, v); err == nil {
		view.held, _, err = c.directory.Assignments(v.ctx, v.call, k.id(v))
	}
	if err != nil {
		return err
	}
	return c.show(v, msg("tokens.new-title"), view.section, func(f frame) templ.Component {
		view.frame = f
		return newTokenPage(view)
	})
}

// createToken creates an API token and shows its secret once. If the same form is sent
// again, the response does not contain the secret.
func (c *console) createToken(v *pageContext, k *holderKind) error {
	var faults rolecall.FieldErrors
	draft := rolecall.APITokenDraft{Name: v.form.Get("name"), Permissions: lines(v.form["permissions"]), ExpiresAt: v.readDate("expiresAt", &faults)}
	if err := faults.Err(); err != nil {
		return err
	}
	var view tokensView
	var err error
	if view.holder, err = k.find(c, v); err != nil {
		return err
	}
	if view.made, err = c.directory.CreateToken(v.ctx, v.call, v.key(), k.id(v), draft); err != nil {
		return err
	}
	return c.show(v, msg("tokens.token-page"), view.section, func(f frame) templ.Component {
		view.frame = f
		return madeTokenPage(view)
	})
}

func (c *console) askRevokeToken(v *pageContext, k *holderKind) error {
	var view tokensView
	var err error
	if view.holder, err = k.find(c, v); err == nil {
		view.page, err = c.directory.Tokens(v.ctx, v.call, k.id(v), nil, rolecall.APITokensMax)
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(view.page.Items, func(t rolecall.APIToken) bool { return t.ID == v.tokenID })
	if i < 0 {
		return rolecall.ErrNotFound
	}
	token := &view.page.Items[i]
	return c.show(v, msg("tokens.revoke-page"), view.section, func(f frame) templ.Component {
		asked := question{
			title: say("tokens.revoke-title", "Name", bdi(token.Name)), label: msg("tokens.revoke"), back: view.home + "/tokens", destructive: true,
			detail: msg("tokens.revoke-effect"),
		}
		if !token.Live(f.now) {
			asked.detail = msg("tokens.revoke-expired")
		}
		return confirmForm(f, asked)
	})
}

func (c *console) revokeToken(v *pageContext, k *holderKind) error {
	if err := c.directory.RevokeToken(v.ctx, v.call, k.id(v), v.tokenID); err != nil {
		return err
	}
	return v.redirect(k.home(v) + "/tokens?done=token-revoked")
}

// cardTokens is the maximum number of tokens on a card.
const cardTokens = 5

// The limits from which on a token needs attention.
const (
	endsSoon   = 7 * 24 * time.Hour
	longUnused = 90 * 24 * time.Hour
	neverUsed  = 30 * 24 * time.Hour
)

// concernOf returns the reason why the token needs attention. It returns an empty text if
// the token needs none.
func concernOf(t *rolecall.APIToken, now rolecall.Time) string {
	switch {
	case !t.Live(now):
		return msg("tokens.expired")
	case t.ExpiresAt < now.Add(endsSoon):
		return msg("tokens.expires-soon")
	case t.LastUsedAt == 0 && t.CreatedAt.Add(neverUsed) < now:
		return msg("tokens.never-used")
	case t.LastUsedAt != 0 && t.LastUsedAt.Add(longUnused) < now:
		return msg("tokens.long-unused")
	}
	return ""
}

// hindrance returns the reason why the caller may not create a token for the holder. It
// returns an empty text if the caller may.
func (t tokensView) hindrance() string {
	if t.id == rolecall.HolderOf(t.call.User.ID) {
		return ""
	}
	for i := range t.held {
		if err := authz.RequireGrantable(t.call.Principal, &t.held[i].Role, t.held[i].Reach, t.held[i].ExpiresAt); err != nil {
			return detailOf(err)
		}
	}
	return ""
}

// offered returns the permissions that a new token can have, in groups: the permissions of
// the holder's roles, and those that the roles let the holder delegate. If one of these has
// a wildcard, offered also returns Rolecall's own permissions that the wildcard covers.
func (t tokensView) offered() (groups []permissionGroup) {
	var held []rolecall.Permission
	for i := range t.held {
		held = append(append(held, t.held[i].Role.Permissions...), t.held[i].Role.Grants...)
	}
	others := permissionGroup{"tokens.as-roles", rolecall.NormalPermissions(held)}
	for _, g := range permissionGroups {
		some := slices.DeleteFunc(slices.Clone(g.permissions), func(p rolecall.Permission) bool {
			return !slices.ContainsFunc(held, func(h rolecall.Permission) bool { return h.Covers(p) })
		})
		if len(some) > 0 {
			groups = append(groups, permissionGroup{g.title, some})
		}
		others.permissions = slices.DeleteFunc(others.permissions, func(p rolecall.Permission) bool { return slices.Contains(some, p) })
	}
	if len(others.permissions) > 0 {
		groups = append([]permissionGroup{others}, groups...)
	}
	return groups
}

// isOpen reports whether the token can have permissions that the form does not list. This
// is possible if the holder has a wildcard for permissions of applications, because
// Rolecall does not know all of these.
func (t tokensView) isOpen() bool {
	return slices.ContainsFunc(t.held, func(a rolecall.Assignment) bool {
		return slices.ContainsFunc(slices.Concat(a.Role.Permissions, a.Role.Grants), func(p rolecall.Permission) bool {
			return !p.Own() && (p.Application == "*" || p.Resource == "*" || p.Action == "*" || p.Field == "*")
		})
	})
}

// ticked returns the permissions that are selected in the form.
func (t tokensView) ticked() setChange { return setChange{shown: lines(t.form["permissions"])} }

// othersTicked returns the selected permissions that have no checkbox, one per line.
func (t tokensView) othersTicked(groups []permissionGroup) string {
	return strings.Join(slices.DeleteFunc(t.ticked().shown, func(text string) bool {
		return slices.ContainsFunc(groups, func(g permissionGroup) bool { return slices.Contains(texts(g.permissions), text) })
	}), "\n")
}

// end returns the value of the expiry field: the submitted value, or the default.
func (t tokensView) end() dateValue {
	return cmp.Or(t.typedDate("expiresAt"), dateValue{text: t.inputText(t.now.Add(usualLifetime))})
}

// usualLifetime is the default lifetime of a token.
const usualLifetime = 90 * 24 * time.Hour

// usage returns commands that use a new token.
func (t tokensView) usage() string {
	return fmt.Sprintf("export ROLECALL_TOKEN='%s'\ncurl %s/auths/session \\\n  -H \"x-tenant-schema: %s\" \\\n  -H \"authorization: Bearer $ROLECALL_TOKEN\"",
		msg("tokens.paste"), t.console.site.Address(t.request), t.tenant)
}
