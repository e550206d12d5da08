package storetest

import (
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var factorCases = []testCase{
	{"A user without factors has none", func(f *fixture) {
		same(f, f.factors(f.newUser("Ada Lovelace")), rolecall.Factors{})
		same(f, f.factors(aUser("Nobody")), rolecall.Factors{})
	}},
	{"A TOTP secret is pending until it is confirmed, then replaces the current one", func(f *fixture) {
		u, first, second := f.newUser("Ada Lovelace"), aHash(), aHash()
		confirm := func(pending []byte, step int64, at rolecall.Time) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.ConfirmTOTP(u.ID, pending, step, at) })
		}
		f.pend(u, aHash())
		f.pend(u, first)
		same(f, f.factors(u).TOTP, rolecall.TOTP{Pending: first})
		same(f, confirm(second, 7, start), false)
		same(f, confirm(first, 7, start), true)
		same(f, f.factors(u).TOTP, rolecall.TOTP{Sealed: first, ConfirmedAt: start, LastStep: 7})
		same(f, confirm(first, 8, start), false)
		f.pend(u, second)
		same(f, f.factors(u).TOTP, rolecall.TOTP{Sealed: first, Pending: second, ConfirmedAt: start, LastStep: 7})
		same(f, confirm(second, 5, start+1), true)
		same(f, f.factors(u).TOTP, rolecall.TOTP{Sealed: second, ConfirmedAt: start + 1, LastStep: 5})
		f.write(func(tx *store.Tx) { tx.DeleteTOTP(u.ID) })
		same(f, f.factors(u), rolecall.Factors{})
	}},
	{"A TOTP step is accepted once, and older steps are refused", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		sealed, other := f.enrol(u).TOTP.Sealed, f.enrol(f.newUser("Grace Hopper")).TOTP.Sealed
		for _, test := range []struct {
			sealed []byte
			step   int64
			ok     bool
		}{{sealed, 10, true}, {sealed, 10, false}, {sealed, 9, false}, {other, 12, false}, {sealed, 12, true}, {sealed, 11, false}} {
			same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.UseTOTP(u.ID, test.sealed, sealed, test.step) }), test.ok)
		}
		same(f, f.factors(u).TOTP.LastStep, 12)
	}},
	{"Using a TOTP code replaces the sealed secret", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		old, sealed := f.enrol(u).TOTP.Sealed, aHash()
		use := func(step int64) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UseTOTP(u.ID, old, sealed, step) })
		}
		same(f, use(1), false)
		same(f, f.factors(u).TOTP.Sealed, old)
		same(f, use(10), true)
		same(f, f.factors(u).TOTP, rolecall.TOTP{Sealed: sealed, ConfirmedAt: start, LastStep: 10})
		same(f, use(11), false)
	}},
	{"Only one of fifty concurrent uses of a TOTP step, recovery code or passkey succeeds", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		had := f.enrol(u)
		code := aHash()
		f.write(func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{code, aHash()}) })
		for name, use := range map[string]func(i int, tx *store.Tx) (bool, error){
			"step": func(_ int, tx *store.Tx) (bool, error) {
				return tx.UseTOTP(u.ID, had.TOTP.Sealed, had.TOTP.Sealed, 100)
			},
			"recovery code": func(_ int, tx *store.Tx) (bool, error) { return tx.UseRecoveryCode(u.ID, code) },
			"passkey": func(i int, tx *store.Tx) (bool, error) {
				used := had.Passkeys[0]
				used.Credential = fmt.Appendf(nil, `{"signCount":%d}`, i+2)
				return tx.UsePasskey(had.Passkeys[0], used)
			},
		} {
			f.Log(name)
			f.oneWins(parallel(50, func(i int) error {
				return f.tryUpdate(func(tx *store.Tx) error {
					if ok, err := use(i, tx); err != nil || ok {
						return err
					}
					return errRefused
				})
			}), errRefused)
		}
		same(f, f.factors(u).RecoveryCodes, 1)
	}},
	{"New recovery codes replace all earlier ones and work for one user", func(f *fixture) {
		u, other, code := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), aHash()
		use := func(u rolecall.User, hash []byte) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UseRecoveryCode(u.ID, hash) })
		}
		f.write(func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash(), code}) })
		f.write(func(tx *store.Tx) { tx.ReplaceRecoveryCodes(other.ID, [][]byte{aHash(), aHash(), aHash()}) })
		same(f, f.factors(u).RecoveryCodes, 2)
		same(f, use(other, code), false)
		same(f, use(u, code), true)
		same(f, use(u, code), false)
		replaced := aHash()
		f.write(func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{replaced}) })
		f.write(func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash(), aHash()}) })
		same(f, use(u, replaced), false)
		same(f, f.factors(u).RecoveryCodes, 2)
		same(f, f.factors(other).RecoveryCodes, 3)
	}},
	{"A passkey reads back in every member, by its id and in its owner's list, in the order of creation", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		second, first, foreign := aPasskey(u), aPasskey(u), aPasskey(other)
		first.CreatedAt--
		for _, key := range []rolecall.Passkey{second, first, foreign} {
			f.write(func(tx *store.Tx) { tx.InsertPasskey(key) })
			same(f, f.passkey(key.ID), key)
		}
		same(f, f.factors(u).Passkeys, []rolecall.Passkey{first, second})
		f.is(f.tryPasskey(aHash()), rolecall.ErrNotFound)
	}},
	{"The ID of a passkey is unique in a tenant", func(f *fixture) {
		key := aPasskey(f.newUser("Ada Lovelace"))
		f.write(func(tx *store.Tx) { tx.InsertPasskey(key) })
		again := aPasskey(f.newUser("Grace Hopper"))
		again.ID = key.ID
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertPasskey(again) }), rolecall.ErrPasskeyTaken)
		other := f.in(f.newTenant("other"))
		again.UserID = other.newUser("Grace Hopper").ID
		other.write(func(tx *store.Tx) { tx.InsertPasskey(again) })
		same(f, f.passkey(key.ID), key)
	}},
	{"Only the owner of a passkey can use, rename or remove it", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		key := f.enrol(u).Passkeys[0]
		used, foreign := key, key
		used.Credential, used.LastUsedAt, foreign.UserID = []byte(`{"signCount":2}`), start+hour, other.ID
		use := func(old rolecall.Passkey) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UsePasskey(old, used) })
		}
		rename := func(owner rolecall.User) bool {
			renamed := used
			renamed.UserID, renamed.Name = owner.ID, "Key"
			return change(f, func(tx *store.Tx) (bool, error) { return tx.RenamePasskey(renamed) })
		}
		remove := func(u rolecall.User) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeletePasskey(u.ID, key.ID) })
		}
		same(f, use(foreign), false)
		same(f, use(key), true)
		same(f, use(key), false)
		same(f, f.passkey(key.ID), used)
		same(f, rename(other), false)
		same(f, f.passkey(key.ID), used)
		same(f, rename(u), true)
		used.Name = "Key"
		same(f, f.passkey(key.ID), used)
		f.write(func(tx *store.Tx) { tx.DeleteTOTP(u.ID) }) // so that the passkey is the last factor
		same(f, remove(other), false)
		same(f, remove(u), true)
		same(f, remove(u), false)
		same(f, rename(u), false)
	}},
	{"Factors of an unknown user are not found", func(f *fixture) {
		u := aUser("Nobody")
		for _, write := range []func(*store.Tx){
			func(tx *store.Tx) { tx.UpsertPendingTOTP(u.ID, aHash()) },
			func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash()}) },
			func(tx *store.Tx) { tx.InsertPasskey(aPasskey(u)) },
		} {
			f.is(f.tryWrite(write), rolecall.ErrNotFound)
		}
	}},
	{"All factors of a user are deleted together, or with the user", func(f *fixture) {
		reset, gone, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newUser("Mary Jackson")
		f.enrol(reset)
		f.enrol(gone)
		kept := f.enrol(stays)
		f.write(func(tx *store.Tx) { tx.DeleteFactors(reset.ID) })
		same(f, f.deleteUser(gone), true)
		same(f, f.factors(reset), rolecall.Factors{})
		same(f, f.factors(gone), rolecall.Factors{})
		same(f, f.factors(stays), kept)
	}},
	{"Only one of fifty concurrent uses of a token succeeds", func(f *fixture) {
		token := rolecall.OneTimeToken{Purpose: rolecall.TokenPasskey, UserID: f.newUser("Ada Lovelace").ID, CreatedAt: start, ExpiresAt: start + minute}
		hash := aHash()
		f.oneWins(parallel(50, func(int) error {
			return f.tryUpdate(func(tx *store.Tx) error {
				if ok, err := tx.ConsumeOneTimeToken(token, hash); err != nil || ok {
					return err
				}
				return errRefused
			})
		}), errRefused)
		same(f, read(f, func(tx *store.Tx) (rolecall.OneTimeToken, error) { return tx.OneTimeToken(hash, token.Purpose) }), token)
	}},
}

