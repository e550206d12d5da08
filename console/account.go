package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"rsc.io/qr"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// accountPages returns the pages on which callers manage their own account.
func (c *console) accountPages() []page {
	return []page{
		{path: "/{tenant}/account", operation: "AuthsController_getFactors", show: c.showAccount},
		{path: "/{tenant}/users/{id}/identities", operation: "UsersController_listIdentities", show: c.showIdentities},
		{path: "/{tenant}/users/{id}/identities/{identityId}/delete", operation: "UsersController_deleteIdentity", show: c.askIdentityDeletion, act: c.deleteIdentity},
		{path: "/{tenant}/account/identities/add", operation: "AuthsController_linkOidc", show: c.askIdentity, act: c.leaveToLink},
		{path: "/{tenant}/account/identities/link", operation: "AuthsController_linkOidc", show: c.askIdentity, act: c.linkIdentity},
		{path: "/{tenant}/account/confirm", operation: "AuthsController_confirm", show: c.askConfirm, act: c.leaveToConfirm},
		{path: "/{tenant}/account/confirm/done", operation: "AuthsController_confirm", show: c.confirmed, act: c.confirm},
		{path: "/{tenant}/account/password", operation: "AuthsController_changePassword", show: c.showPassword, act: c.changePassword},
	}
}

// accountSessions is the number of the caller's sessions on the page of the account.
const accountSessions = 5

// accountView is the data of the page of the account.
type accountView struct {
	frame
	factors  signin.OwnFactors
	passkeys bool // the caller can add passkeys
	sessions rolecall.Page[rolecall.Session]
	tokens   []rolecall.APIToken // newest first
	identities
}

func (c *console) showAccount(v *pageContext) error {
	factors, err := c.signin.Factors(v.ctx, v.call)
	if err != nil {
		return err
	}
	sessions, err := c.signin.UserSessions(v.ctx, v.call, v.call.User.ID, nil, accountSessions)
	if err != nil {
		return err
	}
	tokens, err := c.directory.Tokens(v.ctx, v.call, rolecall.HolderOf(v.call.User.ID), nil, rolecall.APITokensMax)
	if err != nil {
		return err
	}
	slices.Reverse(tokens.Items)
	own, err := c.identities(v, v.call.User.ID)
	if err != nil {
		return err
	}
	return c.show(v, msg("nav.your-account"), accountSection, func(f frame) templ.Component {
		passkeys := c.passkeyOptions(v) != "" && len(factors.Passkeys) < rolecall.PasskeysMax
		return accountPage(accountView{f, factors, passkeys, sessions, tokens.Items, own})
	})
}

// mayRemove reports whether the caller may remove one of the factors. A caller who must
// have a second factor may not remove the last one.
func (a accountView) mayRemove() bool {
	return !a.factors.Demanded || a.factors.TOTP.Sealed != nil && len(a.factors.Passkeys) > 0 || len(a.factors.Passkeys) > 1
}

// own returns the address of the page about the caller in the section of users. below is
// appended to the path.
func (f frame) own(below string) string { return userAddress(f.pageContext, f.call.User.ID, below) }

func (c *console) showPassword(v *pageContext) error {
	return c.show(v, msg("account.change-password"), accountSection, passwordPage)
}

func (c *console) changePassword(v *pageContext) error {
	device, err := c.signin.ChangePassword(v.ctx, v.call, v.form.Get("currentPassword"), v.form.Get("newPassword"))
	if err != nil {
		return err
	}
	v.setDevice(device)
	return v.redirect(v.path("/account") + "?done=password-changed")
}

// passwordAdvice returns the rules for a new password of the caller.
func (f frame) passwordAdvice() string {
	return msg("account.password-advice", "Count", f.call.Tenant.Settings.PasswordMinimum())
}

// toAccount redirects to the account page. It answers GET requests to addresses that only
// accept forms.
func toAccount(v *pageContext) error { return v.redirect(v.path("/account")) }

func (c *console) sessionPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}/sessions", operation: "UsersController_listUserSessions", query: pageParameters, show: c.showSessions},
		{path: "/{tenant}/users/{id}/sessions/{sessionId}/end", operation: "UsersController_endUserSession", show: c.askEndSession, act: c.endSession},
	}
}

// sessionsView is the data of the page of a user's sessions.
type sessionsView struct {
	frame
	pageLinks
	user        rolecall.User
	page        rolecall.Page[rolecall.Session]
	connections []rolecall.Connection // of the tenant, if a session on the page began with one
}

