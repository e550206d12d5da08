package console

import (
	"encoding/base64"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/secret"
)

// factorPages are one's own second factors.
func (c *console) factorPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/account/app", Operation: "AuthsController_beginTotp", Show: c.askApp, Act: c.beginApp},
		{Path: "/{tenant}/account/app/confirm", Operation: "AuthsController_confirmTotp", Show: c.showApp, Act: c.confirmApp},
		{Path: "/{tenant}/account/app/remove", Operation: "AuthsController_deleteTotp", Show: c.askRemoveApp, Act: c.removeApp},
		{Path: "/{tenant}/account/recovery-codes", Operation: "AuthsController_makeRecoveryCodes", Show: c.askRecoveryCodes, Act: c.makeRecoveryCodes},
		{Path: "/{tenant}/account/passkeys/add", Operation: "AuthsController_getPasskeyOptions", Show: c.askPasskey, Act: c.askPasskey},
		{Path: "/{tenant}/account/passkeys", Operation: "AuthsController_createPasskey", Show: c.showPasskey, Act: c.addPasskey},
		{Path: "/{tenant}/account/passkeys/{passkeyId}/rename", Operation: "AuthsController_updatePasskey", Show: c.showRename, Act: c.renamePasskey},
		{Path: "/{tenant}/account/passkeys/{passkeyId}/remove", Operation: "AuthsController_deletePasskey", Show: c.askRemovePasskey, Act: c.removePasskey},
	}
}

// askApp says what will happen, since a new secret is made each time.
func (c *console) askApp(v *httpapi.Visit) error {
	factors, err := c.service.Factors(v.Context(), v.Call())
	if err != nil {
		return err
	}
	return c.show(v, "Authenticator app", accountSection, func(f frame) templ.Component {
		return appStartPage(f, factors.TOTP.Sealed != nil)
	})
}

func (c *console) beginApp(v *httpapi.Visit) error {
	begun, err := c.service.BeginTOTP(v.Context(), v.Call())
	if err != nil {
		return err
	}
	return c.show(v, "Authenticator app", accountSection, func(f frame) templ.Component {
		return appPage(f, begun.Secret, begun.URI)
	})
}

// showApp shows the form again: the secret travels in it.
func (c *console) showApp(v *httpapi.Visit) error {
	if v.Problem() == nil {
		return toAccount(v)
	}
	return c.show(v, "Authenticator app", accountSection, func(f frame) templ.Component {
		return appPage(f, f.Form("secret"), f.Form("uri"))
	})
}

func (c *console) confirmApp(v *httpapi.Visit) error {
	codes, err := c.service.ConfirmTOTP(v.Context(), v.Call(), v.Form("code"))
	if err != nil {
		return err
	}
	return c.factorAdded(v, codes, "app-added")
}

// factorAdded leads back to the account. New recovery codes are shown first.
func (c *console) factorAdded(v *httpapi.Visit, codes []secret.RecoveryCode, done string) error {
	next := v.Path("/account") + "?done=" + done
	if codes == nil {
		return v.Redirect(next)
	}
	return c.show(v, "Recovery codes", accountSection, func(f frame) templ.Component {
		return ownRecoveryCodesPage(f, codes, next)
	})
}

func (c *console) askRemoveApp(v *httpapi.Visit) error {
	return c.show(v, "Remove the app", accountSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			asks: "Remove your authenticator app", label: "Remove", grave: true, back: f.Path("/account"),
			tells: "Its codes count for nothing from then on, and you are signed out everywhere else. With your last second factor the recovery codes go too.",
		})
	})
}

func (c *console) removeApp(v *httpapi.Visit) error {
	if err := c.service.RemoveTOTP(v.Context(), v.Call()); err != nil {
		return err
	}
	return v.Redirect(v.Path("/account") + "?done=app-removed")
}

func (c *console) askRecoveryCodes(v *httpapi.Visit) error {
	return c.show(v, "Recovery codes", accountSection, recoveryCodesStartPage)
}

func (c *console) makeRecoveryCodes(v *httpapi.Visit) error {
	codes, err := c.service.MakeRecoveryCodes(v.Context(), v.Call())
	if err != nil {
		return err
	}
	return c.factorAdded(v, codes, "codes-made")
}

// askPasskey asks for the name of a new passkey, and before it who is not sure to be
// the one who signed in.
func (c *console) askPasskey(v *httpapi.Visit) error {
	if v.NeedsConfirmation() {
		return c.show(v, "Add a passkey", accountSection, passkeyStartPage)
	}
	return c.showPasskeyForm(v)
}

func (c *console) showPasskeyForm(v *httpapi.Visit) error {
	options, err := c.service.PasskeyCreationOptions(v.Context(), v.Call())
	if err != nil {
		return err
	}
	return c.show(v, "Add a passkey", accountSection, func(f frame) templ.Component {
		return passkeyPage(f, string(options))
	})
}

// showPasskey shows the form again, with new options: the old ones may be over.
func (c *console) showPasskey(v *httpapi.Visit) error {
	if v.Problem() == nil {
		return toAccount(v)
	}
	return c.showPasskeyForm(v)
}

func (c *console) addPasskey(v *httpapi.Visit) error {
	created, err := c.service.AddPasskey(v.Context(), v.Call(), v.Key(), v.Form("name"), []byte(v.Form("passkey")))
	if err != nil {
		return err
	}
	return c.factorAdded(v, created.Value.RecoveryCodes, "passkey-added")
}

// ownPasskey returns the passkey of the path.
func (c *console) ownPasskey(v *httpapi.Visit) (rolecall.Passkey, error) {
	factors, err := c.service.Factors(v.Context(), v.Call())
	if err != nil {
		return rolecall.Passkey{}, err
	}
	for _, key := range factors.Passkeys {
		if string(key.ID) == string(v.Passkey()) {
			return key, nil
		}
	}
	return rolecall.Passkey{}, rolecall.ErrNotFound
}

func (c *console) showRename(v *httpapi.Visit) error {
	key, err := c.ownPasskey(v)
	if err != nil {
		return err
	}
	return c.show(v, "Rename the passkey", accountSection, func(f frame) templ.Component {
		return renamePage(f, &key)
	})
}

func (c *console) renamePasskey(v *httpapi.Visit) error {
	if _, err := c.service.UpdatePasskey(v.Context(), v.Call(), v.Passkey(), rolecall.Some(v.Form("name"))); err != nil {
		return err
	}
	return v.Redirect(v.Path("/account") + "?done=saved")
}

func (c *console) askRemovePasskey(v *httpapi.Visit) error {
	key, err := c.ownPasskey(v)
	if err != nil {
		return err
	}
	return c.show(v, "Remove the passkey", accountSection, func(f frame) templ.Component {
		return confirmForm(f, question{
			asks: "Remove the passkey", whom: key.Name, label: "Remove", grave: true, back: f.Path("/account"),
			tells: "It signs you in no longer, and you are signed out everywhere else. Remove it from your device too, which goes on to offer it. With your last second factor the recovery codes go too.",
		})
	})
}

func (c *console) removePasskey(v *httpapi.Visit) error {
	if err := c.service.RemovePasskey(v.Context(), v.Call(), v.Passkey()); err != nil {
		return err
	}
	return v.Redirect(v.Path("/account") + "?done=passkey-removed")
}

// passkeyAddress returns what the addresses of the passkey begin with.
func passkeyAddress(f frame, key *rolecall.Passkey) string {
	return f.Path("/account/passkeys/" + base64.RawURLEncoding.EncodeToString(key.ID))
}
