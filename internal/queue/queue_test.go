package queue

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
)

func TestThePauseDoubles(t *testing.T) {
	b := Backoff{30 * time.Second, time.Hour}
	for failures, want := range map[int]time.Duration{
		1: 30 * time.Second, 2: time.Minute, 3: 2 * time.Minute, 7: 32 * time.Minute, 8: time.Hour, 9: time.Hour, 1 << 20: time.Hour, 0: 30 * time.Second,
	} {
		if got := b.Pause(failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
}

// TestAWorkerBoundsItsWork has 20 pieces of work that wait for each other in groups of three.
func TestAWorkerBoundsItsWork(t *testing.T) {
	var mu sync.Mutex
	var claims []int
	waiting, running, most := 20, 0, 0
	entered, leave := make(chan struct{}), make(chan struct{})
	w := New(Worker[int]{AtOnce: 3, Batch: 2, Interval: time.Hour, Claim: func(_ context.Context, n int) ([]int, error) {
		mu.Lock()
		defer mu.Unlock()
		claims = append(claims, n)
		n = min(n, waiting)
		if n == 0 {
			return nil, rolecall.ErrNotFound
		}
		waiting -= n
		return make([]int, n), nil
	}, Do: func(context.Context, int) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		entered <- struct{}{}
		<-leave
		mu.Lock()
		running--
		mu.Unlock()
	}, Report: func(_ context.Context, err error) {
		if err != nil {
			t.Error(err)
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	for range 6 {
		for range 3 {
			<-entered
		}
		for range 3 {
			leave <- struct{}{}
		}
	}
	<-entered
	<-entered
	leave <- struct{}{}
	mu.Lock()
	waiting = 1
	mu.Unlock()
	w.Wake()
	<-entered
	cancel()
	select {
	case <-done:
		t.Error("the worker did not wait for its work")
	default:
	}
	leave <- struct{}{}
	leave <- struct{}{}
	<-done
	if most != 3 {
		t.Errorf("%d at once", most)
	}
	for _, n := range claims {
		if n < 1 || n > 2 {
			t.Errorf("a claim of %d", n)
		}
	}
}

// TestSlowWorkFreesItsSlot has a worker with one slot, whose work never ends. One more piece can
// begin while another one lingers, and no third one.
func TestSlowWorkFreesItsSlot(t *testing.T) { synctest.Test(t, slowWork) }

func slowWork(t *testing.T) {
	begun, end := make(chan int, 9), make(chan struct{})
	next := 0
	w := New(Worker[int]{AtOnce: 1, Batch: 1, Interval: time.Millisecond, Lingering: 1, LingerAfter: 20 * time.Millisecond, Claim: func(context.Context, int) ([]int, error) {
		next++
		return []int{next}, nil
	}, Do: func(_ context.Context, n int) {
		begun <- n
		<-end
	}, Report: func(_ context.Context, err error) {
		if err != nil {
			t.Error(err)
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	for want := 1; want <= 2; want++ {
		if n := <-begun; n != want {
			t.Errorf("begun is %d, want %d", n, want)
		}
	}
	select {
	case n := <-begun:
		t.Errorf("%d has begun", n)
	case <-time.After(100 * time.Millisecond):
	}
	end <- struct{}{} // one of the two ends, so one more can begin
	if n := <-begun; n != 3 {
		t.Errorf("begun is %d, want 3", n)
	}
	cancel()
	close(end)
	<-done
}

func TestAWorkerGoesOnAfterAFailedClaim(t *testing.T) {
	failure := errors.New("down")
	failed, worked := make(chan error, 1), make(chan struct{}, 1)
	first := true
	w := New(Worker[int]{AtOnce: 1, Batch: 1, Interval: time.Millisecond, Claim: func(context.Context, int) ([]int, error) {
		if first {
			first = false
			return nil, failure
		}
		return []int{1}, nil
	}, Do: func(context.Context, int) {
		select {
		case worked <- struct{}{}:
		default:
		}
	}, Report: func(_ context.Context, err error) {
		if err != nil {
			failed <- err
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	if err := <-failed; !errors.Is(err, failure) {
		t.Error(err)
	}
	<-worked
	cancel()
	<-done
}
