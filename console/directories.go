package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
)

func (c *console) directoryPages() []page {
	one := "/{tenant}/directories/{id}"
	pages := []page{
		{path: "/{tenant}/directories", operation: "DirectoriesController_listDirectories", show: c.showDirectories},
		{path: "/{tenant}/directories/create", operation: "DirectoriesController_createDirectory", needsKey: true, show: c.showNewDirectory, act: c.createDirectory},
		{path: one, operation: "DirectoriesController_getDirectory", show: c.showDirectory},
		{path: one + "/edit", operation: "DirectoriesController_updateDirectory", show: c.showDirectoryEdit, act: c.editDirectory},
		{path: one + "/delete", operation: "DirectoriesController_deleteDirectory", show: c.askDirectoryDeletion, act: c.deleteDirectory},
		{path: one + "/requests", operation: "DirectoriesController_listDirectoryRequests", show: c.showDirectoryRequests},
		{path: one + "/tokens", operation: "DirectoriesController_listDirectoryTokens", show: c.showDirectoryTokens},
		{path: one + "/tokens/create", operation: "DirectoriesController_createDirectoryToken", needsKey: true, show: c.showNewDirectoryToken, act: c.createDirectoryToken},
		{path: one + "/tokens/{tokenId}/revoke", operation: "DirectoriesController_revokeDirectoryToken", show: c.askRevokeDirectoryToken, act: c.revokeDirectoryToken},
	}
	for i := range directoryActions {
		a := &directoryActions[i]
		pages = append(pages, page{
			path: one + a.path, operation: "DirectoriesController_updateDirectory",
			show: func(v *pageContext) error { return c.askDirectoryAction(v, a) },
			act:  func(v *pageContext) error { return c.doDirectoryAction(v, a) },
		})
	}
	return pages
}

// scimPath follows the address of the site in the base URL of a directory. The name of the tenant follows it.
const scimPath = "/scim/v2/"

// uniqueField is the attribute of SCIM by which identity providers find users.
const uniqueField = "userName"

// directoryAction is an action on a directory with a confirmation.
type directoryAction struct {
	path   string
	key    string // the prefix of the message keys: label, title and detail
	done   string // the word of the message after success
	paused bool   // whether the directory is paused after the action
}

// directoryActions pause and resume a directory. A page offers the one that changes something.
var directoryActions = []directoryAction{
	{path: "/pause", key: "directory-action.pause", done: "directory-paused", paused: true},
	{path: "/resume", key: "directory-action.resume", done: "directory-resumed"},
}

// The values of the fields of a directory, in the order of the form.
var (
	matchings       = []string{string(rolecall.MatchRefuse), string(rolecall.MatchEmail)}
	deprovisionings = []string{string(rolecall.DeprovisionSuspend), string(rolecall.DeprovisionDelete)}
)

// provisioners are the identity providers for which the console shows how to enter a directory. Each is the prefix of
// the message keys name, where and enter.
var provisioners = []string{"provisioner.entra", "provisioner.okta", "provisioner.onelogin", "provisioner.jumpcloud", "provisioner.google"}

// directoryFields are the fields at which the forms of directories show errors.
var directoryFields = []string{"name", "matching", "deprovisioning"}

// directoriesView is the data of the list of directories.
type directoriesView struct {
	frame
	list []rolecall.Directory
}

func (c *console) showDirectories(v *pageContext) error {
	list, err := c.directory.Directories(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, msg("nav.directories"), settingsSection, func(f frame) templ.Component {
		return directoriesPage(directoriesView{f, list})
	})
}

// directoryView is the data of the pages of one directory.
type directoryView struct {
	frame
	directory rolecall.Directory
	content   directory.DirectoryContent
	tokens    []rolecall.DirectoryToken
	names     names // names of the creators of the tokens
	requests  []rolecall.DirectoryRequest
	history   *history                                      // nil if the caller may not read events
	made      idempotency.Created[directory.DirectoryToken] // the token that the form has just created
}

// requestsShown is the number of requests on the page of a directory.
const requestsShown = 20

// directoryView returns the directory that the path names.
func (c *console) directoryView(v *pageContext) (view directoryView, err error) {
	view.directory, err = c.directory.Directory(v.ctx, v.call, v.directoryID)
	return view, err
}

// showDirectoryPage writes a page of a directory.
func (c *console) showDirectoryPage(v *pageContext, view directoryView, title string, content func(directoryView) templ.Component) error {
	return c.show(v, title, settingsSection, func(f frame) templ.Component {
		view.frame = f
		return content(view)
	})
}

