package e2e

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
)

// backEnd is the back end of an application. It signs users in to Rolecall and keeps their
// Rolecall sessions on the server. The browser gets only the application's own cookie,
// backEndCookie.
type backEnd struct {
	http.ServeMux
	program  *program
	mu       sync.Mutex
	sessions map[string]session // by the value of the cookie
}

// session is the Rolecall session of a user.
type session struct {
	token  string
	source string // the address of the browser
}

const backEndCookie = "__Host-shop"

// newBackEnd returns the handler of the back end, wrapped in http.CrossOriginProtection.
func newBackEnd(p *program) http.Handler {
	b := &backEnd{program: p, sessions: map[string]session{}}
	b.HandleFunc("/", page)
	b.HandleFunc("POST /sign-in", b.signIn)
	b.HandleFunc("POST /sign-out", b.signOut)
	b.HandleFunc("GET /me", b.me)
	return http.NewCrossOriginProtection().Handler(b)
}

// send sends a request to Rolecall, with the browser's address as X-Forwarded-For. It decodes the response
// into result. It returns an error if the status is not that of a success.
func (b *backEnd) send(r *http.Request, s session, line, body string, result any) error {
	method, path, _ := strings.Cut(line, " ")
	request, err := http.NewRequestWithContext(r.Context(), method, "http://"+b.program.Address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = http.Header{"X-Tenant-Schema": {"acme"}, "X-Forwarded-For": {s.source}, "Content-Type": {"application/json"}}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return errors.New(response.Status)
	}
	if result == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(result)
}

func (b *backEnd) signIn(w http.ResponseWriter, r *http.Request) {
	source, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var sent struct{ Email, Password string }
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var in struct{ Token string }
	body := strings.TrimSuffix(credentials(sent.Email, sent.Password), "}") + `,"transport":"bearer"}`
	if err := b.send(r, session{source: source}, "POST /auths/login", body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	name := rand.Text()
	b.mu.Lock()
	b.sessions[name] = session{in.Token, source}
	b.mu.Unlock()
	setBackEndCookie(w, name, 0)
}

func setBackEndCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: backEndCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode})
	w.WriteHeader(http.StatusNoContent)
}

// session returns the session of the request's cookie, and whether a user is signed in.
func (b *backEnd) session(r *http.Request) (s session, ok bool) {
	cookie, err := r.Cookie(backEndCookie)
	if err != nil {
		return session{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok = b.sessions[cookie.Value]
	return s, ok
}

func (b *backEnd) signOut(w http.ResponseWriter, r *http.Request) {
	if s, ok := b.session(r); ok {
		if err := b.send(r, s, "POST /auths/logout", "", nil); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	setBackEndCookie(w, "", -1)
}

func (b *backEnd) me(w http.ResponseWriter, r *http.Request) {
	s, ok := b.session(r)
	if !ok {
		http.Error(w, "nobody is signed in", http.StatusUnauthorized)
		return
	}
	var principal struct{ User struct{ Name string } }
	if err := b.send(r, s, "GET /auths/session", "", &principal); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte(principal.User.Name)) // fails only if the browser has disconnected
}
