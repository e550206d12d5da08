package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var sessionCases = []testCase{
	{"A token resolves to its session, user and all assignments", func(f *fixture) {
		u, role := f.newUser("Ada Lovelace"), f.newRole("Support")
		live := f.assign(u, role)
		over := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: f.newRole("Over"), Reach: rolecall.Within("Sales"), ExpiresAt: 1, GrantedBy: u.ID, GrantedAt: start}
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(over) })
		s, hash := f.signIn(u, start)
		state := f.session(hash)
		same(f, state.Session, s)
		same(f, state.User, u)
		same(f, state.Assignments, []rolecall.Assignment{live, over})
		same(f, state.Generation, 1)
		same(f, state.Token, rolecall.SessionToken{Hash: hash, Generation: 1, RetiredAt: rolecall.Never})
	}},
	{"A token of a user without assignments resolves too", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		_, hash := f.signIn(u, start)
		state := f.session(hash)
		same(f, state.User, u)
		same(f, len(state.Assignments), 0)
	}},
	{"An unknown token is not found", func(f *fixture) {
		for _, hash := range [][]byte{aHash(), {}, nil} {
			f.is(f.trySession(hash), rolecall.ErrNotFound)
		}
	}},
	{"The store also returns expired sessions and assignments", func(f *fixture) {
		s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: f.newUser("Ada Lovelace").ID, AuthenticatedAt: 1, LastUsedAt: 1, ExpiresAt: 2}
		hash := aHash()
		f.write(func(tx *store.Tx) { tx.InsertSession(s, hash) })
		same(f, f.session(hash).Session, s)
	}},
	{"A session of an unknown user is not found", func(f *fixture) {
		s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: aUser("Nobody").ID, AuthenticatedAt: start, LastUsedAt: start, ExpiresAt: start + day}
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertSession(s, aHash()) }), rolecall.ErrNotFound)
	}},
	{"A touch only moves the last use forward", func(f *fixture) {
		s, hash := f.signIn(f.newUser("Ada Lovelace"), start)
		for _, touch := range []struct{ at, want rolecall.Time }{
			{start + hour, start + hour}, {start + minute, start + hour}, {start + 2*hour, start + 2*hour},
		} {
			f.write(func(tx *store.Tx) { tx.TouchSession(s.ID, touch.at, rolecall.TouchInterval) })
			same(f, f.session(hash).Session.LastUsedAt, touch.want)
		}
	}},
	{"A re-authentication is written only if the session exists", func(f *fixture) {
		s, hash := f.signIn(f.newUser("Ada Lovelace"), start)
		confirm := func(id rolecall.SessionID, at rolecall.Time) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.ConfirmSession(id, at) })
		}
		same(f, confirm(s.ID, start+hour), true)
		s.ConfirmedAt = start + hour
		same(f, f.session(hash).Session, s)
		same(f, confirm(rolecall.NewID[rolecall.Session](start), start), false)
	}},
	{"The next token of a session is stored only once by concurrent refreshes", func(f *fixture) {
		s, hash := f.signIn(f.newUser("Ada Lovelace"), start)
		token := f.session(hash).Token
		successors, seals := make([][]byte, 20), make([][]byte, 20)
		results := parallel(len(successors), func(i int) error {
			successors[i], seals[i] = aHash(), aHash()
			return f.tryUpdate(func(tx *store.Tx) error {
				done, err := tx.SealSuccessor(s.ID, token, successors[i], seals[i])
				if err == nil && !done {
					return errRefused
				}
				return err
			})
		})
		f.oneWins(results, errRefused)
		winner := slices.Index(results, nil)
		same(f, f.session(hash).Token.Sealed, seals[winner])
		for i, successor := range successors {
			if i != winner {
				f.is(f.trySession(successor), rolecall.ErrNotFound)
			}
		}
		state := f.session(successors[winner])
		same(f, state.Token, rolecall.SessionToken{Hash: successors[winner], Generation: 2, RetiredAt: rolecall.Never})
		same(f, state.Generation, 1)
		same(f, state.Session, s)
	}},
	{"The use of a token generation retires the previous generation", func(f *fixture) {
		s, first := f.signIn(f.newUser("Ada Lovelace"), start)
		second := f.succeed(s, first)
		f.write(func(tx *store.Tx) { tx.ConfirmGeneration(s.ID, 2, start+minute) })
		same(f, f.session(first).Token.RetiredAt, start+minute)
		same(f, f.session(second).Token.RetiredAt, rolecall.Never)
		same(f, f.session(second).Generation, 2)
		f.write(func(tx *store.Tx) { tx.ConfirmGeneration(s.ID, 2, start+hour) })
		same(f, f.session(first).Token.RetiredAt, start+minute)
	}},
	{"An older token generation is not confirmed after a newer one", func(f *fixture) {
		s, first := f.signIn(f.newUser("Ada Lovelace"), start)
		second := f.succeed(s, first)
		f.write(func(tx *store.Tx) { tx.ConfirmGeneration(s.ID, 2, start+minute) })
		third := f.succeed(s, second)
		f.write(func(tx *store.Tx) { tx.ConfirmGeneration(s.ID, 3, start+hour) })
		f.write(func(tx *store.Tx) { tx.ConfirmGeneration(s.ID, 2, start+day) })
		same(f, f.session(third).Generation, 3)
		same(f, f.session(first).Token.RetiredAt, start+minute)
		same(f, f.session(second).Token.RetiredAt, start+hour)
	}},
	{"The last hundred token generations are kept", func(f *fixture) {
		s, token := f.signIn(f.newUser("Ada Lovelace"), start)
		tokens := map[int64][]byte{1: token}
		for generation := int64(2); generation <= 105; generation++ {
			token = f.succeed(s, token)
			tokens[generation] = token
			f.write(func(tx *store.Tx) { tx.ConfirmGeneration(s.ID, generation, start+rolecall.Time(generation)) })
		}
		for generation, hash := range tokens {
			if err := f.trySession(hash); generation >= 5 {
				f.is(err, nil)
			} else {
				f.is(err, rolecall.ErrNotFound)
			}
		}
	}},
	{"Deleting a session reports whether it existed", func(f *fixture) {
		s, hash := f.signIn(f.newUser("Ada Lovelace"), start)
		end := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteSession(s.ID) })
		}
		same(f, end(), true)
		same(f, end(), false)
		f.is(f.trySession(hash), rolecall.ErrNotFound)
	}},
	{"Deleting the sessions of a user keeps one of them, and those of other users", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		first, firstHash := f.signIn(u, start)
		second, secondHash := f.signIn(u, start)
		spared, sparedHash := f.signIn(u, start)
		_, otherHash := f.signIn(other, start)
		end := func(except rolecall.SessionID) []rolecall.SessionID {
			ended := change(f, func(tx *store.Tx) ([]rolecall.SessionID, error) { return tx.DeleteSessions(u.ID, except) })
			slices.SortFunc(ended, func(a, b rolecall.SessionID) int { return slices.Compare(a[:], b[:]) })
			return ended
		}
		same(f, end(spared.ID), []rolecall.SessionID{first.ID, second.ID})
		same(f, len(end(spared.ID)), 0)
		for _, hash := range [][]byte{firstHash, secondHash} {
			f.is(f.trySession(hash), rolecall.ErrNotFound)
		}
		f.is(f.trySession(sparedHash), nil)
		same(f, end(rolecall.SessionID{}), []rolecall.SessionID{spared.ID})
		f.is(f.trySession(otherHash), nil)
	}},
	{"A live session of a user can be ended by its id", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		s, hash := f.signIn(u, start)
		kept, keptHash := f.signIn(u, start)
		end := func(user rolecall.User, id rolecall.SessionID, now rolecall.Time) bool {
			return change(f, func(tx *store.Tx) (bool, error) {
				return tx.DeleteUserSession(user.ID, id, rolecall.TenantSettings{}, now)
			})
		}
		same(f, end(other, s.ID, start), false)
		same(f, end(u, s.ID, start+idle), false)
		same(f, end(u, s.ID, start+7*day), false)
		f.is(f.trySession(hash), nil)
		same(f, end(u, s.ID, start+idle-1), true)
		same(f, end(u, s.ID, start), false)
		f.is(f.trySession(hash), rolecall.ErrNotFound)
		f.is(f.trySession(keptHash), nil)
		same(f, f.sessionsOf(u, start, 10), []rolecall.SessionID{kept.ID})
	}},
	{"The oldest sessions of a user end, and expired ones are deleted with them", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.signIn(f.newUser("Grace Hopper"), start)
		var all []rolecall.SessionID
		for i := range rolecall.Time(5) {
			s, _ := f.signIn(u, start+i*hour)
			all = append(all, s.ID)
		}
		f.write(func(tx *store.Tx) { tx.TouchSession(all[0], start+idle, rolecall.TouchInterval) })
		now := start + idle + hour // the second session has expired; the first was used
		end := func(keep int) []rolecall.SessionID {
			ended := change(f, func(tx *store.Tx) ([]rolecall.SessionID, error) {
				return tx.DeleteOldestSessions(u.ID, keep, rolecall.TenantSettings{}, now)
			})
			slices.SortFunc(ended, func(a, b rolecall.SessionID) int { return slices.Compare(a[:], b[:]) })
			return ended
		}
		same(f, len(end(5)), 0)
		same(f, f.sessionsOf(u, start, 10), []rolecall.SessionID{all[4], all[3], all[2], all[1], all[0]})
		same(f, len(end(4)), 0) // but the second has been deleted
		same(f, f.sessionsOf(u, start, 10), []rolecall.SessionID{all[4], all[3], all[2], all[0]})
		same(f, end(2), []rolecall.SessionID{all[0], all[2]})
		same(f, end(0), []rolecall.SessionID{all[3], all[4]})
		same(f, len(end(0)), 0)
	}},
	{"Concurrent sign-ins that lock the user never exceed the limit of sessions", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		for _, err := range parallel(50, func(int) error {
			s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: u.ID, AuthenticatedAt: start, LastUsedAt: start, ExpiresAt: start + day}
			return f.tryUpdate(func(tx *store.Tx) error {
				if _, err := tx.LockActiveUser(u.ID); err != nil {
					return err
				}
				if _, err := tx.DeleteOldestSessions(u.ID, 2, rolecall.TenantSettings{}, start); err != nil {
					return err
				}
				tx.InsertSession(s, aHash())
				return nil
			})
		}) {
			f.is(err, nil)
		}
		same(f, len(f.sessionsOf(u, start, 100)), 3)
	}},
	{"The live sessions of a user are listed, newest first, in pages", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		_, hash := f.signIn(f.newUser("Grace Hopper"), start)
		var all []rolecall.SessionID
		for i := range rolecall.Time(10) {
			s, _ := f.signIn(u, start+i*hour)
			all = append([]rolecall.SessionID{s.ID}, all...)
		}
		for _, limit := range []int{1, 3, 10, 11} {
			same(f, f.sessionsOf(u, start, limit), all)
		}
		same(f, f.sessionsOf(u, start+idle+4*hour, 2), all[:5])
		same(f, len(f.sessionsOf(u, start+7*day+9*hour, 2)), 0)
		whole := f.session(hash).Session
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Session], error) {
			return tx.Sessions(rolecall.SessionQuery{User: whole.UserID, Now: start, Limit: 1})
		})
		same(f, page, rolecall.Page[rolecall.Session]{Items: []rolecall.Session{whole}})
	}},
	{"A summary has the number of unexpired sessions and the last sign-in", summaryCounts},
	{"Users with sessions without a second factor are counted once each", func(f *fixture) {
		ada, grace, alan := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newUser("Alan Turing")
		f.signIn(ada, start) // with a second factor
		for i, u := range []rolecall.User{ada, ada, grace} {
			at := start + rolecall.Time(i)*hour
			s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](at), UserID: u.ID, AuthenticatedAt: at, LastUsedAt: at, ExpiresAt: at + 7*day}
			f.write(func(tx *store.Tx) { tx.InsertSession(s, aHash()) })
		}
		f.signIn(alan, start)
		same(f, f.usersWithoutFactor(rolecall.TenantSettings{}, start+2*hour), rolecall.Total{Count: 2, Exact: true})
		same(f, f.usersWithoutFactor(rolecall.TenantSettings{}, start+idle+hour), rolecall.Total{Count: 1, Exact: true})
		same(f, f.usersWithoutFactor(rolecall.TenantSettings{}, start+idle+2*hour), rolecall.Total{Exact: true})
		guarded := rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}}
		same(f, f.usersWithoutFactor(guarded, start+2*hour+minute), rolecall.Total{Count: 1, Exact: true})
	}},
	{"Sessions end earlier where a second factor is required", func(f *fixture) {
		const day = rolecall.Time(rolecall.GuardedSessionAbsolute / time.Microsecond)
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		guarded := rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}}
		t := f.tenantByName("acme")
		changed := t
		changed.Settings, changed.Version = guarded, t.Version+1
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateTenant(t, changed) }), true)
		first, _ := f.signIn(u, start)
		second, _ := f.signIn(u, start+hour)
		f.write(func(tx *store.Tx) {
			tx.TouchSession(first.ID, start+day-minute, rolecall.TouchInterval)
			tx.TouchSession(second.ID, start+day-minute, rolecall.TouchInterval)
		})
		listed := func(now rolecall.Time, settings rolecall.TenantSettings) (ids []rolecall.SessionID) {
			page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Session], error) {
				return tx.Sessions(rolecall.SessionQuery{User: u.ID, Settings: settings, Now: now, Limit: 10})
			})
			for _, s := range page.Items {
				ids = append(ids, s.ID)
			}
			return ids
		}
		counted := func(now rolecall.Time, settings rolecall.TenantSettings) int {
			return read(f, func(tx *store.Tx) (rolecall.SignInSummary, error) {
				return tx.SignInSummary(u.ID, nil, nil, settings, now)
			}).Sessions
		}
		both, one := []rolecall.SessionID{second.ID, first.ID}, []rolecall.SessionID{second.ID}
		same(f, listed(start+day-1, guarded), both)
		same(f, counted(start+day-1, guarded), 2)
		same(f, listed(start+day, guarded), one)
		same(f, counted(start+day, guarded), 1)
		same(f, listed(start+day, rolecall.TenantSettings{}), both)
		end := func(id rolecall.SessionID, settings rolecall.TenantSettings) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteUserSession(u.ID, id, settings, start+day) })
		}
		same(f, end(first.ID, guarded), false)
		same(f, change(f, func(tx *store.Tx) ([]rolecall.SessionID, error) {
			return tx.DeleteOldestSessions(u.ID, 1, guarded, start+day)
		}), nil) // the first had already expired
		same(f, listed(start+day, rolecall.TenantSettings{}), one)
		same(f, end(second.ID, guarded), true)
		same(f, len(f.sessionsOf(other, start, 10)), 0)
	}},
}

