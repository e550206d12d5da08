package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// result is one request and its outcome.
type result struct {
	start, end int64 // nanoseconds since begun
	status     int   // 0: no response
	header     http.Header
	body       []byte

	// known is true if the response has a status below 500, or if the request was never sent. Any
	// other request may have had an effect, or may still have one.
	known bool
}

// begun is the time from which clock counts.
var begun = time.Now()

func clock() int64 { return int64(time.Since(begun)) }

// caller sends requests of a tenant, with a session or without one.
type caller struct {
	load   *load
	tenant string
	token  string
}

// send sends "METHOD /path" with an optional body and header lines "name: value". The
// transport never repeats a request with a body.
func (c caller) send(line, body string, header ...string) result {
	return c.sendTo(c.load.url, line, body, header...)
}

// sendTo is like send, to the program at the URL.
func (c caller) sendTo(url, line, body string, header ...string) result {
	method, path, _ := strings.Cut(line, " ")
	var content io.Reader
	if body != "" {
		content = io.MultiReader(strings.NewReader(body)) // the transport cannot rewind this reader
	}
	r, err := http.NewRequestWithContext(context.Background(), method, url+path, content)
	if err != nil {
		panic(err) // the requests of the tests are valid
	}
	r.Header.Set("X-Tenant-Schema", c.tenant)
	if c.token != "" {
		r.Header.Set("Cookie", "session="+c.token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(len(body))
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return c.load.do(r)
}

// insist repeats a request until it gets a response with a status below 500. again reports whether
// an earlier attempt may have had an effect.
func (c caller) insist(line, body string, header ...string) (of result, again bool) {
	for of = c.send(line, body, header...); !of.known || of.status == 0; of = c.send(line, body, header...) {
		again = again || !of.known
		c.load.pause()
	}
	return of, again
}

// do sends the request and counts its outcome.
func (l *load) do(r *http.Request) (of result) {
	l.tried.Add(1)
	of.start = clock()
	defer func() {
		of.end = clock()
		switch {
		case !of.known:
			l.unknown.Add(1)
		case of.status == 0 || of.status >= 400:
			l.refused.Add(1)
		default:
			l.acknowledged.Add(1)
		}
	}()
	var sent atomic.Bool // true if any attempt was sent, because the transport repeats a GET by itself
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	response, err := l.client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		of.known = !sent.Load()
		return of
	}
	defer response.Body.Close()
	of.body, err = io.ReadAll(response.Body)
	if err != nil {
		return of
	}
	of.status, of.header, of.known = response.StatusCode, response.Header, response.StatusCode < 500
	if of.status == http.StatusInternalServerError {
		l.t.Errorf("%s %s answered 500: %s", r.Method, r.URL.Path, of.body)
	}
	return of
}

// decode reads the body into v.
func (of result) decode(v any) {
	if err := json.Unmarshal(of.body, v); err != nil {
		panic(fmt.Sprintf("%d %s: %v", of.status, of.body, err)) // do returns no truncated body
	}
}

// code returns the error code in the body of the response.
func (of result) code() string {
	var problem struct{ Code string }
	of.decode(&problem)
	return problem.Code
}

// session returns the value of the session cookie in the response, or "".
func (of result) session() string {
	for _, cookie := range (&http.Response{Header: of.header}).Cookies() {
		if cookie.Name == "session" {
			return cookie.Value
		}
	}
	return ""
}
