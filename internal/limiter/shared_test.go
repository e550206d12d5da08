package limiter

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneOwnerDoesNotKeepOthersWaiting fills a limiter with the operations of one owner. The operation of another
// owner then still gets a slot.
func TestOneOwnerDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewShared[string](2, 6, time.Second)
		var mu sync.Mutex
		var got, lost []string
		acquire := func(owner string) {
			release, ok := l.AcquireFor(t.Context(), owner)
			mu.Lock()
			if !ok {
				lost = append(lost, owner)
				mu.Unlock()
				return
			}
			got = append(got, owner)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // of the clock of the bubble
			release()
		}
		for range 20 {
			go acquire("large")
			synctest.Wait()
		}
		go acquire("small")
		synctest.Wait()
		if len(lost) != 20-8+1 { // one of those that waited made room
			t.Errorf("%d operations did not run", len(lost))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(got) != 8 || !slices.Contains(got, "small") {
			t.Errorf("those ran: %q", got)
		}
		if l.Active() != 0 || l.shares.running != 0 {
			t.Errorf("%d operations and %d shares are left", l.Active(), l.shares.running)
		}
	})
}

// TestARunningOperationKeepsItsSlot takes the share of an operation that runs already.
func TestARunningOperationKeepsItsSlot(t *testing.T) {
	l := NewShared[string](2, 0, time.Second)
	first, _ := l.AcquireFor(t.Context(), "large")
	second, _ := l.AcquireFor(t.Context(), "large")
	third := make(chan func())
	go func() {
		release, ok := l.AcquireFor(t.Context(), "small")
		if !ok {
			t.Error("another owner got no slot")
			release = func() {}
		}
		third <- release
	}()
	first()
	(<-third)()
	second()
	if l.Active() != 0 || l.shares.running != 0 {
		t.Errorf("%d operations and %d shares are left", l.Active(), l.shares.running)
	}
}