// idle is how long a session is valid without a request.
const idle = rolecall.Time(rolecall.DefaultSessionIdle / time.Microsecond)

// sessionsOf lists the live sessions of the user.
func (f *fixture) sessionsOf(u rolecall.User, now rolecall.Time, limit int) (ids []rolecall.SessionID) {
	f.Helper()
	q := rolecall.SessionQuery{User: u.ID, Now: now, Limit: limit}
	for _, s := range everyPage(f, limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.Session], error) {
		q.After = after
		return tx.Sessions(q)
	}, nil) {
		ids = append(ids, s.ID)
	}
	return ids
}

func (f *fixture) usersWithoutFactor(settings rolecall.TenantSettings, now rolecall.Time) rolecall.Total {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Total, error) { return tx.UsersWithoutFactor(settings, now) })
}

func summaryCounts(f *fixture) {
	u := f.newUser("Ada Lovelace")
	type summary struct {
		count             int
		newest, lastLogin rolecall.Time
	}
	at := func(now rolecall.Time) summary {
		s := f.signInSummary(u, nil, nil, now)
		same(f, read(f, func(tx *store.Tx) (rolecall.Time, error) { return tx.LastLogin(u.ID) }), s.LastLoginAt)
		return summary{s.Sessions, s.NewestAt, s.LastLoginAt}
	}
	same(f, at(start), summary{})
	first, _ := f.signIn(u, start)
	second, _ := f.signIn(u, start+hour)
	same(f, at(start+2*hour), summary{2, start + hour, start + hour})

	same(f, at(start+idle-1).count, 2)
	same(f, at(start+idle).count, 1)
	f.write(func(tx *store.Tx) { tx.TouchSession(first.ID, start+3*hour, rolecall.TouchInterval) })
	same(f, at(start+idle).count, 2)
	same(f, at(start+30*day), summary{0, 0, start + hour})

	f.update(func(tx *store.Tx) error {
		_, err := tx.DeleteSession(second.ID)
		return err
	})
	same(f, at(start+4*hour), summary{1, start, start + hour})
}

func (f *fixture) session(hash []byte) rolecall.SessionState {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(hash, math.MaxInt) })
}

func (f *fixture) trySession(hash []byte) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionByToken(hash) })
	return err
}

// succeed stores the next generation of the session's token and returns the hash of the
// new token.
func (f *fixture) succeed(s rolecall.Session, hash []byte) []byte {
	f.Helper()
	token, successor := f.session(hash).Token, aHash()
	same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.SealSuccessor(s.ID, token, successor, aHash()) }), true)
	return successor
}
