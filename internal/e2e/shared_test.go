package e2e

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// lifetime is the testing.TB of things that live as long as the test process, such as a shared
// program. Its methods record a failure instead of failing a test, because the failure can come
// after the end of the test that uses these things first.
type lifetime struct {
	testing.TB // nil, because the shared programs do not call its methods

	mu       sync.Mutex
	failures []string
	skipped  string // why nothing lives
	cleanups []func()
}

// Helper does nothing.
func (l *lifetime) Helper() {}

// Context returns a context that does not end.
func (l *lifetime) Context() context.Context { return context.Background() }

// Cleanup calls the function at the end of the test process.
func (l *lifetime) Cleanup(end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, end)
}

// TempDir returns a new folder that is removed at the end.
func (l *lifetime) TempDir() string {
	folder, err := os.MkdirTemp("", "rolecall-e2e")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			l.Error(err)
		}
	})
	return folder
}

// Error records a failure.
func (l *lifetime) Error(values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
}

// Errorf records a failure.
func (l *lifetime) Errorf(format string, values ...any) { l.Error(fmt.Sprintf(format, values...)) }

// Fatal records a failure and ends the goroutine.
func (l *lifetime) Fatal(values ...any) {
	l.Error(values...)
	runtime.Goexit()
}

// Fatalf records a failure and ends the goroutine.
func (l *lifetime) Fatalf(format string, values ...any) { l.Fatal(fmt.Sprintf(format, values...)) }

// Skip records why nothing lives, and ends the goroutine.
func (l *lifetime) Skip(values ...any) {
	l.skipped = fmt.Sprint(values...)
	runtime.Goexit()
}

// Skipf records why nothing lives, and ends the goroutine.
func (l *lifetime) Skipf(format string, values ...any) { l.Skip(fmt.Sprintf(format, values...)) }

// do calls the function and waits for its end. The function can end its goroutine.
func (l *lifetime) do(function func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		function()
	}()
	<-done
}

// end calls the functions of Cleanup, the newest first, and returns the failures.
func (l *lifetime) end() []string {
	for len(l.cleanups) > 0 {
		last := l.cleanups[len(l.cleanups)-1]
		l.cleanups = l.cleanups[:len(l.cleanups)-1]
		l.do(last)
	}
	return l.failures
}

// shared is the program of one store that all suites share. It starts when the first suite needs
// it, and stops at the end of the test process.
type shared struct {
	life    lifetime
	start   sync.Once
	program *program
}

// programs has the shared program of each store, by the name of the store.
var programs = func() map[string]*shared {
	all := map[string]*shared{}
	for _, store := range stores {
		all[store.name] = &shared{}
	}
	return all
}()

// sharedProgram returns the shared program of the store.
func (s store) sharedProgram(t *testing.T) *program {
	t.Helper()
	of := programs[s.name]
	of.start.Do(func() {
		of.life.do(func() {
			p := serve(&of.life, build(&of.life), s.database(&of.life), "--oidc-return-urls", returnURLs)
			p.operator = p.operatorKey(&of.life)
			of.program = p
		})
	})
	if of.life.skipped != "" {
		t.Skip(of.life.skipped)
	}
	if of.program == nil {
		t.Fatalf("the shared program did not start: %s", strings.Join(of.life.failures, "\n"))
	}
	return of.program
}

// endPrograms stops the shared programs and checks their logs. It returns the failures.
func endPrograms() (failures []string) {
	for _, store := range stores {
		for _, failure := range programs[store.name].life.end() {
			failures = append(failures, "the shared program on "+store.name+": "+failure)
		}
	}
	return failures
}