// aPasskey returns a passkey of the user that is not stored yet.
func aPasskey(u rolecall.User) rolecall.Passkey {
	return rolecall.Passkey{ID: aHash(), UserID: u.ID, Name: "Telefon", Credential: []byte(`{"signCount":1}`), CreatedAt: start, LastUsedAt: start + minute}
}

// enrol gives the user a factor of each kind and returns them.
func (f *fixture) enrol(u rolecall.User) rolecall.Factors {
	f.Helper()
	sealed := aHash()
	f.pend(u, sealed)
	same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.ConfirmTOTP(u.ID, sealed, 1, start) }), true)
	f.write(func(tx *store.Tx) {
		tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash(), aHash()})
		tx.InsertPasskey(aPasskey(u))
	})
	return f.factors(u)
}

func (f *fixture) pend(u rolecall.User, sealed []byte) {
	f.Helper()
	f.write(func(tx *store.Tx) { tx.UpsertPendingTOTP(u.ID, sealed) })
}

func (f *fixture) factors(u rolecall.User) rolecall.Factors {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Factors, error) { return tx.Factors(u.ID) })
}

func (f *fixture) passkey(id []byte) rolecall.Passkey {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Passkey, error) { return tx.PasskeyByID(id) })
}

func (f *fixture) tryPasskey(id []byte) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.Passkey, error) { return tx.PasskeyByID(id) })
	return err
}
