package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/web"
)

// exchange is one request to an operation and its answer. It is pooled: nothing of it may
// be used after the answer was written.
type exchange struct {
	server  *Server
	route   *route
	request *http.Request
	writer  http.ResponseWriter
	header  http.Header
	ctx     context.Context
	web     *web.Request

	tenant    rolecall.Tenant
	named     string         // what x-tenant-schema said
	presented []secret.Token // well-formed session cookies
	bearer    string         // the token or key of the Authorization header
	call      service.Call   // the principal, nil without a session
	in        input
	unknown   rolecall.Faults // values of filters that are not known
	body      []byte          // what was sent
	out       []byte          // the body of the answer
}

// begin takes an exchange from the pool.
func (s *Server) begin(route *route, w http.ResponseWriter, r *http.Request) *exchange {
	x, _ := s.exchanges.Get().(*exchange)
	x.route, x.request, x.writer, x.header, x.ctx, x.web = route, r, w, w.Header(), r.Context(), web.RequestOf(r)
	x.call.RequestID, x.call.Source = x.web.ID, x.web.Source
	return x
}

// end gives the exchange back.
func (x *exchange) end() {
	x.web.Tenant, x.web.Principal = x.named, x.call.Principal
	clear(x.body) // it may hold a password
	*x = exchange{server: x.server, body: keep(x.body), out: keep(x.out), presented: x.presented[:0]}
	x.server.exchanges.Put(x)
}

// keep returns the buffer emptied, or nothing if it has grown too large to keep.
func keep(buffer []byte) []byte {
	if cap(buffer) > web.MaxBody {
		return nil
	}
	return buffer[:0]
}

var asJSON = []string{"application/json"}

// write sends the answer: the status, and what is in out.
func (x *exchange) write(status int) { web.Respond(x.writer, x.request, status, x.out) }

// json answers with the document in out.
func (x *exchange) json(status int) error {
	x.header["Content-Type"] = asJSON
	x.write(status)
	return nil
}

// content answers with what is in out under its entity tag, or with 304 if the
// client has it.
func (x *exchange) content(contentType, caching string) error {
	web.RespondTagged(x.writer, x.request, x.out, contentType, caching, secret.ETag(x.out))
	return nil
}

// setCookies gives the browser the session and its known-device token.
func (x *exchange) setCookies(signIn *service.SignIn) {
	x.call.Principal = signIn.Principal
	x.server.site.SetSession(x.writer, x.request, x.tenant.ID, signIn)
}

// fail answers with the problem that err means.
func (x *exchange) fail(err error) {
	p := x.web.ProblemOf(err)
	if p.Kind == rolecall.Forbidden && x.call.Principal != nil && x.route.id != checkID {
		x.server.service.Refused(x.call, x.in.user, x.route.id, p.Code)
	}
	p.SetHeaders(x.writer, x.request)
	if challenge := x.wwwAuthenticate(p.Status, p.Error); challenge != "" {
		x.header["Www-Authenticate"] = []string{challenge}
	}
	x.server.site.WriteProblem(x.writer, x.request, p)
}
