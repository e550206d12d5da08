package faults

import (
	"net/http"
	"testing"
)

// requestAt returns the result of a request with this start, end and status. Status 0 means no
// response.
func requestAt(start, end int64, status int) result {
	return result{start: start, end: end, status: status, known: status != 0, header: http.Header{}}
}

// answerOf returns the result of a request whose response has an ETag and a body.
func answerOf(start, end int64, status int, etag, body string) result {
	of := requestAt(start, end, status)
	of.header.Set("Etag", etag)
	of.body = []byte(body)
	return of
}

func setMark(mark string) func(*userState) { return func(s *userState) { s.mark = mark } }

// TestHistories lets the models check possible and impossible histories. Each impossible history
// shows one kind of defect that a service could have.
func TestHistories(t *testing.T) {
	skipIfShort(t)
	fresh := userState{there: true, name: "N", status: "pending", etag: "1"}
	asked := func(start, end int64, etag, mark string) result {
		return answerOf(start, end, 200, etag, `{"name":"N","status":"pending","metadata":{"mark":"`+mark+`"}}`)
	}
	read := func(start int64, etag, mark string) (result, step[userState]) {
		of := asked(start, start+1, etag, mark)
		return of, userRead(readUser(of).userState)
	}
	users := func(add func(r *register[userState])) []string {
		r := newRegister[userState]("user")
		r.add("u", requestAt(0, 1, 201), userMade(fresh), "create")
		add(r)
		return r.wrong()
	}
	change := func(r *register[userState], of result, basis *userState, mark string) {
		r.add("u", of, userChanged(of, basis, setMark(mark)), "change")
	}
	keys := func(answers ...result) []string {
		r := newRegister[keyState]("key")
		for _, of := range answers {
			r.add("k", of, keyUsed(of), "create")
		}
		return r.wrong()
	}
	replay := func(of result) result {
		of.header.Set("Idempotent-Replayed", "true")
		return of
	}
	sessions := func(add func(r *register[sessionState])) []string {
		r := newRegister[sessionState]("session")
		r.add("s", requestAt(0, 1, 200), sessionStarted("a"), "sign in")
		add(r)
		return r.wrong()
	}
	use := func(r *register[sessionState], start int64, token string, status int) {
		of := requestAt(start, start+1, status)
		r.add("s", of, sessionUsed(of, token), "use %s", token)
	}
	refresh := func(r *register[sessionState], start int64, token, successor string) {
		of := requestAt(start, start+1, 200)
		of.header.Set("Set-Cookie", "session="+successor)
		r.add("s", of, sessionRefreshed(of, token), "refresh %s", token)
	}
	for _, c := range []struct {
		name  string
		wrong []string
		can   bool
	}{
		{"two changes in turn", users(func(r *register[userState]) {
			change(r, asked(2, 3, "2", "x"), &fresh, "x")
			change(r, asked(4, 5, "3", "y"), nil, "y")
		}), true},
		{"a lost update: both changed version 1", users(func(r *register[userState]) {
			change(r, asked(2, 5, "2", "x"), &fresh, "x")
			change(r, asked(3, 6, "3", "y"), &fresh, "y")
		}), false},
		{"a lost write: what was acknowledged is not read", users(func(r *register[userState]) {
			change(r, asked(2, 3, "2", "x"), nil, "x")
			of, step := read(4, "1", "")
			r.add("u", of, step, "read")
		}), false},
		{"a change whose answer was lost shows later", users(func(r *register[userState]) {
			change(r, requestAt(2, 3, 0), nil, "x")
			of, step := read(4, "1", "")
			r.add("u", of, step, "read")
			of, step = read(6, "2", "x")
			r.add("u", of, step, "read")
		}), true},
		{"a change that shows, and then does not", users(func(r *register[userState]) {
			change(r, requestAt(2, 3, 0), nil, "x")
			of, step := read(4, "2", "x")
			r.add("u", of, step, "read")
			of, step = read(6, "1", "")
			r.add("u", of, step, "read")
		}), false},
		{"a deleted user who is read", users(func(r *register[userState]) {
			of := requestAt(2, 3, 204)
			r.add("u", of, userDeleted(of), "delete")
			of, step := read(4, "1", "")
			r.add("u", of, step, "read")
		}), false},
		{"a key and its replay", keys(answerOf(0, 1, 201, "", `{"id":"1"}`), replay(answerOf(2, 3, 201, "", `{"id":"1"}`))), true},
		{"a key whose answer was lost", keys(requestAt(0, 1, 0), replay(answerOf(2, 3, 201, "", `{"id":"1"}`))), true},
		{"a key that made two", keys(answerOf(0, 1, 201, "", `{"id":"1"}`), answerOf(2, 3, 201, "", `{"id":"2"}`)), false},
		{"a key that is forgotten", keys(replay(answerOf(0, 1, 201, "", `{"id":"1"}`))), false},
		{"a refresh", sessions(func(r *register[sessionState]) {
			refresh(r, 2, "a", "b")
			use(r, 4, "a", 200)
			use(r, 6, "b", 200)
			use(r, 8, "a", 401)
			use(r, 10, "b", 401)
		}), true},
		{"a token that outlives its successor's use", sessions(func(r *register[sessionState]) {
			refresh(r, 2, "a", "b")
			use(r, 4, "b", 200)
			use(r, 6, "a", 200)
		}), false},
		{"two successors", sessions(func(r *register[sessionState]) {
			refresh(r, 2, "a", "b")
			refresh(r, 4, "a", "c")
		}), false},
		{"a session that outlives its end", sessions(func(r *register[sessionState]) {
			of := requestAt(2, 3, 204)
			r.add("s", of, sessionEnded(of, 204), "sign out")
			use(r, 4, "a", 200)
		}), false},
		{"a session that is lost", sessions(func(r *register[sessionState]) { use(r, 2, "a", 401) }), false},
	} {
		if can := len(c.wrong) == 0; can != c.can {
			t.Errorf("%s: can be: %t, not %t %q", c.name, can, c.can, c.wrong)
		}
	}
}
