package web

import "strings"

// clientLength is the maximum length of a client's name in bytes.
const clientLength = 100

// naming is a part of a User-Agent header, and the words that are displayed for it.
type naming struct{ part, words string }

// browsers are the parts of User-Agent headers that name browsers. They are searched in this order.
// The header of a browser such as Edge also names Chrome, so Edge comes before Chrome.
var browsers = []naming{
	{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"Edge/", "Edge"},
	{"OPR/", "Opera"}, {"OPiOS/", "Opera"}, {"OPT/", "Opera"}, {"Opera/", "Opera"},
	{"SamsungBrowser/", "Samsung Internet"}, {"YaBrowser/", "Yandex Browser"}, {"Vivaldi/", "Vivaldi"}, {"DuckDuckGo/", "DuckDuckGo"},
	{"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"Focus/", "Firefox"},
	{"CriOS/", "Chrome"}, {"HeadlessChrome/", "Chrome"}, {"Chromium/", "Chromium"}, {"Chrome/", "Chrome"},
	{"MSIE ", "Internet Explorer"}, {"Trident/", "Internet Explorer"}, {"Safari/", "Safari"},
}

// systems are the parts of User-Agent headers that name operating systems. They are searched in
// this order: the headers of Android devices also name Linux, and those of iPhones also name a Mac.
var systems = []naming{
	{"Windows", "Windows"}, {"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"iPod", "iPod"},
	{"CrOS", "ChromeOS"}, {"Macintosh", "macOS"}, {"Mac OS X", "macOS"}, {"FreeBSD", "FreeBSD"}, {"OpenBSD", "OpenBSD"}, {"Linux", "Linux"},
}

// programs are the usual names of clients that are not browsers.
var programs = map[string]string{
	"Go-http-client": "Go client", "python-requests": "Python client", "python-httpx": "Python client", "Python-urllib": "Python client",
	"node": "Node.js client", "undici": "Node.js client", "axios": "JavaScript client", "okhttp": "Java client", "Java": "Java client",
	"Apache-HttpClient": "Java client", "Java-http-client": "Java client", "Ruby": "Ruby client", "PostmanRuntime": "Postman", "insomnia": "Insomnia",
}

// ClientName returns the name of the client in a User-Agent header (RFC 9110, 10.1.5), such as
// "Firefox on Linux", in at most 100 bytes. The name is empty if the header names no client. A
// client can send any User-Agent header, so use the name for display only.
func ClientName(userAgent string) string {
	if strings.HasPrefix(userAgent, "Mozilla/") || strings.HasPrefix(userAgent, "Opera/") {
		browser, system := firstOf(browsers, userAgent), firstOf(systems, userAgent)
		if browser == "" {
			browser = "Browser"
		}
		if system != "" {
			browser += " on " + system
		}
		return browser
	}
	product := userAgent[:len(userAgent)-len(strings.TrimLeftFunc(userAgent, isProduct))]
	if program, known := programs[product]; known {
		product = program
	}
	return product[:min(len(product), clientLength)]
}

// firstOf returns the words of the first element of all whose part occurs in the text.
func firstOf(all []naming, text string) string {
	for _, n := range all {
		if strings.Contains(text, n.part) {
			return n.words
		}
	}
	return ""
}

// isProduct reports whether r is allowed in the name of a product (RFC 9110, 5.6.2).
func isProduct(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.+", r)
}
