package mail

import "testing"

func TestNamesThatAreMoreThanTheirWords(t *testing.T) {
	for name, kept := range map[string]bool{
		"Ada Lovelace": true, "J.R.R. Tolkien": true, "Dr. No": true, "Acme Inc.": true, "Version 2.0": true, "O'Hara & Sons, Ltd.": true, "...": true, "عمر الخيام": true,
		"": false, "evil.com": false, "Go to evil.com now": false, "www.evil": false, "https://evil.com": false, "evil.xn--p1ai": false, "зло.рф": false, "evil。com": false,
		"mailto:eve": false, "eve@evil": false, "evil/path": false, "4u.example": false, "Ada \u202emoc.live": false, "\u2066Ada": false,
	} {
		if got := plain(name, "acme"); (got == name) != kept || !kept && got != "acme" {
			t.Errorf("%q becomes %q", name, got)
		}
	}
}
