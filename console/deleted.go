package console

import (
	"errors"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) deletedPages() []page {
	return []page{
		{path: "/{tenant}/users/deleted", operation: "UsersController_listUsers", query: usersQuery, show: c.showAllDeleted},
		{path: "/{tenant}/users/{id}/deleted", operation: "UsersController_restoreUser", show: c.showDeleted},
		{path: "/{tenant}/users/{id}/restore", operation: "UsersController_restoreUser", show: c.askRestore, act: c.restore},
	}
}

// allDeletedView is the data of the list of deleted users who can be restored.
type allDeletedView struct {
	frame
	pageLinks
	page rolecall.Page[rolecall.Tombstone]
}

func (c *console) showAllDeleted(v *pageContext) (err error) {
	list := allDeletedView{}
	if v.faults == nil {
		after, limit := v.after, v.limit
		if list.page, err = c.directory.DeletedUsers(v.ctx, v.call, directory.DeletedListing{After: after, Limit: limit}); err != nil {
			return err
		}
	}
	return c.show(v, msg("deleted.title"), usersSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return allDeletedPage(list)
	})
}

// deletedView is the data of the pages about one deleted user.
type deletedView struct {
	frame
	rolecall.Tombstone
	sight rolecall.UserMembers
	names names // names of the roles and groups that the user had
}

// showTombstone shows a page of the deleted user that the path names, with the names of the roles
// and groups of the user. It redirects to the page of the user if the user was restored.
func (c *console) showTombstone(v *pageContext, titleKey string, page func(deletedView) templ.Component) error {
	tombstone, err := c.directory.DeletedUser(v.ctx, v.call, v.userID)
	if errors.Is(err, rolecall.ErrNotFound) {
		if _, err := c.directory.User(v.ctx, v.call, v.userID); err == nil {
			return v.redirect(userAddress(v, v.userID, ""))
		}
	}
	if err != nil {
		return err
	}
	view := deletedView{Tombstone: tombstone, sight: v.call.ReadableMembers(&tombstone.User)}
	if view.names, err = c.namesOf(v, append(roleIDs(tombstone.Assignments), anyIDs(tombstone.Groups)...)); err != nil {
		return err
	}
	return c.show(v, msg(titleKey, "Name", nameOf(v, &tombstone.User)), usersSection, func(f frame) templ.Component {
		view.frame = f
		return page(view)
	})
}

func (c *console) showDeleted(v *pageContext) error {
	return c.showTombstone(v, "deleted.page", deletedPage)
}

func (c *console) askRestore(v *pageContext) error {
	return c.showTombstone(v, "deleted.restore-title", restoreDialog)
}

// restore restores the user. If the user could not get some of the former roles and groups back,
// restore shows which ones.
func (c *console) restore(v *pageContext) error {
	restored, err := c.directory.RestoreUser(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	home := userAddress(v, v.userID, "")
	var roles, groups []rolecall.AnyID
	if restored.RolesReadable {
		roles = anyIDs(restored.RolesNotRestored)
	}
	if restored.GroupsReadable {
		groups = anyIDs(restored.GroupsNotRestored)
	}
	if len(roles)+len(groups) == 0 {
		return v.redirect(home + "?done=restored")
	}
	named, err := c.namesOf(v, slices.Concat(roles, groups))
	if err != nil {
		return err
	}
	return c.show(v, msg("deleted.restored-page"), usersSection, func(f frame) templ.Component {
		return restoredDialog(f, userHolder(v, &restored.User), roles, groups, named)
	})
}

func anyIDs[T any](ids []rolecall.ID[T]) []rolecall.AnyID {
	list := make([]rolecall.AnyID, len(ids))
	for i, id := range ids {
		list[i] = rolecall.AnyID(id)
	}
	return list
}

// readsRoles reports whether the caller may read the assignments that the user had before
// the deletion.
func (d deletedView) readsRoles() bool {
	return d.call.Reach(rolecall.RolesRead).Includes(d.User.Department)
}

// erases reports whether the caller probably may erase the user. The service decides.
func (d deletedView) erases() bool {
	return d.call.Reach(rolecall.UsersErase).Includes(d.User.Department)
}

// restorableUntil returns the time until which the user can be restored.
func (d deletedView) restorableUntil() rolecall.Time {
	return d.DeletedAt.Add(rolecall.TombstoneLifetime)
}

// address returns the address of the user's page. below is appended to its path.
func (d deletedView) address(below string) string {
	return userAddress(d.pageContext, d.User.ID, below)
}

// restoreWords describe the effect of a restore.
func (d deletedView) restoreWords() string {
	switch {
	case !d.sight.Has(rolecall.MemberStatus):
		return msg("deleted.restore-unknown")
	case d.Restored(d.now).Status == rolecall.UserSuspended:
		return msg("deleted.restore-suspended")
	}
	return msg("deleted.restore-pending")
}

// userOrDeleted returns the user that the path names. If the user is deleted and the caller
// may restore the user, it returns the members from before the deletion.
func (c *console) userOrDeleted(v *pageContext) (rolecall.User, error) {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err == nil {
		return user, nil
	}
	if tombstone, gone := c.directory.DeletedUser(v.ctx, v.call, v.userID); gone == nil {
		return tombstone.User, nil
	}
	return rolecall.User{}, err
}

// sureWords returns the text that the caller must type to confirm an action on the user.
func sureWords(v *pageContext, u *rolecall.User) string {
	if v.call.ReadableMembers(u).Has(rolecall.MemberEmail) {
		return u.Email
	}
	return nameOf(v, u)
}

// checkSure returns a field error if the form does not contain the text that sureWords
// returns.
func (c *console) checkSure(v *pageContext) error {
	user, err := c.userOrDeleted(v)
	if err != nil {
		return err
	}
	var faults rolecall.FieldErrors
	if rolecall.EmailKey(strings.TrimSpace(v.form.Get("sure"))) != rolecall.EmailKey(sureWords(v, &user)) {
		faults.Add("/sure", "format", msg("form.typed"))
	}
	return faults.Err()
}
