package web

import (
	"strings"
	"testing"
)

func TestClientInWords(t *testing.T) {
	for userAgent, want := range map[string]string{
		"": "",
		"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0":                                                                         "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:144.0) Gecko/20100101 Firefox/144.0":                                                               "Firefox on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36":                                "Chrome on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":                  "Edge on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 OPR/125.0.0.0":                  "Opera on Windows",
		"Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18":                                                                               "Opera on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15":                          "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1":        "Safari on iPhone",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.7444.77 Mobile/15E148 Safari/604.1": "Chrome on iPhone",
		"Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/144.0 Mobile/15E148 Safari/605.1.15":               "Firefox on iPad",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36":                                "Chrome on Android",
		"Mozilla/5.0 (Linux; Android 15; SM-S931B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36":     "Samsung Internet on Android",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36":                                 "Chrome on ChromeOS",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/142.0.0.0 Safari/537.36":                                  "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko":                                                                          "Internet Explorer on Windows",
		"Mozilla/5.0 (X11; FreeBSD amd64; rv:144.0) Gecko/20100101 Firefox/144.0":                                                                        "Firefox on FreeBSD",
		"Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet) AppleWebKit/601.6 (KHTML, like Gecko) NF/4.0.0.5.10 NintendoBrowser/5.1.0.13341":               "Browser",
		"Mozilla/5.0 (Linux; Tizen 2.3) AppleWebKit/538.1":                                                                                               "Browser on Linux",
		"curl/8.16.0":                           "curl",
		"Wget/1.25.0":                           "Wget",
		"Go-http-client/1.1":                    "Go client",
		"python-requests/2.32.5":                "Python client",
		"node":                                  "Node.js client",
		"okhttp/5.2.1":                          "Java client",
		"PostmanRuntime/7.49.0":                 "Postman",
		"acme-backend/1.4 (+https://a.example)": "acme-backend",
		"<script>alert(1)</script>":             "",
		"\xff\xfe":                              "",
		"a\r\nb":                                "a",
		strings.Repeat("n", 5000):               strings.Repeat("n", 100),
		"Mozilla/5.0 " + strings.Repeat(" ", 999): "Browser",
	} {
		if got := ClientName(userAgent); got != want {
			t.Errorf("%q is %q, not %q", userAgent, got, want)
		}
	}
}

func FuzzClientOf(f *testing.F) {
	f.Add("Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0")
	f.Add("acme/1 \xff")
	f.Fuzz(func(t *testing.T, userAgent string) {
		words := ClientName(userAgent)
		shown := func(r rune) bool { return ' ' <= r && r <= '~' }
		if len(words) > clientLength || strings.TrimFunc(words, shown) != "" {
			t.Errorf("%q is %q", userAgent, words)
		}
	})
}
