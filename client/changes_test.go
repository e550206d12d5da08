package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/client"
)

// answers is a transport with prepared answers: a status, a status and the seconds of Retry-After, or an
// error. After the last one, it waits until the request ends.
type answers struct {
	begun time.Time
	left  []string
	asked []string // the time since begun and the query of each request
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked = append(a.asked, fmt.Sprintf("%v %s", time.Since(a.begun).Round(time.Second), r.URL.RawQuery))
	if len(a.left) == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	next := a.left[0]
	a.left = a.left[1:]
	status, after, _ := strings.Cut(next, " ")
	answer := &http.Response{Header: http.Header{"Content-Type": {"application/problem+json"}}, Request: r}
	if after != "" {
		answer.Header.Set("Retry-After", after)
	}
	body := `{"code":"` + status + `"}`
	if _, err := fmt.Sscan(status, &answer.StatusCode); err != nil {
		return nil, errors.New(next)
	}
	if answer.StatusCode == http.StatusOK {
		body = `{"items":[],"nextCursor":"c` + fmt.Sprint(len(a.left)) + `","upToDate":true}`
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

// followed follows the changes with the answers, and returns the cursors of the pages and the error.
func followed(ctx context.Context, prepared ...string) (a *answers, cursors []string, err error) {
	a = &answers{begun: time.Now(), left: prepared}
	c := client.NewWithToken("http://rolecall.example", "acme", "rc_x", &http.Client{Transport: a})
	for page, err := range c.FollowChanges(ctx, "c", client.ChangeFilter{}) {
		if err != nil {
			return a, cursors, err
		}
		cursors = append(cursors, page.Cursor)
	}
	return a, cursors, nil
}

func TestAFollowerRepeatsAtTheSameCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a, cursors, err := followed(t.Context(), "200", "503 10", "refused", "429", "reset", "200", "503", "410")
		if want := []string{"c7", "c2"}; !slices.Equal(cursors, want) {
			t.Errorf("the cursors are %q, want %q", cursors, want)
		}
		if !errors.Is(err, client.ErrChangesExpired) || !is(err, "410") {
			t.Errorf("the error is %v", err)
		}
		for i, want := range []string{"c", "c7", "c7", "c7", "c7", "c7", "c2", "c2"} {
			if !strings.HasSuffix(a.asked[i], "after="+want+"&wait=20") {
				t.Errorf("request %d was %s, want the cursor %s", i, a.asked[i], want)
			}
		}
		// 10 to 15 s, then 1 to 1.5, 2 to 3, 4 to 6, and 0.5 to 0.75 s
		if took := time.Since(began); took < 17500*time.Millisecond || took > 26250*time.Millisecond {
			t.Errorf("took %v: %q", took, a.asked)
		}
	})
}

func TestAFollowerEndsAfterOtherErrors(t *testing.T) {
	for _, status := range []string{"400", "401", "403", "404", "500", "502", "504"} {
		synctest.Test(t, func(t *testing.T) {
			a, cursors, err := followed(t.Context(), "200", status, "200")
			if !is(err, status) || errors.Is(err, client.ErrChangesExpired) || len(cursors) != 1 || len(a.asked) != 2 {
				t.Errorf("%s: %v after %q, asked %q", status, err, cursors, a.asked)
			}
		})
	}
}

func TestAFollowerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, prepared := range [][]string{nil, {"503 3600"}} { // in a request, and between two
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			a, _, err := followed(ctx, prepared...)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(a.begun) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(a.begun))
			}
		}
	})
}

func TestAFollowerDoesNotWaitLongerThanItsClient(t *testing.T) {
	for timeout, want := range map[time.Duration]string{time.Second: "after=c", 15 * time.Second: "after=c&wait=10", time.Hour: "after=c&wait=20"} {
		a := &answers{left: []string{"400"}}
		c := client.NewWithToken("http://rolecall.example", "acme", "rc_x", &http.Client{Transport: a, Timeout: timeout})
		for _, err := range c.FollowChanges(t.Context(), "c", client.ChangeFilter{}) {
			if !is(err, "400") || !strings.HasSuffix(a.asked[0], " "+want) {
				t.Errorf("with the timeout %v: asked %q (%v), want %s", timeout, a.asked, err, want)
			}
		}
	}
}

func TestAFollowerWhoseRequestsDoNotWaitPausesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{begun: time.Now(), left: []string{"200", "200", "200", "400"}}
		c := client.NewWithToken("http://rolecall.example", "acme", "rc_x", &http.Client{Transport: a, Timeout: 2 * time.Second})
		for _, err := range c.FollowChanges(t.Context(), "c", client.ChangeFilter{}) {
			if err != nil && !is(err, "400") {
				t.Error(err)
			}
		}
		if want := []string{"0s after=c", "1s after=c3", "2s after=c2", "3s after=c1"}; !slices.Equal(a.asked, want) {
			t.Errorf("asked %q, want %q", a.asked, want)
		}
	})
}
