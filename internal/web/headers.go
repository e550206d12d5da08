package web

import "net/http"

// Header values that never change, shared by all responses.
var (
	noSniff         = []string{"nosniff"}
	noReferrer      = []string{"no-referrer"}
	SameOrigin      = []string{"same-origin"}
	noContent       = []string{"default-src 'none'; base-uri 'none'; frame-ancestors 'none'"}
	noStore         = []string{"no-store"}
	closeConnection = []string{"close"}
)

// NoFeatures is the Permissions-Policy header. It disables the browser features that no page uses.
// Passkeys and the clipboard stay enabled, because the console uses them.
var NoFeatures = []string{"accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=(), xr-spatial-tracking=()"}

// securityHeaders sets the headers that every response has.
func (s *Site) securityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Request-Id"] = []string{RequestOf(r).ID}
		h["X-Content-Type-Options"] = noSniff
		h["Referrer-Policy"] = noReferrer
		h["Cross-Origin-Resource-Policy"] = SameOrigin
		h["Content-Security-Policy"] = noContent
		h["Cache-Control"] = noStore
		if s.hsts != nil {
			h["Strict-Transport-Security"] = s.hsts
		}
		if isAmbiguous(r) {
			h["Connection"] = closeConnection
		}
		next.ServeHTTP(w, r)
	})
}

// isAmbiguous reports whether a proxy and this server may disagree on where the request ends. If
// they may, the connection must be closed after the request (RFC 9112, 6.1). net/http does not
// report whether a chunked request also had a Content-Length, and it ignores Transfer-Encoding in
// HTTP/1.0.
func isAmbiguous(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// hstsHeader returns the Strict-Transport-Security header with a lifetime of one year. Subdomains
// are optional, because only the operator knows whether all of them serve https.
func hstsHeader(includeSubdomains bool) []string {
	header := "max-age=31536000"
	if includeSubdomains {
		header += "; includeSubDomains"
	}
	return []string{header}
}