func (c *console) showSessions(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	list := sessionsView{user: user}
	if v.faults == nil {
		after, limit := v.after, v.limit
		if list.page, err = c.signin.UserSessions(v.ctx, v.call, v.userID, after, limit); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(list.page.Items, func(s rolecall.Session) bool { return !s.Connection.IsZero() }) {
		if list.connections, err = c.signin.OfferedConnections(v.ctx, v.call.Tenant.ID); err != nil {
			return err
		}
	}
	title, here := msg("sessions.of", "Name", nameOf(v, &user)), usersSection
	if v.call.IsSelf(user.ID) {
		title, here = msg("sessions.own"), accountSection
	}
	return c.show(v, title, here, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return sessionsPage(list)
	})
}

func (c *console) askEndSession(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	return c.show(v, msg("sessions.end-session"), usersSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			title: say("sessions.end-title", "Name", bdi(nameOf(f.pageContext, &user))), label: msg("sessions.end-session"), destructive: true,
			detail: msg("sessions.end-effect"),
			back:   userAddress(f.pageContext, user.ID, "/sessions"),
		})
	})
}

func (c *console) endSession(v *pageContext) error {
	if err := c.signin.EndUserSession(v.ctx, v.call, v.userID, v.sessionID); err != nil {
		return err
	}
	if v.sessionID == v.call.Session.ID {
		return signedOut(v, "signed-out")
	}
	return v.redirect(userAddress(v, v.userID, "/sessions") + "?done=session-ended")
}

// connectionName returns the name of the connection with which the session began. It is empty for other sessions,
// and if the connection was deleted while the page was loaded.
func (l sessionsView) connectionName(s *rolecall.Session) string {
	return connectionName(l.connections, s.Connection)
}

// mayEnd reports whether the caller probably may end sessions of the user. The service decides.
func (l sessionsView) mayEnd() bool {
	return l.call.IsSelf(l.user.ID) || l.call.Reach(rolecall.SessionsRevoke).Includes(l.user.Department)
}

// factorPages returns the pages on which callers manage their own second factors.
func (c *console) factorPages() []page {
	return []page{
		{path: "/{tenant}/account/app", operation: "AuthsController_beginTotp", show: c.askApp, act: c.beginApp},
		{path: "/{tenant}/account/app/confirm", operation: "AuthsController_confirmTotp", show: c.showApp, act: c.confirmApp},
		{path: "/{tenant}/account/app/remove", operation: "AuthsController_deleteTotp", show: c.askRemoveApp, act: c.removeApp},
		{path: "/{tenant}/account/recovery-codes", operation: "AuthsController_makeRecoveryCodes", show: c.askRecoveryCodes, act: c.makeRecoveryCodes},
		{path: "/{tenant}/account/passkeys/add", operation: "AuthsController_getPasskeyOptions", show: c.askPasskey, act: c.askPasskey},
		{path: "/{tenant}/account/passkeys", operation: "AuthsController_createPasskey", needsKey: true, show: c.showPasskey, act: c.addPasskey},
		{path: "/{tenant}/account/passkeys/{passkeyId}/rename", operation: "AuthsController_updatePasskey", show: c.showRename, act: c.renamePasskey},
		{path: "/{tenant}/account/passkeys/{passkeyId}/remove", operation: "AuthsController_deletePasskey", show: c.askRemovePasskey, act: c.removePasskey},
	}
}

// askApp shows the effects of adding an authenticator app, and a button that continues. The
// page itself creates no secret, because each call of BeginTOTP creates a new secret.
func (c *console) askApp(v *pageContext) error {
	factors, err := c.signin.Factors(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, msg("factor.app"), accountSection, func(f frame) templ.Component {
		return appStartPage(f, factors.TOTP.Sealed != nil)
	})
}

func (c *console) beginApp(v *pageContext) error {
	begun, err := c.signin.BeginTOTP(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, msg("factor.app"), accountSection, func(f frame) templ.Component {
		return appPage(f, begun.Secret, begun.URI)
	})
}

// showApp shows the form for the first code again after an error. The secret is in hidden
// fields of the form.
func (c *console) showApp(v *pageContext) error {
	if v.problem == nil {
		return toAccount(v)
	}
	return c.show(v, msg("factor.app"), accountSection, func(f frame) templ.Component {
		return appPage(f, f.form.Get("secret"), f.form.Get("uri"))
	})
}

