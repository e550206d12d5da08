package client_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/client"
)

// sent is a request that a script has received.
type sent struct {
	at   time.Duration
	key  string
	body string
}

// script is a transport with prepared answers, as answers is. It records the requests.
type script struct {
	answers
	sent []sent
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	one := sent{at: time.Since(s.begun), key: r.Header.Get("Idempotency-Key")}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		one.body = string(body)
	}
	s.sent = append(s.sent, one)
	return s.answers.RoundTrip(r)
}

func (s *script) client() *client.Client {
	return client.NewWithToken("http://rolecall.example", "acme", "rc_x", &http.Client{Transport: s})
}

func prepared(all ...string) *script {
	return &script{answers: answers{begun: time.Now(), left: all}}
}

func TestACreationIsRepeatedWithItsKey(t *testing.T) {
	for _, failure := range []string{"429", "503", "reset"} {
		synctest.Test(t, func(t *testing.T) {
			s := prepared(failure, failure, failure, "200")
			if _, err := s.client().CreateUser(t.Context(), "", client.NewUser{Name: "Ada"}); err != nil {
				t.Error(err)
			}
			if len(s.sent) != 4 || s.sent[0].key == "" {
				t.Fatalf("sent %+v", s.sent)
			}
			for i, one := range s.sent {
				if one.key != s.sent[0].key || one.body != s.sent[0].body || !strings.Contains(one.body, "Ada") {
					t.Errorf("request %d is %+v", i, one)
				}
			}
			// 0.5 to 0.75, 1 to 1.5 and 2 to 3 s
			if took := s.sent[3].at; took < 3500*time.Millisecond || took > 5250*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestEachCallHasItsOwnKey(t *testing.T) {
	s := prepared("200", "200", "200")
	for _, key := range []string{"", "", "mine"} {
		if _, err := s.client().CreateRole(t.Context(), key, client.NewRole{Name: "Role"}); err != nil {
			t.Fatal(err)
		}
	}
	if s.sent[0].key == s.sent[1].key || s.sent[2].key != "mine" {
		t.Errorf("sent %+v", s.sent)
	}
}

func TestAChangeWithoutAKeyIsNotRepeatedAfterALostConnection(t *testing.T) {
	for name, change := range map[string]func(context.Context, *client.Client) error{
		"update": func(ctx context.Context, c *client.Client) error {
			_, err := c.UpdateUser(ctx, "1", "", nil)
			return err
		},
		"delete":  func(ctx context.Context, c *client.Client) error { return c.DeleteUser(ctx, "1") },
		"suspend": func(ctx context.Context, c *client.Client) error { _, err := c.SuspendUser(ctx, "1", ""); return err },
		"login":   func(ctx context.Context, c *client.Client) error { _, err := c.Login(ctx, "a", "b"); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := prepared("reset", "200")
			if err := change(t.Context(), s.client()); err == nil || len(s.sent) != 1 {
				t.Errorf("%s: %v, %d requests", name, err, len(s.sent))
			}
			s = prepared("503 3", "200")
			if err := change(t.Context(), s.client()); err != nil || len(s.sent) != 2 || s.sent[1].at < 3*time.Second {
				t.Errorf("%s after 503: %v, %+v", name, err, s.sent)
			}
		})
	}
}

func TestOtherResponsesAreNotRepeated(t *testing.T) {
	for _, status := range []string{"400", "401", "403", "404", "409", "410", "412", "422", "500", "502", "504", "429 31"} {
		s := prepared(status, "200")
		_, err := s.client().CreateUser(t.Context(), "", client.NewUser{})
		if code, _, _ := strings.Cut(status, " "); !is(err, code) || len(s.sent) != 1 {
			t.Errorf("%s: %v, %d requests", status, err, len(s.sent))
		}
	}
}

func TestRepetitionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := prepared("503", "503", "503", "503", "200")
		if _, err := s.client().User(t.Context(), "1"); !is(err, "503") || len(s.sent) != 4 {
			t.Errorf("%v after %d requests", err, len(s.sent))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s = prepared("503 20", "200")
		if _, err := s.client().User(ctx, "1"); !is(err, "503") || time.Since(s.begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(s.begun))
		}
	})
}

func TestListsEndOnlyAtANullCursor(t *testing.T) {
	pages := []string{`[],"nextCursor":"a"`, `[{"id":"1"}],"nextCursor":"b"`, `[],"nextCursor":"c"`, `[],"nextCursor":"d"`, `[{"id":"2"},{"id":"3"}],"nextCursor":"e"`, `[],"nextCursor":null`}
	var cursors []string
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		body := `{"items":` + pages[len(cursors)] + `}`
		cursors = append(cursors, r.URL.Query().Get("cursor"))
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	ids := ""
	for user, err := range client.New("http://rolecall.example", "acme", &http.Client{Transport: transport}).Users(t.Context(), client.UserFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids += user.ID
	}
	if ids != "123" || strings.Join(cursors, ",") != ",a,b,c,d,e" {
		t.Errorf("read %s with the cursors %q", ids, cursors)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
