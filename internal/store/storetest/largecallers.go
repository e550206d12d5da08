package storetest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var largeCallerCases = []testCase{
	{"The metadata of a user and the permissions of a token are read once, and not for each role", func(f *fixture) {
		u := aUser("Ada Lovelace")
		u.Metadata = rolecall.NewMetadata(map[string]string{"note": strings.Repeat("m", 500)})
		f.write(func(tx *store.Tx) { tx.InsertUser(u) })
		account := f.newServiceAccount("Import")
		var roles, accountRoles []rolecall.Assignment
		for i := range 5 {
			role := f.newRole(fmt.Sprintf("Role %d", i))
			roles, accountRoles = append(roles, f.assign(u, role)), append(accountRoles, f.assignToAccount(account, role))
		}
		_, session := f.signIn(u, start)
		var permissions []rolecall.Permission
		for i := range 20 {
			permissions = append(permissions, rolecall.Permission{Application: "shop", Resource: strings.Repeat("t", 20), Action: fmt.Sprintf("action-%d", i)})
		}
		ofUser, ofAccount := tokenOfUser(u), tokenOfAccount(account)
		ofUser.Permissions, ofAccount.Permissions = permissions, permissions
		userToken, accountToken := f.newAPIToken(ofUser), f.newAPIToken(ofAccount)

		counted := &scanned{Database: f.database}
		f.store = store.New(counted, nil)
		state := read(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(session, math.MaxInt) })
		same(f, state.User, u)
		same(f, state.Assignments, byRole(roles...))
		same(f, [2]int{counted.metadata, counted.tokens}, [2]int{1, 0})
		token := f.apiToken(userToken)
		same(f, token, rolecall.APITokenState{Token: ofUser, Holder: u, Assignments: byRole(roles...)})
		same(f, [2]int{counted.metadata, counted.tokens}, [2]int{2, 1})
		token = f.apiToken(accountToken)
		same(f, token.Token, ofAccount)
		same(f, token.Assignments, byRole(accountRoles...))
		same(f, counted.tokens, 2)
	}},
	{"A read of a caller ends when the roles have more permissions than the limit", func(f *fixture) {
		u, account := f.newUser("Ada Lovelace"), f.newServiceAccount("Import")
		for i := range 3 { // each with one permission
			role := f.newRole(fmt.Sprintf("Role %d", i))
			f.assign(u, role)
			f.assignToAccount(account, role)
		}
		_, session := f.signIn(u, start)
		userToken, accountToken := f.newAPIToken(tokenOfUser(u)), f.newAPIToken(tokenOfAccount(account))
		for limit, want := range map[int]error{0: store.ErrManyPermissions, 2: store.ErrManyPermissions, 3: nil} {
			_, err := tryRead(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(session, limit) })
			f.is(err, want)
			for _, hash := range [][]byte{userToken, accountToken} {
				_, err := tryRead(f, func(tx *store.Tx) (rolecall.APITokenState, error) { return tx.APITokenByHash(hash, limit) })
				f.is(err, want)
			}
		}
		same(f, len(f.session(session).Assignments), 3) // the connection still works
	}},
}

// scanned is a database that counts how many columns with the metadata of a user, and with the permissions of a
// token, are read.
type scanned struct {
	store.Database
	metadata, tokens int
}

func (s *scanned) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return s.Database.View(ctx, tenant, func(q store.Querier) error { return fn(scannedQuerier{q, s}) })
}

type scannedQuerier struct {
	store.Querier
	counts *scanned
}

func (q scannedQuerier) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	return q.Querier.Query(query, args, func(scan func(dest ...any) error) error {
		return each(func(dest ...any) error {
			for i := range dest {
				if to, ok := dest[i].(scanner); ok {
					dest[i] = scannedColumn{to, q.counts}
				}
			}
			return scan(dest...)
		})
	})
}

type scannedColumn struct {
	to     scanner
	counts *scanned
}

func (c scannedColumn) Scan(src any) error {
	text := fmt.Sprintf("%s", src)
	if strings.Contains(text, strings.Repeat("m", 500)) {
		c.counts.metadata++
	}
	if strings.Contains(text, strings.Repeat("t", 20)) {
		c.counts.tokens++
	}
	return c.to.Scan(src)
}

// scanner reads a column (sql.Scanner).
type scanner interface{ Scan(column any) error }
