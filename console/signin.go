package console

import (
	"errors"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// signInPages are the ways in and out.
func (c *console) signInPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/", Operation: "AuthsController_login", Show: c.showSignIn, Act: c.signIn},
		{Path: "/{tenant}/sign-in", Operation: "AuthsController_login", Show: c.showSignIn, Act: c.signIn},
		{Path: "/{tenant}/sign-in/second-factor", Operation: "AuthsController_completeLogin", Show: c.showSecondFactor, Act: c.completeSignIn},
		{Path: "/{tenant}/sign-in/enrolment", Operation: "AuthsController_completeLogin", Show: c.showEnrolment, Act: c.completeSignIn},
		{Path: "/{tenant}/sign-in/passkey", Operation: "AuthsController_signInByPasskey", Show: c.showSignIn, Act: c.signInByPasskey},
		{Path: "/{tenant}/sign-out", Operation: "AuthsController_logout", Show: c.showSignOut, Act: c.signOut},
	}
}

// showSignIn asks who is there; after the right password it asks for what is needed
// beside it.
func (c *console) showSignIn(v *httpapi.Visit) error {
	if p := v.Problem(); p != nil && p.Challenge != nil {
		if p.Code == rolecall.ErrEnrolmentRequired.Code {
			return c.askEnrolment(v, p.Challenge.Token)
		}
		return c.showSecondFactor(v)
	}
	return c.showEntry(v, "Sign in", func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v)) })
}

// passkeyOptions returns what asks an authenticator for a passkey, empty where there
// are none.
func (c *console) passkeyOptions(v *httpapi.Visit) string {
	attempt, err := v.Attempt()
	if err != nil || v.Tenant() == "" {
		return ""
	}
	options, err := c.service.PasskeySignInOptions(attempt)
	if err != nil {
		return ""
	}
	return string(options)
}

func (c *console) signIn(v *httpapi.Visit) error {
	if tenant := v.Form("tenant"); v.Tenant() == "" && !v.SetTenant(strings.ToLower(strings.TrimSpace(tenant))) {
		return rolecall.ErrMalformed.WithFaults(rolecall.Fault{Parameter: "tenant", Code: "format", Detail: "must be the name of your tenant: a to z, 0 to 9, _ and -"})
	}
	attempt, err := v.Attempt()
	if err != nil {
		return err
	}
	signIn, err := c.service.Login(v.Context(), attempt, v.Form("email"), v.Form("password"))
	return c.signedIn(v, signIn, err)
}

// signedIn lets in who has shown who they are. New recovery codes are shown first.
func (c *console) signedIn(v *httpapi.Visit, signIn service.SignIn, err error) error {
	if err != nil {
		return err
	}
	v.SignedIn(&signIn)
	next := returnAddress(v, v.Form("return"))
	if signIn.RecoveryCodes == nil {
		return v.Redirect(next)
	}
	return c.showEntry(v, "Recovery codes", func(f frame) templ.Component { return recoveryCodesPage(f, signIn.RecoveryCodes, next) })
}

// challenge is what a sign-in waits for beside the password. It travels in the form.
type challenge struct {
	token     string
	methods   string // separated by spaces
	publicKey string // what asks for a passkey, in JSON
}

// challengeOf returns what a form carries of the challenge.
func challengeOf(c *rolecall.Challenge) challenge {
	methods := make([]string, len(c.Methods))
	for i, method := range c.Methods {
		methods[i] = string(method)
	}
	return challenge{c.Token, strings.Join(methods, " "), string(c.PublicKey)}
}

func (q challenge) takes(method rolecall.FactorMethod) bool {
	return strings.Contains(" "+q.methods+" ", " "+string(method)+" ")
}

func (c *console) showSecondFactor(v *httpapi.Visit) error {
	q := challenge{v.Form("challenge"), v.Form("methods"), v.Form("public-key")}
	if p := v.Problem(); p != nil && p.Challenge != nil {
		q = challengeOf(p.Challenge)
	}
	if p := v.Problem(); q.token == "" || p != nil && errors.Is(p.Error, rolecall.ErrChallengeInvalid) {
		return c.showEntry(v, "Sign in", func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v)) })
	}
	return c.showEntry(v, "Second factor", func(f frame) templ.Component { return secondFactorPage(f, q) })
}

