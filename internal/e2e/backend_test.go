package e2e

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"sync"

	"github.com/rolecall/rolecall/client"
)

// backEnd is the back end of an application. It signs users in to Rolecall and keeps their
// Rolecall sessions on the server. The browser gets only the application's own cookie,
// backEndCookie.
type backEnd struct {
	http.ServeMux
	program  *program
	mu       sync.Mutex
	sessions map[string]*client.Client // by the value of the cookie
}

const backEndCookie = "__Host-shop"

// newBackEnd returns the handler of the back end, wrapped in http.CrossOriginProtection.
func newBackEnd(p *program) http.Handler {
	b := &backEnd{program: p, sessions: map[string]*client.Client{}}
	b.HandleFunc("/", page)
	b.HandleFunc("POST /sign-in", b.signIn)
	b.HandleFunc("POST /sign-out", b.signOut)
	b.HandleFunc("GET /me", b.me)
	return http.NewCrossOriginProtection().Handler(b)
}

// onBehalf is an HTTP transport of the back end. It sends the browser's address as
// X-Forwarded-For.
type onBehalf struct{ source string }

// RoundTrip adds X-Forwarded-For to the request and sends it.
func (o onBehalf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", o.source)
	return http.DefaultTransport.RoundTrip(r)
}

func (b *backEnd) signIn(w http.ResponseWriter, r *http.Request) {
	source, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var credentials struct{ Email, Password string }
	if err := json.NewDecoder(r.Body).Decode(&credentials); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := client.New("http://"+b.program.Address, "acme", &http.Client{Transport: onBehalf{source}})
	if _, err := c.Login(r.Context(), credentials.Email, credentials.Password); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	name := rand.Text()
	b.mu.Lock()
	b.sessions[name] = c
	b.mu.Unlock()
	setBackEndCookie(w, name, 0)
}

func setBackEndCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: backEndCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode})
	w.WriteHeader(http.StatusNoContent)
}

// session returns a Rolecall client with the session of the request's cookie, or nil if no
// user is signed in.
func (b *backEnd) session(r *http.Request) *client.Client {
	cookie, err := r.Cookie(backEndCookie)
	if err != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[cookie.Value]
}

func (b *backEnd) signOut(w http.ResponseWriter, r *http.Request) {
	if c := b.session(r); c != nil {
		if err := c.Logout(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	setBackEndCookie(w, "", -1)
}

func (b *backEnd) me(w http.ResponseWriter, r *http.Request) {
	c := b.session(r)
	if c == nil {
		http.Error(w, "nobody is signed in", http.StatusUnauthorized)
		return
	}
	principal, err := c.Session(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte(principal.User.Name)) // fails only if the browser has disconnected
}
