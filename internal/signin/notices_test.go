package signin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/signin"
)

// fromBrowser returns an anonymous request from a browser with these known-device tokens.
func fromBrowser(f *nodetest.Fixture, devices ...string) access.Anonymous {
	a := f.Attempt()
	a.Devices, a.Client, a.Source = devices, "Firefox on Linux", "198.51.100.7"
	return a
}

func TestASignInFromANewBrowserIsMailed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const another = "another " + nodetest.Password
		user := f.NewMember("ada")
		var in signin.SignIn
		signIn := func(a access.Anonymous, secret string) func() {
			return func() {
				var err error
				in, err = f.SignIn.Login(f.Context(), a, nodetest.Address("ada"), secret)
				f.OK(err)
			}
		}
		f.ExpectMailed(signIn(fromBrowser(f), nodetest.Password)) // the user's first sign-in
		f.ExpectMailed(signIn(fromBrowser(f, in.Device), nodetest.Password))
		f.ExpectMailed(func() {
			f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), fromBrowser(f), nodetest.Address("ada"), "wrong")), rolecall.ErrWrongCredentials)
		})
		f.Clock.Advance(time.Hour)
		f.ExpectMailed(signIn(fromBrowser(f, "", "made up"), nodetest.Password), "new-browser ada")
		mails := f.Mails()
		if m := mails[len(mails)-1]; m.Client != "Firefox on Linux" || m.Source != "198.51.100.7" || m.UserID != user.ID || m.Token != "" || m.ExpiresAt != f.Clock.Now().Add(rolecall.NoticeLifetime) {
			t.Errorf("the mail is %+v", m)
		}
		f.ExpectMailed(signIn(fromBrowser(f, in.Device), nodetest.Password))
		known := in.Device
		mark, err := f.SignIn.ChangePassword(f.Context(), f.CallerOf(in), nodetest.Password, another)
		f.OK(err)
		f.ExpectMailed(signIn(fromBrowser(f, mark), another))
		f.ExpectMailed(signIn(fromBrowser(f, known), another), "new-browser ada") // the browser was known with the old password
		f.Clock.Advance(signin.DeviceLifetime)
		f.ExpectMailed(signIn(fromBrowser(f, mark), another), "new-browser ada")
	})
}

func TestMailsAboutSignInsAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		f.NewMember("grace")
		f.LogIn("ada")
		f.LogIn("grace")
		mailed := f.Mailed(func() {
			for range 10 {
				f.LogIn("ada")
			}
		})
		if want := append(slices.Repeat([]string{"new-browser ada"}, 3), "notices-paused ada"); !slices.Equal(mailed, want) {
			t.Errorf("mailed were %q", mailed)
		}
		f.ExpectMailed(func() { f.LogIn("grace") }, "new-browser grace")
		f.Clock.Advance(time.Hour)
		f.ExpectMailed(func() { f.LogIn("ada") }, "new-browser ada")
	})
}

// TestAnAccountCannotFillTheOutbox changes credentials in a loop. Otherwise, its notices would delay those of all
// tenants.
func TestAnAccountCannotFillTheOutbox(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		reader := f.NewRole("Reader", "users:read")
		for _, name := range []string{"ada", "grace"} {
			f.Assign(f.NewMember(name).ID, reader.ID, rolecall.AssignmentDraft{})
		}
		f.Clock.Advance(time.Hour)
		ada, grace := f.CallerOf(f.LogIn("ada")), f.CallerOf(f.LogIn("grace"))
		token := func(c access.Caller) {
			created, err := f.Directory.CreateToken(f.Context(), c, nodetest.NewKey(), rolecall.HolderOf(c.User.ID), f.TokenDraft("users:read"))
			f.OK(err)
			f.OK(f.Directory.RevokeToken(f.Context(), c, rolecall.HolderOf(c.User.ID), created.Value.ID))
		}
		mailed := f.Mailed(func() {
			for range 10 {
				token(ada)
			}
			for range 5 {
				f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), ada, nodetest.Password, "another "+nodetest.Password)))
				f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), ada, "another "+nodetest.Password, nodetest.Password)))
			}
		})
		if want := append(slices.Repeat([]string{"credentials-changed ada"}, 10), "notices-paused ada"); !slices.Equal(mailed, want) {
			t.Errorf("mailed were %q", mailed)
		}
		mails := f.Mails()
		if m := mails[len(mails)-1]; m.What != "changes of your sign-in settings" || m.UserID != ada.User.ID || m.Source != ada.Source {
			t.Errorf("the last mail is %+v", m)
		}
		f.ExpectMailed(func() { token(grace) }, "credentials-changed grace")
		f.Clock.Advance(time.Hour)
		f.ExpectMailed(func() { token(ada) }, "credentials-changed ada")
	})
}

