package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/signin"
)

// from returns an anonymous request from a browser with these known-device tokens.
func (f *fixture) from(devices ...string) access.Anonymous {
	a := f.attempt()
	a.Devices, a.Client, a.Source = devices, "Firefox on Linux", "198.51.100.7"
	return a
}

func TestASignInFromANewBrowserIsMailed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		const another = "another " + password
		user := f.member("ada")
		var in signin.SignIn
		signIn := func(a access.Anonymous, secret string) func() {
			return func() {
				var err error
				in, err = f.SignIn.Login(f.Context(), a, address("ada"), secret)
				f.ok(err)
			}
		}
		f.expectMailed(signIn(f.from(), password)) // the user's first sign-in
		f.expectMailed(signIn(f.from(in.Device), password))
		f.expectMailed(func() {
			f.is(errorOf(f.SignIn.Login(f.Context(), f.from(), address("ada"), "wrong")), rolecall.ErrWrongCredentials)
		})
		f.clock.advance(time.Hour)
		f.expectMailed(signIn(f.from("", "made up"), password), "new-browser ada")
		mails := f.mails()
		if m := mails[len(mails)-1]; m.Client != "Firefox on Linux" || m.Source != "198.51.100.7" || m.UserID != user.ID || m.Token != "" || m.ExpiresAt != f.clock.Now().Add(rolecall.NoticeLifetime) {
			t.Errorf("the mail is %+v", m)
		}
		f.expectMailed(signIn(f.from(in.Device), password))
		known := in.Device
		mark, err := f.SignIn.ChangePassword(f.Context(), f.call(in), password, another)
		f.ok(err)
		f.expectMailed(signIn(f.from(mark), another))
		f.expectMailed(signIn(f.from(known), another), "new-browser ada") // the browser was known with the old password
		f.clock.advance(signin.DeviceLifetime)
		f.expectMailed(signIn(f.from(mark), another), "new-browser ada")
	})
}

func TestMailsAboutSignInsAreLimited(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.member("grace")
		f.signIn("ada")
		f.signIn("grace")
		mailed := f.mailed(func() {
			for range 10 {
				f.signIn("ada")
			}
		})
		if want := append(slices.Repeat([]string{"new-browser ada"}, 3), "notices-paused ada"); !slices.Equal(mailed, want) {
			t.Errorf("mailed were %q", mailed)
		}
		f.expectMailed(func() { f.signIn("grace") }, "new-browser grace")
		f.clock.advance(time.Hour)
		f.expectMailed(func() { f.signIn("ada") }, "new-browser ada")
	})
}

// TestAnAccountCannotFillTheOutbox changes credentials in a loop. Otherwise, its notices would delay those of all
// tenants.
func TestAnAccountCannotFillTheOutbox(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		reader := f.role("Reader", "users:read")
		for _, name := range []string{"ada", "grace"} {
			f.assign(f.member(name).ID, reader.ID, rolecall.AssignmentDraft{})
		}
		f.clock.advance(time.Hour)
		ada, grace := f.call(f.signIn("ada")), f.call(f.signIn("grace"))
		token := func(c access.Caller) {
			created, err := f.Directory.CreateToken(f.Context(), c, newKey(), rolecall.HolderOf(c.User.ID), f.tokenDraft("users:read"))
			f.ok(err)
			f.ok(f.Directory.RevokeToken(f.Context(), c, rolecall.HolderOf(c.User.ID), created.Value.ID))
		}
		mailed := f.mailed(func() {
			for range 10 {
				token(ada)
			}
			for range 5 {
				f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), ada, password, "another "+password)))
				f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), ada, "another "+password, password)))
			}
		})
		if want := append(slices.Repeat([]string{"credentials-changed ada"}, 10), "notices-paused ada"); !slices.Equal(mailed, want) {
			t.Errorf("mailed were %q", mailed)
		}
		mails := f.mails()
		if m := mails[len(mails)-1]; m.What != "changes of your sign-in settings" || m.UserID != ada.User.ID || m.Source != ada.Source {
			t.Errorf("the last mail is %+v", m)
		}
		f.expectMailed(func() { token(grace) }, "credentials-changed grace")
		f.clock.advance(time.Hour)
		f.expectMailed(func() { token(ada) }, "credentials-changed ada")
	})
}