func (c *console) confirmApp(v *pageContext) error {
	codes, err := c.signin.ConfirmTOTP(v.ctx, v.call, v.form.Get("code"))
	if err != nil {
		return err
	}
	return c.factorAdded(v, codes, "app-added")
}

// factorAdded redirects to the account page. If the user has received recovery codes,
// factorAdded shows the codes first.
func (c *console) factorAdded(v *pageContext, codes []secret.RecoveryCode, done string) error {
	next := v.path("/account") + "?done=" + done
	if codes == nil {
		return v.redirect(next)
	}
	return c.show(v, msg("sign-in.codes-page"), accountSection, func(f frame) templ.Component {
		return ownRecoveryCodesPage(f, codes, next)
	})
}

func (c *console) askRemoveApp(v *pageContext) error {
	return c.show(v, msg("factor.remove-app"), accountSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			title: plain(msg("factor.remove-app-title")), label: msg("form.remove"), destructive: true, back: f.path("/account"),
			detail: msg("factor.remove-app-effect"),
		})
	})
}

func (c *console) removeApp(v *pageContext) error {
	if err := c.signin.RemoveTOTP(v.ctx, v.call); err != nil {
		return err
	}
	return v.redirect(v.path("/account") + "?done=app-removed")
}

func (c *console) askRecoveryCodes(v *pageContext) error {
	return c.show(v, msg("sign-in.codes-page"), accountSection, recoveryCodesStartPage)
}

func (c *console) makeRecoveryCodes(v *pageContext) error {
	codes, err := c.signin.MakeRecoveryCodes(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.factorAdded(v, codes, "codes-made")
}

// askPasskey shows the form for the name of a new passkey. If the sign-in is too old,
// askPasskey first shows the form for re-authentication.
func (c *console) askPasskey(v *pageContext) error {
	if v.needsReauthentication() {
		return c.show(v, msg("factor.add-passkey"), accountSection, passkeyStartPage)
	}
	return c.showPasskeyForm(v)
}

func (c *console) showPasskeyForm(v *pageContext) error {
	options, err := c.signin.PasskeyCreationOptions(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, msg("factor.add-passkey"), accountSection, func(f frame) templ.Component {
		return passkeyPage(f, string(options))
	})
}

// showPasskey shows the form again after an error, with new WebAuthn options, because the
// old options may have expired. It redirects a GET request, such as after a new sign-in, to
// the form.
func (c *console) showPasskey(v *pageContext) error {
	if v.problem == nil {
		return v.redirect(v.path("/account/passkeys/add"))
	}
	return c.showPasskeyForm(v)
}

func (c *console) addPasskey(v *pageContext) error {
	created, err := c.signin.AddPasskey(v.ctx, v.call, v.key(), v.form.Get("name"), []byte(v.form.Get("passkey")))
	if err != nil {
		return err
	}
	return c.factorAdded(v, created.Value.RecoveryCodes, "passkey-added")
}

// ownPasskey returns the caller's passkey that the path names.
func (c *console) ownPasskey(v *pageContext) (rolecall.Passkey, error) {
	factors, err := c.signin.Factors(v.ctx, v.call)
	if err != nil {
		return rolecall.Passkey{}, err
	}
	for _, key := range factors.Passkeys {
		if string(key.ID) == string(v.passkeyID) {
			return key, nil
		}
	}
	return rolecall.Passkey{}, rolecall.ErrNotFound
}

func (c *console) showRename(v *pageContext) error {
	key, err := c.ownPasskey(v)
	if err != nil {
		return err
	}
	return c.show(v, msg("factor.rename-page"), accountSection, func(f frame) templ.Component {
		return renamePage(f, &key)
	})
}

func (c *console) renamePasskey(v *pageContext) error {
	if _, err := c.signin.UpdatePasskey(v.ctx, v.call, v.passkeyID, rolecall.Some(v.form.Get("name"))); err != nil {
		return err
	}
	return v.redirect(v.path("/account") + "?done=saved")
}

func (c *console) askRemovePasskey(v *pageContext) error {
	key, err := c.ownPasskey(v)
	if err != nil {
		return err
	}
	return c.show(v, msg("factor.remove-page"), accountSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			title: say("factor.remove-passkey-title", "Name", bdi(key.Name)), label: msg("form.remove"), destructive: true, back: f.path("/account"),
			detail: msg("factor.remove-passkey-effect"),
		})
	})
}

