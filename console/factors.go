package console

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/a-h/templ"
	"rsc.io/qr"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

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

// askApp shows the effect of adding an app and a button, because each call makes a new secret.
func (c *console) askApp(v *pageContext) error {
	factors, err := c.signin.Factors(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, "Authenticator app", accountSection, func(f frame) templ.Component {
		return appStartPage(f, factors.TOTP.Sealed != nil)
	})
}

func (c *console) beginApp(v *pageContext) error {
	begun, err := c.signin.BeginTOTP(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, "Authenticator app", accountSection, func(f frame) templ.Component {
		return appPage(f, begun.Secret, begun.URI)
	})
}

// showApp shows the form again after an error. The form carries the secret.
func (c *console) showApp(v *pageContext) error {
	if v.problem == nil {
		return toAccount(v)
	}
	return c.show(v, "Authenticator app", accountSection, func(f frame) templ.Component {
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

// factorAdded redirects to the account. It shows new recovery codes first.
func (c *console) factorAdded(v *pageContext, codes []secret.RecoveryCode, done string) error {
	next := v.path("/account") + "?done=" + done
	if codes == nil {
		return v.redirect(next)
	}
	return c.show(v, "Recovery codes", accountSection, func(f frame) templ.Component {
		return ownRecoveryCodesPage(f, codes, next)
	})
}

func (c *console) askRemoveApp(v *pageContext) error {
	return c.show(v, "Remove the app", accountSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			title: "Remove your authenticator app", label: "Remove", destructive: true, back: f.path("/account"),
			detail: "Its codes count for nothing from then on, and you are signed out everywhere else. With your last second factor the recovery codes go too.",
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
	return c.show(v, "Recovery codes", accountSection, recoveryCodesStartPage)
}

func (c *console) makeRecoveryCodes(v *pageContext) error {
	codes, err := c.signin.MakeRecoveryCodes(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.factorAdded(v, codes, "codes-made")
}

// askPasskey shows the form for the name of a new passkey. It shows the form for re-authentication
// first if the operation needs it.
func (c *console) askPasskey(v *pageContext) error {
	if v.needsReauthentication() {
		return c.show(v, "Add a passkey", accountSection, passkeyStartPage)
	}
	return c.showPasskeyForm(v)
}

func (c *console) showPasskeyForm(v *pageContext) error {
	options, err := c.signin.PasskeyCreationOptions(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, "Add a passkey", accountSection, func(f frame) templ.Component {
		return passkeyPage(f, string(options))
	})
}

// showPasskey shows the form again with new options, because the old ones may have expired.
func (c *console) showPasskey(v *pageContext) error {
	if v.problem == nil {
		return toAccount(v)
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
	return c.show(v, "Rename the passkey", accountSection, func(f frame) templ.Component {
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
	return c.show(v, "Remove the passkey", accountSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			title: "Remove the passkey", name: key.Name, label: "Remove", destructive: true, back: f.path("/account"),
			detail: "It signs you in no longer, and you are signed out everywhere else. Remove it from your device too, which goes on to offer it. With your last second factor the recovery codes go too.",
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

// appURL returns the address that opens an authenticator app. It checks the scheme, because the text
// comes from a form and can be anything.
func appURL(uri string) templ.SafeURL {
	if !strings.HasPrefix(uri, "otpauth://") {
		return ""
	}
	return templ.SafeURL(uri)
}

// quiet is the width of the empty margin of a QR code, in modules (ISO/IEC 18004, 6.3.8).
const quiet = 4

// qrPath returns the QR code of the text as one SVG path, and the length of its side in units. It
// returns an empty path if the text is too long.
func qrPath(text string) (path string, side int) {
	code, err := qr.Encode(text, qr.L) // a screen has no stains
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