func TestANewBrowserIsMailedWithEveryWayToSignIn(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, app, _ := f.protected("ada")
		_, phone := f.withPasskey("grace")
		f.clock.advance(time.Hour)
		var in signin.SignIn
		f.expectMailed(func() { f.factorChallenge("ada") }) // the second factor has not been proved yet
		f.expectMailed(func() {
			f.is(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{Code: "000000"})), rolecall.ErrWrongCode)
		})
		f.expectMailed(func() {
			var err error
			in, err = f.answer(f.factorChallenge("ada"), signin.Proof{Code: app.next()})
			f.ok(err)
		}, "new-browser ada")
		f.expectMailed(func() {
			asked := f.factorChallenge("ada")
			f.ok(errorOf(f.SignIn.CompleteSignIn(f.Context(), f.from(in.Device), asked, signin.Proof{Code: app.next()})))
		})
		f.expectMailed(func() {
			var err error
			in, err = f.byPasskey(phone.Get(t, f.signInOptions()))
			f.ok(err)
		}, "new-browser grace")
		f.expectMailed(func() {
			f.ok(errorOf(f.SignIn.PasskeySignIn(f.Context(), f.from(in.Device), phone.Get(t, f.signInOptions()))))
		})
	})
}

func TestNoticesNameTheBrowserOfTheChange(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.member("ada")
		in, err := f.SignIn.Login(f.Context(), f.from(), address("ada"), password)
		f.ok(err)
		c := f.call(in)
		change := func() { f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), c, password, "another "+password))) }
		request := func() {
			f.ok(errorOf(f.SignIn.RequestEmailChange(f.Context(), c, newKey(), user.ID, address("new"))))
		}
		confirm := func() {
			f.ok(f.SignIn.ChangeEmail(f.Context(), f.from(), f.lastToken(rolecall.MailEmailChange, "new")))
		}
		byOperator := func() { f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("new"), password)) }
		for _, step := range []struct {
			act    func()
			mails  []string
			source string
		}{
			{change, []string{"credentials-changed ada"}, c.Source},
			{request, []string{"email-change new", "email-change-requested ada"}, c.Source},
			{confirm, []string{"email-changed ada"}, f.from().Source},
			{byOperator, []string{"credentials-changed new"}, ""},
		} {
			f.expectMailed(step.act, step.mails...)
			client := "Firefox on Linux"
			if step.source == "" {
				client = ""
			}
			mails := f.mails()
			if m := mails[len(mails)-1]; m.Client != client || m.Source != step.source {
				t.Errorf("%q: the mail is %+v", step.mails, m)
			}
		}
	})
}

func TestAnAcceptedInvitationIsNotMailedAsANewBrowser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.user("ada")
		token := f.invite(user.ID)
		f.expectMailed(func() { f.ok(errorOf(f.accept(token, password))) })
		again := f.invite(user.ID)
		f.expectMailed(func() { f.ok(errorOf(f.accept(again, "another "+password))) }, "credentials-changed ada")
	})
}

func TestAReusedTokenIsMailed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		reuse := func() {
			in, err := f.SignIn.Login(f.Context(), f.from(), address("ada"), password)
			f.ok(err)
			next := f.refresh(f.Node, in.Token)
			f.ok(errorOf(f.authenticate(f.Node, next)))
			f.clock.advance(time.Minute)
			for range 3 {
				f.is(errorOf(f.authenticate(f.node(), in.Token)), rolecall.ErrUnauthenticated)
			}
			f.is(errorOf(f.authenticate(f.Node, next)), rolecall.ErrUnauthenticated)
		}
		f.expectMailed(reuse, "token-reused ada")
		mails := f.mails()
		if m := mails[len(mails)-1]; m.Client != "Firefox on Linux" || m.Source != "198.51.100.7" {
			t.Errorf("the mail is %+v", m)
		}
		mailed := f.mailed(func() {
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