func TestANewBrowserIsMailedWithEveryWayToSignIn(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, app, _ := f.Protected("ada")
		_, phone := f.WithPasskey("grace")
		f.Clock.Advance(time.Hour)
		var in signin.SignIn
		f.ExpectMailed(func() { f.FactorChallenge("ada") }) // the second factor has not been proved yet
		f.ExpectMailed(func() {
			f.Is(nodetest.ErrorOf(f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		})
		f.ExpectMailed(func() {
			var err error
			in, err = f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: app.Next()})
			f.OK(err)
		}, "new-browser ada")
		f.ExpectMailed(func() {
			asked := f.FactorChallenge("ada")
			f.OK(nodetest.ErrorOf(f.SignIn.CompleteSignIn(f.Context(), fromBrowser(f, in.Device), asked, signin.Proof{Code: app.Next()})))
		})
		f.ExpectMailed(func() {
			var err error
			in, err = byPasskey(f, phone.Get(t, signInOptions(f)))
			f.OK(err)
		}, "new-browser grace")
		f.ExpectMailed(func() {
			f.OK(nodetest.ErrorOf(f.SignIn.PasskeySignIn(f.Context(), fromBrowser(f, in.Device), phone.Get(t, signInOptions(f)))))
		})
	})
}

func TestNoticesNameTheBrowserOfTheChange(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewMember("ada")
		in, err := f.SignIn.Login(f.Context(), fromBrowser(f), nodetest.Address("ada"), nodetest.Password)
		f.OK(err)
		c := f.CallerOf(in)
		change := func() {
			f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), c, nodetest.Password, "another "+nodetest.Password)))
		}
		request := func() {
			f.OK(nodetest.ErrorOf(f.SignIn.RequestEmailChange(f.Context(), c, nodetest.NewKey(), user.ID, nodetest.Address("new"))))
		}
		confirm := func() {
			f.OK(f.SignIn.ChangeEmail(f.Context(), fromBrowser(f), f.LastToken(rolecall.MailEmailChange, "new")))
		}
		byOperator := func() {
			f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("new"), nodetest.Password))
		}
		for _, step := range []struct {
			act    func()
			mails  []string
			source string
		}{
			{change, []string{"credentials-changed ada"}, c.Source},
			{request, []string{"email-change new", "email-change-requested ada"}, c.Source},
			{confirm, []string{"email-changed ada"}, fromBrowser(f).Source},
			{byOperator, []string{"credentials-changed new"}, ""},
		} {
			f.ExpectMailed(step.act, step.mails...)
			client := "Firefox on Linux"
			if step.source == "" {
				client = ""
			}
			mails := f.Mails()
			if m := mails[len(mails)-1]; m.Client != client || m.Source != step.source {
				t.Errorf("%q: the mail is %+v", step.mails, m)
			}
		}
	})
}

func TestAnAcceptedInvitationIsNotMailedAsANewBrowser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewUser("ada")
		token := f.Invite(user.ID)
		f.ExpectMailed(func() { f.OK(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password))) })
		again := f.Invite(user.ID)
		f.ExpectMailed(func() { f.OK(nodetest.ErrorOf(f.AcceptInvitation(again, "another "+nodetest.Password))) }, "credentials-changed ada")
	})
}

func TestAReusedTokenIsMailed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		reuse := func() {
			in, err := f.SignIn.Login(f.Context(), fromBrowser(f), nodetest.Address("ada"), nodetest.Password)
			f.OK(err)
			next := f.Refresh(f.Node, in.Token)
			f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, next)))
			f.Clock.Advance(time.Minute)
			for range 3 {
				f.Is(nodetest.ErrorOf(f.Authenticate(f.NewNode(), in.Token)), rolecall.ErrUnauthenticated)
			}
			f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, next)), rolecall.ErrUnauthenticated)
		}
		f.ExpectMailed(reuse, "token-reused ada")
		mails := f.Mails()
		if m := mails[len(mails)-1]; m.Client != "Firefox on Linux" || m.Source != "198.51.100.7" {
			t.Errorf("the mail is %+v", m)
		}
		mailed := f.Mailed(func() {
			for range 5 {
				reuse()
			}
		})
		reused := slices.DeleteFunc(mailed, func(m string) bool { return m != "token-reused ada" })
		if len(reused) != 2 {
			t.Errorf("%d more mails in the same hour", len(reused))
		}
	})
}