// answer returns the challenge that the form answers, and by what.
func answer(v *httpapi.Visit) (secret.Token, service.Proof, error) {
	challenge, ok := secret.ParseToken(v.Form("challenge"))
	if !ok {
		return "", service.Proof{}, rolecall.ErrChallengeInvalid
	}
	proof := v.Proof("")
	if proof.Passkey == nil && proof.Code == "" && proof.RecoveryCode == "" {
		return challenge, proof, rolecall.ErrWrongCode.With("Nothing was shown. Give a code, or use another way.")
	}
	return challenge, proof, nil
}

func (c *console) completeSignIn(v *httpapi.Visit) error {
	challenge, proof, err := answer(v)
	if err != nil {
		return err
	}
	attempt, err := v.Attempt()
	if err != nil {
		return err
	}
	signIn, err := c.service.CompleteSignIn(v.Context(), attempt, challenge, proof)
	return c.signedIn(v, signIn, err)
}

// enrolment is what a second factor can be made of on the way in. It travels in the
// form, as a new secret would be another than the one in the app.
type enrolment struct{ challenge, secret, uri, publicKey string }

// askEnrolment shows what to make a second factor of.
func (c *console) askEnrolment(v *httpapi.Visit, challenge string) error {
	token, ok := secret.ParseToken(challenge)
	if !ok {
		return rolecall.ErrChallengeInvalid
	}
	attempt, err := v.Attempt()
	if err != nil {
		return err
	}
	made, err := c.service.BeginEnrolment(v.Context(), attempt, token)
	if err != nil {
		return err
	}
	e := enrolment{challenge, made.Secret, made.URI, string(made.PublicKey)}
	return c.showEntry(v, "Second factor", func(f frame) templ.Component { return enrolmentPage(f, e) })
}

// showEnrolment shows the form again.
func (c *console) showEnrolment(v *httpapi.Visit) error {
	e := enrolment{v.Form("challenge"), v.Form("secret"), v.Form("uri"), v.Form("public-key")}
	if p := v.Problem(); e.challenge == "" || p != nil && errors.Is(p.Error, rolecall.ErrChallengeInvalid) {
		return c.showEntry(v, "Sign in", func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v)) })
	}
	return c.showEntry(v, "Second factor", func(f frame) templ.Component { return enrolmentPage(f, e) })
}

func (c *console) signInByPasskey(v *httpapi.Visit) error {
	attempt, err := v.Attempt()
	if err != nil {
		return err
	}
	signIn, err := c.service.PasskeySignIn(v.Context(), attempt, []byte(v.Form("passkey")))
	return c.signedIn(v, signIn, err)
}

func (c *console) showSignOut(v *httpapi.Visit) error {
	return c.showEntry(v, "Sign out", signOutPage)
}

func (c *console) signOut(v *httpapi.Visit) error {
	attempt, err := v.Attempt()
	if err != nil {
		return err
	}
	if err := c.service.Logout(v.Context(), attempt); err != nil {
		return err
	}
	return signedOut(v)
}

// signedOut leads who has just ended their own session to where one begins.
func signedOut(v *httpapi.Visit) error {
	v.SignedOut()
	return v.Redirect(v.Path("/sign-in") + "?done=signed-out")
}

// whySignIn says why somebody has to sign in who may think that they have.
func whySignIn(why string) string {
	switch why {
	case rolecall.ErrAmbiguousSession.Code:
		return "This browser has two sessions of this tenant. Sign in again to end both and begin one."
	case rolecall.ErrTenantSuspended.Code:
		return rolecall.ErrTenantSuspended.Detail
	}
	return ""
}

// signInAction returns where the form of a sign-in is sent: it stays where it names
// the tenant.
func (f frame) signInAction() string {
	if f.URL().Path == f.Root() {
		return f.Root()
	}
	return f.Path("/sign-in")
}