func (c *console) removePasskey(v *pageContext) error {
	if err := c.signin.RemovePasskey(v.ctx, v.call, v.passkeyID); err != nil {
		return err
	}
	return v.redirect(v.path("/account") + "?done=passkey-removed")
}

// passkeyAddress returns the prefix of the addresses of the passkey.
func passkeyAddress(f frame, key *rolecall.Passkey) string {
	return f.path("/account/passkeys/" + base64.RawURLEncoding.EncodeToString(key.ID))
}

// appURL returns the otpauth URL for a link that opens an authenticator app. appURL checks
// the scheme, because the URL comes from a form field, which a user can change.
func appURL(uri string) templ.SafeURL {
	if !strings.HasPrefix(uri, "otpauth://") {
		return ""
	}
	return templ.SafeURL(uri)
}

// quiet is the width of the empty margin of a QR code, in modules (ISO/IEC 18004, 6.3.8).
const quiet = 4

// qrPath returns the QR code of the text as one SVG path, and the side length of the
// picture with its margin, in modules. If the text is too long for a QR code, the path is
// empty.
func qrPath(text string) (path string, side int) {
	code, err := qr.Encode(text, qr.L) // the lowest error correction is enough on a screen
	if err != nil {
		return "", 0
	}
	var b strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			from := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", quiet+from, quiet+y, x-from, x-from)
			}
		}
	}
	return b.String(), code.Size + 2*quiet
}

// identities are the identities of a user, and the connections of the tenant.
type identities struct {
	list        []rolecall.Identity
	connections []rolecall.Connection
}

func (c *console) identities(v *pageContext, user rolecall.UserID) (i identities, err error) {
	if i.list, err = c.signin.Identities(v.ctx, v.call, user); err != nil {
		return i, err
	}
	i.connections, err = c.signin.OfferedConnections(v.ctx, v.call.Tenant.ID)
	return i, err
}

// connectionName returns the name of the connection of the identity.
func (i identities) connectionName(identity *rolecall.Identity) string {
	return orWords(connectionName(i.connections, identity.ConnectionID), identity.Issuer)
}

// connectionNames returns the names of the connections of the identities.
func (i identities) connectionNames() (names []string) {
	for at := range i.list {
		if name := i.connectionName(&i.list[at]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// identitiesView is the data of the pages about identities.
type identitiesView struct {
	frame
	identities
	user rolecall.User
}

func (c *console) identitiesView(v *pageContext) (view identitiesView, err error) {
	if view.user, err = c.directory.User(v.ctx, v.call, v.userID); err == nil {
		view.identities, err = c.identities(v, v.userID)
	}
	return view, err
}

func (c *console) showIdentities(v *pageContext) error {
	view, err := c.identitiesView(v)
	if err != nil {
		return err
	}
	title, here := msg("identities.of", "Name", nameOf(v, &view.user)), usersSection
	if v.call.IsSelf(v.userID) {
		title, here = msg("identities.own"), accountSection
	}
	return c.show(v, title, here, func(f frame) templ.Component {
		view.frame = f
		return identitiesPage(view)
	})
}

// mayRemove reports whether the caller probably may remove identities of the user. The service decides.
func (l identitiesView) mayRemove() bool {
	return l.call.IsSelf(l.user.ID) || l.call.Reach(rolecall.IdentitiesDelete).Includes(l.user.Department)
}

func (c *console) askIdentityDeletion(v *pageContext) error {
	view, err := c.identitiesView(v)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(view.list, func(i rolecall.Identity) bool { return i.ID == v.identityID })
	if at < 0 {
		return rolecall.ErrNotFound
	}
	return c.show(v, msg("identities.remove"), usersSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			title: say("identities.remove-title", "Connection", bdi(view.connectionName(&view.list[at])), "Name", bdi(nameOf(v, &view.user))), label: msg("form.remove"), destructive: true,
			detail: msg("identities.remove-effect"), back: userAddress(v, v.userID, "/identities"),
		})
	})
}

func (c *console) deleteIdentity(v *pageContext) error {
	if err := c.signin.DeleteIdentity(v.ctx, v.call, v.userID, v.identityID); err != nil {
		return err
	}
	if v.call.Session.Identity == v.identityID {
		return signedOut(v, "signed-out")
	}
	return v.redirect(userAddress(v, v.userID, "/identities") + "?done=identity-removed")
}

