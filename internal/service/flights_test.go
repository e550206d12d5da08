package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
)

func TestARepeatWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flights
		_, leave, err := f.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			leave()
		}()
		waited, leaveToo, err := f.enter(t.Context(), "a")
		if err != nil || !waited || time.Since(begun) != 3*time.Second {
			t.Fatalf("it waited %v: %v, %v", time.Since(begun), waited, err)
		}
		leaveToo()
		if len(f.running) != 0 {
			t.Errorf("%d requests are remembered", len(f.running))
		}
	})
}

func TestARepeatDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flights
		_, leave, err := f.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		begun := time.Now()
		_, _, err = f.enter(t.Context(), "a")
		if !errors.Is(err, rolecall.ErrKeyInProgress) || time.Since(begun) != flightWait {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err = f.enter(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who left got %v", err)
		}
		waited, other, err := f.enter(t.Context(), "b")
		if err != nil || waited {
			t.Errorf("another scope waited: %v, %v", waited, err)
		}
		other()
	})
}
