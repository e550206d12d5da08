package node_test

import (
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

func TestOlderRecoveryCodesWorkUntilTheyAreUsed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, _, codes := f.protected("ada")
		if len(codes[0]) != len("0123-4567-89ab-cdef-ghjk-mnpq-r8") {
			t.Errorf("a new code is %s", codes[0])
		}
		const older = secret.RecoveryCode("0123-4567-89ab-cdef")
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.ReplaceRecoveryCodes(ada.ID, [][]byte{older.Hash()})
			return nil
		}))
		f.ok(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: "OI23 4567 89AB CDEF"})))
		f.is(errorOf(f.answer(f.factorChallenge("ada"), signin.Proof{RecoveryCode: string(older)})), rolecall.ErrWrongCode)
	})
}