// askIdentity asks with which connection the caller wants to sign in. When the browser has returned from the
// identity provider, it asks whether to add the identity.
func (c *console) askIdentity(v *pageContext) error {
	offered := c.offered(v)
	return c.show(v, msg("identities.add"), accountSection, func(f frame) templ.Component {
		if f.returnedCode() != "" {
			return linkPage(f)
		}
		return linkStartPage(f, offered)
	})
}

// fieldConnectionCode is the name of the field with the code with which the browser has returned from an identity
// provider.
const fieldConnectionCode = "connectionCode"

// returnedCode returns the code with which the browser has returned from an identity provider.
func (v *pageContext) returnedCode() string {
	if code := v.form.Get(fieldConnectionCode); code != "" {
		return code
	}
	return v.request.URL.Query().Get(fieldCode)
}

func (c *console) leaveToLink(v *pageContext) error {
	id, err := v.chosenConnection()
	if err != nil {
		return err
	}
	return c.leave(v, signin.ConnectionStart{Connection: id, Purpose: signin.PurposeLink}, "/account/identities/link")
}

func (c *console) linkIdentity(v *pageContext) error {
	if _, err := c.signin.LinkIdentity(v.ctx, v.call, secret.Token(v.returnedCode()), ""); err != nil {
		return err
	}
	return v.redirect(v.path("/account") + "?done=identity-added")
}

// askConfirm offers the connections with which the caller can confirm their identity.
func (c *console) askConfirm(v *pageContext) error {
	own, err := c.identities(v, v.call.User.ID)
	if err != nil {
		return err
	}
	if len(own.list) == 0 { // the page of the form asks for the password
		return v.redirect(returnAddress(v, v.returnTail()))
	}
	return c.show(v, msg("step-up.title"), accountSection, func(f frame) templ.Component { return confirmPage(f, own) })
}

func (c *console) leaveToConfirm(v *pageContext) error {
	id, err := v.chosenConnection()
	if err != nil {
		return err
	}
	return c.leave(v, signin.ConnectionStart{Connection: id, Purpose: signin.PurposeConfirm}, "/account/confirm/done")
}

// confirmed answers the return from the identity provider: it confirms the identity, and leads back to the page
// of the form.
func (c *console) confirmed(v *pageContext) error {
	if v.problem == nil {
		err := c.confirm(v)
		if known, ok := errors.AsType[*rolecall.Error](err); ok && known.Kind != rolecall.Unavailable {
			return v.redirect(v.path("/account/confirm") + "?" + url.Values{fieldError: {rolecall.ErrCodeInvalid.Code}, fieldReturn: {v.returnTail()}}.Encode())
		}
		return err
	}
	asked, err := c.signin.FactorChallenge(v.ctx, v.call)
	if err != nil {
		return err
	}
	if asked == nil || slices.ContainsFunc(v.problem.FieldErrors, func(f rolecall.FieldError) bool { return f.Pointer == "/"+fieldConnectionCode }) {
		return c.askConfirm(v)
	}
	return c.showConfirmFactor(v, asked)
}

// confirm re-authenticates the caller with the code of the identity provider and the second factor in the form.
// If a second factor is missing, it shows a form for it.
func (c *console) confirm(v *pageContext) error {
	if v.returnedCode() == "" {
		return c.askConfirm(v)
	}
	in, err := c.signin.ReauthenticateByCode(v.ctx, v.call, v.sessions, secret.Token(v.returnedCode()), "", v.proof(fieldsOwn))
	if known, ok := errors.AsType[*rolecall.Error](err); ok && v.form != nil && v.proof(fieldsOwn).Code+v.proof(fieldsOwn).RecoveryCode != "" {
		return atOwnFields(known)
	}
	if err != nil {
		return err
	}
	if in.Challenge != nil {
		return c.showConfirmFactor(v, in.Challenge)
	}
	if err := v.setSession(&in); err != nil {
		return err
	}
	return v.redirect(returnAddress(v, v.returnTail()))
}

func (c *console) showConfirmFactor(v *pageContext, asked *signin.Challenge) error {
	return c.show(v, msg("step-up.title"), accountSection, func(f frame) templ.Component {
		return confirmFactorPage(f, challengeOf(asked))
	})
}