func (c *console) showDirectory(v *pageContext) error {
	view, err := c.directoryView(v)
	if err == nil {
		view.content, err = c.directory.DirectoryContent(v.ctx, v.call, v.directoryID)
	}
	if err == nil {
		view.tokens, err = c.directory.DirectoryTokens(v.ctx, v.call, v.directoryID)
	}
	if err == nil {
		view.requests, err = c.directory.DirectoryRequests(v.ctx, v.call, v.directoryID)
	}
	if err == nil {
		view.history, err = c.historyOf(v, rolecall.AnyID(v.directoryID), "")
	}
	if err != nil {
		return err
	}
	view.requests = view.requests[:min(len(view.requests), requestsShown)]
	return c.showDirectoryPage(v, view, view.directory.Name, directoryPage)
}

func (c *console) showDirectoryRequests(v *pageContext) error {
	view, err := c.directoryView(v)
	if err == nil {
		view.requests, err = c.directory.DirectoryRequests(v.ctx, v.call, v.directoryID)
	}
	if err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg("directories.requests"), directoryRequestsPage)
}

func (c *console) showNewDirectory(v *pageContext) error {
	return c.showDirectoryPage(v, directoryView{}, msg("directories.new"), newDirectoryPage)
}

func (c *console) createDirectory(v *pageContext) error {
	made, err := c.directory.CreateDirectory(v.ctx, v.call, v.key(), rolecall.DirectoryDraft{
		Name: v.form.Get("name"), Matching: rolecall.Some(rolecall.Matching(v.form.Get("matching"))),
		Deprovisioning: rolecall.Some(rolecall.Deprovisioning(v.form.Get("deprovisioning"))),
	})
	if err != nil {
		return err
	}
	return v.redirect(directoryAddress(v, made.Value.ID) + "?done=directory-created")
}

func (c *console) showDirectoryEdit(v *pageContext) error {
	view, err := c.directoryView(v)
	if err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg("form.edit"), directoryEditPage)
}

func (c *console) editDirectory(v *pageContext) error {
	var patch rolecall.DirectoryPatch
	setText(v, "name", &patch.Name)
	setText(v, "matching", &patch.Matching)
	setText(v, "deprovisioning", &patch.Deprovisioning)
	if _, err := c.directory.UpdateDirectory(v.ctx, v.call, v.directoryID, patch, match(v, directoryTag)); err != nil {
		return err
	}
	return v.redirect(directoryAddress(v, v.directoryID) + "?done=saved")
}

// askDirectoryAction shows the confirmation page of the action.
func (c *console) askDirectoryAction(v *pageContext, a *directoryAction) error {
	view, err := c.directoryView(v)
	if err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg(a.key+".label"), func(view directoryView) templ.Component { return directoryDialog(view, a) })
}

func (c *console) doDirectoryAction(v *pageContext, a *directoryAction) error {
	if _, err := c.directory.UpdateDirectory(v.ctx, v.call, v.directoryID, rolecall.DirectoryPatch{Paused: rolecall.Some(a.paused)}, nil); err != nil {
		return err
	}
	return v.redirect(directoryAddress(v, v.directoryID) + "?done=" + a.done)
}

func (c *console) askDirectoryDeletion(v *pageContext) error {
	view, err := c.directoryView(v)
	if err == nil {
		view.content, err = c.directory.DirectoryContent(v.ctx, v.call, v.directoryID)
	}
	if err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg("form.delete"), directoryDeletionPage)
}

func (c *console) deleteDirectory(v *pageContext) error {
	if err := c.directory.DeleteDirectory(v.ctx, v.call, v.directoryID, nil); err != nil {
		return err
	}
	return v.redirect(v.path("/directories") + "?done=directory-deleted")
}

// directoryTokensView returns the directory that the path names, with its tokens.
func (c *console) directoryTokensView(v *pageContext) (view directoryView, err error) {
	if view, err = c.directoryView(v); err == nil {
		view.tokens, err = c.directory.DirectoryTokens(v.ctx, v.call, v.directoryID)
	}
	return view, err
}

func (c *console) showDirectoryTokens(v *pageContext) error {
	view, err := c.directoryTokensView(v)
	if err != nil {
		return err
	}
	var makers []rolecall.AnyID
	for i := range view.tokens {
		makers = append(makers, rolecall.AnyID(view.tokens[i].CreatedBy))
	}
	if view.names, err = c.namesOf(v, makers); err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg("directories.tokens"), directoryTokensPage)
}

func (c *console) showNewDirectoryToken(v *pageContext) error {
	view, err := c.directoryView(v)
	if err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg("directories.new-token"), newDirectoryTokenPage)
}

