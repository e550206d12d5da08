package e2e

import (
	"encoding/base32"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/client"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
)

// code returns a code from the authenticator app. steps shifts the time of the code by
// periods of 30 seconds.
func code(t *testing.T, app client.TOTPSecret, steps int64) string {
	t.Helper()
	raw, err := base32.StdEncoding.DecodeString(app.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return secret.TOTP(raw).Code(time.Now().Unix()/30 + steps)
}

// asked signs in with the correct password and returns the Problem with the code wanted,
// which demands a second factor. It fails the test for any other result.
func (d demo) asked(t *testing.T, c *client.Client, wanted string) *client.Problem {
	t.Helper()
	_, err := c.Login(t.Context(), d.Email, d.Password)
	problem, ok := errors.AsType[*client.Problem](err)
	if !ok || problem.Code != wanted || problem.Challenge == "" {
		t.Fatalf("Login asks for %v", err)
	}
	return problem
}

func TestSecondFactors(t *testing.T) {
	d, ctx := newDemo(t), t.Context()
	c := d.signedIn(t)
	app, err := c.BeginTOTP(ctx)
	if err != nil || !strings.HasPrefix(app.URI, "otpauth://totp/") {
		t.Fatalf("BeginTOTP = %+v, %v", app, err)
	}
	codes, err := c.ConfirmTOTP(ctx, code(t, app, 0))
	if err != nil || len(codes) != 10 {
		t.Fatalf("ConfirmTOTP = %q, %v", codes, err)
	}
	other := d.client()
	problem := d.asked(t, other, "second-factor-required")
	if !slices.Equal(problem.Methods, []string{"totp", "recovery-code"}) || problem.PublicKey != nil {
		t.Errorf("Login asks for %+v", problem)
	}
	if _, err := other.CompleteLogin(ctx, problem.Challenge, client.Proof{Code: "000000"}); !is(err, "wrong-code") {
		t.Errorf("CompleteLogin with a wrong code: %v", err)
	}
	if in, err := other.CompleteLogin(ctx, problem.Challenge, client.Proof{RecoveryCode: codes[0]}); err != nil || in.User.Email != d.Email || !in.Session.SecondFactor || in.RecoveryCodes != nil {
		t.Errorf("CompleteLogin = %+v, %v", in, err)
	}
	if p, err := other.Session(ctx); err != nil || p.User.Email != d.Email {
		t.Errorf("Session = %+v, %v", p, err)
	}
	if _, err := other.Confirm(ctx, d.Password, client.Proof{}); !is(err, "second-factor-required") {
		t.Errorf("Confirm with the password alone: %v", err)
	}
	if s, err := other.Confirm(ctx, d.Password, client.Proof{Code: code(t, app, 1)}); err != nil || s.ConfirmedAt == nil {
		t.Errorf("Confirm = %+v, %v", s, err)
	}
	if f, err := other.Factors(ctx); err != nil || f.TOTP == nil || f.TOTP.ConfirmedAt.IsZero() || f.RecoveryCodes != 9 || f.Demanded {
		t.Errorf("Factors = %+v, %v", f, err)
	}
	if made, err := other.MakeRecoveryCodes(ctx); err != nil || len(made) != 10 || slices.Contains(made, codes[1]) {
		t.Errorf("MakeRecoveryCodes = %q, %v", made, err)
	}
	if err := other.RemoveTOTP(ctx); err != nil {
		t.Errorf("RemoveTOTP: %v", err)
	}
	if _, err := c.Session(ctx); !is(err, "unauthenticated") {
		t.Errorf("the other session, after RemoveTOTP: %v", err)
	}
	d.signedIn(t)
}

func TestPasskeys(t *testing.T) {
	const origin = "http://localhost:4321"
	d, ctx := newDemo(t, "--allow-origin", origin, "--passkey-domain", "localhost"), t.Context()
	c, phone := d.signedIn(t), passkeytest.New(origin)
	options, err := c.PasskeyOptions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.CreatePasskey(ctx, "key-1", "Telefon", phone.Create(t, options))
	if err != nil || made.Name != "Telefon" || made.LastUsedAt != nil || len(made.RecoveryCodes) != 10 {
		t.Fatalf("CreatePasskey = %+v, %v", made, err)
	}
	problem := d.asked(t, d.client(), "second-factor-required")
	if !slices.Contains(problem.Methods, "passkey") {
		t.Errorf("Login asks for %q", problem.Methods)
	}
	if _, err := d.client().CompleteLogin(ctx, problem.Challenge, client.Proof{Passkey: phone.Get(t, problem.PublicKey)}); err != nil {
		t.Errorf("CompleteLogin: %v", err)
	}
	alone := d.client()
	if options, err = alone.PasskeySignInOptions(ctx); err != nil {
		t.Fatal(err)
	}
	if in, err := alone.SignInByPasskey(ctx, phone.Get(t, options)); err != nil || in.User.Email != d.Email {
		t.Errorf("SignInByPasskey = %+v, %v", in, err)
	}
	if p, err := alone.RenamePasskey(ctx, made.ID, "Key"); err != nil || p.Name != "Key" || p.ID != made.ID {
		t.Errorf("RenamePasskey = %+v, %v", p, err)
	}
	if f, err := alone.Factors(ctx); err != nil || len(f.Passkeys) != 1 || f.Passkeys[0].Name != "Key" || f.Passkeys[0].LastUsedAt == nil {
		t.Errorf("Factors = %+v, %v", f, err)
	}
	if err := alone.RemovePasskey(ctx, made.ID); err != nil {
		t.Errorf("RemovePasskey: %v", err)
	}
	if err := alone.RemovePasskey(ctx, made.ID); !is(err, "not-found") {
		t.Errorf("RemovePasskey again: %v", err)
	}
}

func TestARequiredFactorIsEnrolledAtLogin(t *testing.T) {
	d, ctx := newDemo(t), t.Context()
	d.demandFactors(t)
	c := d.client()
	problem := d.asked(t, c, "second-factor-enrolment-required")
	e, err := c.BeginEnrolment(ctx, problem.Challenge)
	if err != nil || e.Secret == "" || e.PublicKey != nil {
		t.Fatalf("BeginEnrolment = %+v, %v", e, err)
	}
	if in, err := c.CompleteLogin(ctx, problem.Challenge, client.Proof{Code: code(t, e.TOTPSecret, 0)}); err != nil || len(in.RecoveryCodes) != 10 {
		t.Errorf("CompleteLogin = %+v, %v", in, err)
	}
	if f, err := c.Factors(ctx); err != nil || !f.Demanded || f.TOTP == nil {
		t.Errorf("Factors = %+v, %v", f, err)
	}
	for user, err := range c.Users(ctx, client.UserFilter{Query: "grace", Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ResetFactors(ctx, user.ID); err != nil {
			t.Errorf("ResetFactors: %v", err)
		}
	}
}

// demandFactors changes the settings of the tenant so that all users need a second factor.
func (d demo) demandFactors(t *testing.T) {
	t.Helper()
	var session *http.Cookie
	for _, r := range []struct{ method, path, body string }{
		{http.MethodPost, "/auths/login", `{"email":"` + d.Email + `","password":"` + d.Password + `"}`},
		{http.MethodPatch, "/tenant", `{"settings":{"secondFactor":{"required":"all"}}}`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, d.Address+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Tenant-Schema", d.Tenant)
		request.Header.Set("Content-Type", "application/json")
		if session != nil {
			request.AddCookie(session)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", r.path, answer.Status)
		}
		for _, cookie := range answer.Cookies() {
			if cookie.Name == "session" {
				session = cookie
			}
		}
	}
}
