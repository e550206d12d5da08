// Package browser controls a headless Chromium. Tests use it to check how a real browser
// handles cookies, origins and forms.
package browser

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

// Variable names the environment variable that holds the path of Chromium.
const Variable = "ROLECALL_TEST_BROWSER"

// Browser is a running Chromium. It resolves every host name to this machine, and does not
// check certificates.
type Browser struct {
	requests *os.File
	mu       sync.Mutex
	lastID   int
	answers  map[int]chan message
	loads    map[string]chan struct{} // by session; receives a value when a page has loaded
}

// message is a message of Chromium's debugging protocol: a request, a response, or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Start starts the Chromium at the path in the environment variable ROLECALL_TEST_BROWSER. If
// the environment variable is empty, Start skips the test. When the test ends, the browser is
// closed.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skipf("no browser: `make browser-test` runs this, with %s set", Variable)
	}
	command := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-proxy-server",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--ignore-certificate-errors", "--host-resolver-rules=MAP * 127.0.0.1", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe")
	theirRequests, requests := pipe(t)
	answers, theirAnswers := pipe(t)
	command.ExtraFiles = []*os.File{theirRequests, theirAnswers} // become file descriptors 3 and 4, as --remote-debugging-pipe requires
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range command.ExtraFiles {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b := &Browser{requests: requests, answers: map[int]chan message{}, loads: map[string]chan struct{}{}}
	go b.read(answers)
	t.Cleanup(func() {
		b.call(t, "", "Browser.close", nil, nil)
		if err := command.Wait(); err != nil {
			t.Errorf("the browser ended: %v", err)
		}
	})
	return b
}

// pipe returns the two ends of a pipe. Both ends are closed when the test ends.
func pipe(t testing.TB) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = reader.Close() // fails for the end that the browser got, which is already closed
		_ = writer.Close()
	})
	return reader, writer
}

// read reads messages from the browser until the browser ends. It passes each response to the
// call that waits for it, and reports each loaded page to the tab.
func (b *Browser) read(from io.Reader) {
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			return // not a message; the waiting call times out and fails the test
		}
		b.mu.Lock()
		answer, loads := b.answers[m.ID], b.loads[m.Session]
		delete(b.answers, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m
		case loads != nil && m.Method == "Page.loadEventFired":
			loads <- struct{}{}
		}
	}
}

// call sends a request to the browser and decodes the response into result. If result is nil,
// call ignores the response's data. An error response fails the test.
func (b *Browser) call(t testing.TB, session, method string, params, result any) {
	t.Helper()
	answer := make(chan message, 1)
	b.mu.Lock()
	b.lastID++
	request := message{ID: b.lastID, Session: session, Method: method, Params: params}
	b.answers[request.ID] = answer
	line, err := json.Marshal(request)
	if err == nil {
		_, err = b.requests.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			t.Fatalf("%s: %s", method, m.Error)
		}
		if result == nil {
			return
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience.Limit):
		t.Fatalf("the browser does not answer %s", method)
	}
}