// createDirectoryToken creates a token of a directory and shows its secret once. If the same form is sent again, the
// response does not contain the secret.
func (c *console) createDirectoryToken(v *pageContext) error {
	var faults rolecall.FieldErrors
	draft := rolecall.DirectoryTokenDraft{Name: v.form.Get("name"), ExpiresAt: v.readDate("expiresAt", &faults)}
	if err := faults.Err(); err != nil {
		return err
	}
	view, err := c.directoryView(v)
	if err == nil {
		view.made, err = c.directory.CreateDirectoryToken(v.ctx, v.call, v.key(), v.directoryID, draft)
	}
	if err != nil {
		return err
	}
	return c.showDirectoryPage(v, view, msg("tokens.token"), madeDirectoryTokenPage)
}

func (c *console) askRevokeDirectoryToken(v *pageContext) error {
	view, err := c.directoryTokensView(v)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(view.tokens, func(t rolecall.DirectoryToken) bool { return t.ID == rolecall.DirectoryTokenID(v.tokenID) })
	if i < 0 {
		return rolecall.ErrNotFound
	}
	return c.showDirectoryPage(v, view, msg("tokens.revoke-page"), func(view directoryView) templ.Component {
		return revokeDirectoryTokenDialog(view, &view.tokens[i])
	})
}

func (c *console) revokeDirectoryToken(v *pageContext) error {
	if err := c.directory.RevokeDirectoryToken(v.ctx, v.call, v.directoryID, rolecall.DirectoryTokenID(v.tokenID)); err != nil {
		return err
	}
	return v.redirect(directoryAddress(v, v.directoryID) + "?done=directory-token-revoked")
}

// directoryAddress returns the address of the page of the directory.
func directoryAddress(v *pageContext, id rolecall.DirectoryID) string {
	return v.path("/directories/" + id.String())
}

func (w directoryView) address(below string) string {
	return directoryAddress(w.pageContext, w.directory.ID) + below
}

// directoryTag returns the tag of the directory.
func directoryTag(d *rolecall.Directory) string {
	return tagOf(d.ID.String(), strconv.FormatInt(d.Version, 10))
}

// baseURL returns the address to which the identity provider sends the requests of a directory.
func (f frame) baseURL() string {
	return f.console.site.Address(f.request) + scimPath + f.tenant
}

// mayUpdate reports whether the caller may change the directory and create tokens.
func (w directoryView) mayUpdate() bool {
	return authz.UpdateConnection.Authorize(w.call.Principal) == nil
}

// mayRevoke reports whether the caller may revoke tokens of the directory.
func (w directoryView) mayRevoke() bool {
	return authz.RevokeDirectoryToken.Authorize(w.call.Principal) == nil
}

// hasMostTokens reports whether no further token can be created.
func (w directoryView) hasMostTokens() bool {
	live := 0
	for i := range w.tokens {
		if w.tokens[i].Live(w.now) {
			live++
		}
	}
	return live >= rolecall.DirectoryTokensMax
}

// directoryConcern returns the reason why the token needs attention. It returns an empty text if the token needs none.
func directoryConcern(t *rolecall.DirectoryToken, now rolecall.Time) string {
	switch {
	case !t.Live(now):
		return msg("tokens.expired")
	case t.ExpiresAt < now.Add(rolecall.DirectoryTokenWarning):
		return msg("tokens.expires-soon")
	}
	return ""
}

// directoryTokenLifetime is the default lifetime of a token of a directory.
const directoryTokenLifetime = 365 * 24 * time.Hour

// end returns the value of the expiry field: the submitted value, or the default.
func (w directoryView) end() dateValue {
	return cmp.Or(w.typedDate("expiresAt"), dateValue{text: w.inputText(w.now.Add(directoryTokenLifetime))})
}

// chosen returns the selected value of a field with radio buttons. other is the default of a new directory.
func (w directoryView) chosen(name, saved, other string) change {
	switch {
	case !w.directory.ID.IsZero():
		return w.changeOf(name, saved)
	case w.form[name] != nil:
		return change{shown: w.form.Get(name)}
	}
	return change{shown: other}
}

// requestDot returns the state of users whose dot shows the result of a request.
func requestDot(r *rolecall.DirectoryRequest) string {
	switch {
	case r.Status < http.StatusBadRequest:
		return "active"
	case r.Status == http.StatusNotFound: // providers search for users who do not exist yet
		return "pending"
	}
	return "suspended"
}

// deletionDetail says what remains after the directory is deleted.
func (w directoryView) deletionDetail() string {
	return msg("directories.delete-detail", "Users", msg("directories.users", "Count", w.content.Users), "Groups", msg("directories.groups", "Count", w.content.Groups))
}
