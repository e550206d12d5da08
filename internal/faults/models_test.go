package faults

import "net/http"

// userState is the part of a user's record that the load changes. The etag is the
// version, or "" until a client has read the new version.
type userState struct {
	there                    bool
	mark, name, status, etag string
}

// as reports whether the state matches a state that a client has read. It compares the versions
// only if both are known, because lists contain no version.
func (s userState) as(read userState) bool {
	return s.there && s.mark == read.mark && s.name == read.name && s.status == read.status &&
		(s.etag == "" || read.etag == "" || s.etag == read.etag)
}

func userMade(u userState) step[userState] {
	return func(s userState) []userState { return only(!s.there, u) }
}

func userRead(u userState) step[userState] {
	return func(s userState) []userState {
		if u.etag == "" {
			return only(s.as(u), s)
		}
		return only(s.as(u), u)
	}
}

// userGone is the step for a response that reports that the user does not exist.
func userGone(s userState) []userState { return only(!s.there, s) }

// userChanged is the step for a change of a user. The change may have had a
// precondition: the state in basis.
func userChanged(of result, basis *userState, change func(*userState)) step[userState] {
	changed := func(s userState) userState {
		next := s
		if change(&next); next != s {
			next.etag = ""
		}
		return next
	}
	may := func(s userState) bool { return s.there && (basis == nil || s.as(*basis)) }
	switch {
	case !of.known:
		return either(func(s userState) []userState { return only(may(s), changed(s)) })
	case of.status == http.StatusOK:
		u := readUser(of)
		return func(s userState) []userState {
			fresh := changed(s)
			return only(may(s) && fresh.as(u.userState) && (fresh == s || s.etag != u.etag), u.userState)
		}
	case of.status == http.StatusPreconditionFailed && basis != nil:
		return func(s userState) []userState { return only(s.there && (s.etag != basis.etag), s) }
	case of.status == http.StatusNotFound:
		return userGone
	}
	return impossible[userState]
}

func userDeleted(of result) step[userState] {
	deleted := func(s userState) []userState { return only(s.there, userState{}) }
	switch {
	case !of.known:
		return either(deleted)
	case of.status == http.StatusNoContent:
		return deleted
	case of.status == http.StatusNotFound:
		return userGone
	}
	return impossible[userState]
}

// impossible is the step for a response that the request cannot have.
func impossible[S comparable](S) []S { return nil }

// same is the step for a response that contains no information about the state.
func same[S comparable](s S) []S { return []S{s} }

// addressState is the id of the user who has an address in a tenant.
type addressState string

func addressTaken(id string) step[addressState] {
	return func(s addressState) []addressState { return only(s == "", addressState(id)) }
}

// addressHeld is the step for a response that reports that the address is taken.
func addressHeld(s addressState) []addressState { return only(s != "", s) }

func addressFound(id string) step[addressState] {
	return func(s addressState) []addressState { return only(s == addressState(id), s) }
}

func addressFreed(of result, id string) step[addressState] {
	freed := func(s addressState) []addressState { return only(s == addressState(id), addressState("")) }
	switch {
	case !of.known:
		return either(freed)
	case of.status == http.StatusNoContent:
		return freed
	}
	return func(s addressState) []addressState { return only(s != addressState(id), s) }
}

// keyState is the id of the resource that was created with an idempotency key.
type keyState string

const made keyState = "made, and the answer was lost"

func keyUsed(of result) step[keyState] {
	make := func(s keyState) []keyState {
		if s == "" {
			return []keyState{made}
		}
		return []keyState{s}
	}
	switch {
	case !of.known:
		return either(make)
	case of.status == http.StatusCreated:
		id, replayed := keyState(readUser(of).ID), of.header.Get("Idempotent-Replayed") != ""
		return func(s keyState) []keyState {
			return only(replayed && (s == id || s == made) || !replayed && s == "", id)
		}
	case of.status == http.StatusConflict && of.code() == "idempotency-key-in-progress":
		return same[keyState]
	case of.status == http.StatusConflict:
		return func(s keyState) []keyState { return only(s == "", s) }
	}
	return impossible[keyState]
}

// sessionState is the state of a session. Its retired tokens have no grace period.
type sessionState struct {
	started, ended bool
	token          string // the newest token that was used
	successor      string // of the token: returned by a refresh, or sealed if the response was lost; "" if it does not exist
}

const sealed = "made, and the answer was lost"

func sessionStarted(token string) step[sessionState] {
	return func(s sessionState) []sessionState {
		return only(!s.started, sessionState{started: true, token: token})
	}
}

// presents returns the state after a request with the token. The use of the successor
// retires the token, and the use of a retired token ends the session.
func (s sessionState) presents(token string) sessionState {
	switch {
	case s.ended || token == s.token:
	case token == s.successor:
		s.token, s.successor = token, ""
	default:
		s.ended = true
	}
	return s
}

// sessionUsed is the step for a request that only needs a valid session.
func sessionUsed(of result, token string) step[sessionState] {
	switch {
	case !of.known:
		return either(func(s sessionState) []sessionState { return []sessionState{s.presents(token)} })
	case of.status == http.StatusUnauthorized:
		return func(s sessionState) []sessionState {
			s = s.presents(token)
			return only(s.ended, s)
		}
	}
	return func(s sessionState) []sessionState {
		s = s.presents(token)
		return only(!s.ended, s)
	}
}

func sessionRefreshed(of result, token string) step[sessionState] {
	switch {
	case !of.known:
		return either(func(s sessionState) []sessionState {
			s = s.presents(token)
			next := s
			if !s.ended && s.successor == "" {
				next.successor = sealed
			}
			return []sessionState{s, next}
		})
	case of.status != http.StatusOK:
		return sessionUsed(of, token)
	}
	successor := of.session()
	return func(s sessionState) []sessionState {
		s = s.presents(token)
		may := !s.ended && (s.successor == "" || s.successor == sealed || s.successor == successor)
		s.successor = successor
		return only(may, s)
	}
}

// sessionEnded is the step for a request that ends the session if it succeeds.
func sessionEnded(of result, success int) step[sessionState] {
	end := func(s sessionState) []sessionState {
		s.ended = true
		return []sessionState{s}
	}
	switch {
	case !of.known:
		return either(end)
	case of.status == success:
		return end
	}
	return impossible[sessionState]
}

// grantState is true if the user has the role.
type grantState bool

func granted(of result) step[grantState] {
	switch {
	case !of.known:
		return either(func(grantState) []grantState { return []grantState{true} })
	case of.status == http.StatusCreated:
		return func(s grantState) []grantState { return only(!bool(s), grantState(true)) }
	case of.status == http.StatusOK:
		return func(s grantState) []grantState { return only(bool(s), s) }
	}
	return impossible[grantState]
}

func withdrawn(of result) step[grantState] {
	switch {
	case !of.known:
		return either(func(grantState) []grantState { return []grantState{false} })
	case of.status == http.StatusNoContent:
		return func(s grantState) []grantState { return only(bool(s), grantState(false)) }
	case of.status == http.StatusNotFound:
		return func(s grantState) []grantState { return only(!bool(s), s) }
	}
	return impossible[grantState]
}

// grantSeen is the step for a response that shows whether the user holds the role.
func grantSeen(held bool) step[grantState] {
	return func(s grantState) []grantState { return only(bool(s) == held, s) }
}
