package node_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// mails returns the committed mails, decrypted with the keys of the instance.
func (f *fixture) mails() (mails []rolecall.Mail) {
	f.Helper()
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	for _, row := range f.db.mails {
		plain, err := f.keys.Open("mail", string(row.Sealed), slices.Concat(row.TenantID[:], row.ID[:]))
		f.ok(err)
		var m rolecall.Mail
		f.ok(json.Unmarshal(plain, &m))
		if m.ExpiresAt != row.ExpiresAt || row.CreatedAt != row.DueAt {
			f.Errorf("the mail %+v waits as %+v", m, row)
		}
		mails = append(mails, m)
	}
	return mails
}

// mailed returns the kinds and recipients of the mails that fn sends.
func (f *fixture) mailed(fn func()) (mails []string) {
	f.Helper()
	before := len(f.mails())
	fn()
	for _, m := range f.mails()[before:] {
		name, _, _ := strings.Cut(m.To, "@")
		mails = append(mails, strings.TrimSpace(string(m.Kind)+" "+name))
	}
	return mails
}

// expectMailed fails the test unless fn sends these mails, such as
// "password-reset ada".
func (f *fixture) expectMailed(fn func(), want ...string) {
	f.Helper()
	if got := f.mailed(fn); !slices.Equal(got, want) {
		f.Errorf("mailed were %q, not %q", got, want)
	}
}

// lastToken returns the token in the link of the newest mail of this kind to the user.
func (f *fixture) lastToken(kind rolecall.MailKind, name string) secret.Token {
	f.Helper()
	for _, m := range slices.Backward(f.mails()) {
		if m.Kind == kind && m.To == address(name) {
			token, ok := secret.ParseToken(m.Token)
			if !ok {
				f.Fatalf("%q is no token", m.Token)
			}
			return token
		}
	}
	f.Fatalf("no %s was mailed to %s", kind, name)
	return ""
}
