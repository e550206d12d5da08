package idempotency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
)

func TestARepeatedRequestWaitsForTheFirstOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keyedMutex
		_, unlock, err := m.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			unlock()
		}()
		waited, unlockToo, err := m.lock(t.Context(), "a")
		if err != nil || !waited || time.Since(begun) != 3*time.Second {
			t.Fatalf("it waited %v: %v, %v", time.Since(begun), waited, err)
		}
		unlockToo()
		if len(m.locked) != 0 {
			t.Errorf("%d keys are locked", len(m.locked))
		}
	})
}

func TestARepeatedRequestDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keyedMutex
		_, unlock, err := m.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		begun := time.Now()
		_, _, err = m.lock(t.Context(), "a")
		if !errors.Is(err, rolecall.ErrKeyInProgress) || time.Since(begun) != lockWait {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err = m.lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who gave up got %v", err)
		}
		waited, other, err := m.lock(t.Context(), "b")
		if err != nil || waited {
			t.Errorf("another scope waited: %v, %v", waited, err)
		}
		other()
	})
}
