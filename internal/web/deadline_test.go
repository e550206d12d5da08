package web

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestADeadlineEndsWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadline{Context: t.Context(), at: time.Now().Add(time.Second)}
		if at, ok := d.Deadline(); !ok || !at.Equal(d.at) {
			t.Errorf("the deadline is %v, %v", at, ok)
		}
		child, cancel := context.WithTimeout(d, time.Minute)
		defer cancel()
		<-child.Done()
		if took := time.Since(d.at); took != 0 || !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(d.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended %v after the deadline: %v, %v", took, child.Err(), d.Err())
		}
	})
}

func TestADeadlineExpiresWithoutAWaitingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadline{Context: t.Context(), at: time.Now().Add(time.Second)}
		time.Sleep(time.Second - 1)
		if err := d.Err(); err != nil {
			t.Errorf("just before it: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := d.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the deadline: %v", err)
		}
	})
}

func TestADeadlineEndsWithTheRequest(t *testing.T) {
	for _, waited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			request, leave := context.WithCancel(t.Context())
			d := &deadline{Context: request, at: time.Now().Add(time.Second)}
			if waited {
				select {
				case <-d.Done():
					t.Error("it has ended before anything")
				default:
				}
			}
			leave()
			<-d.Done()
			if !errors.Is(d.Err(), context.Canceled) {
				t.Errorf("it ended with %v", d.Err())
			}
		})
	}
}

// If a timer or a goroutine of the request still exists at its end, the synctest bubble hangs.
func TestTheEndOfARequestStopsItsTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadline{Context: context.Background(), at: time.Now().Add(time.Hour)}
		stopped := context.AfterFunc(d, func() {})
		d.end()
		<-d.Done()
		if !errors.Is(d.Err(), context.Canceled) || stopped() {
			t.Errorf("it ended with %v", d.Err())
		}
	})
}

func TestARenewedDeadlineStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadline{Context: t.Context(), at: time.Now().Add(time.Second)}
		before := d.Done()
		time.Sleep(2 * time.Second)
		if err := d.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		d.renew(time.Now().Add(time.Second))
		<-before
		if err := d.Err(); err != nil {
			t.Errorf("after the renewal: %v", err)
		}
		began := time.Now()
		<-d.Done()
		if took := time.Since(began); took != time.Second || !errors.Is(d.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended after %v: %v", took, d.Err())
		}
	})
}
