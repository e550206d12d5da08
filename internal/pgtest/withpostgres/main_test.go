package main

import (
	"errors"
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
)

func TestTheCommandGetsAServerAndItsExitCodeIsOurs(t *testing.T) {
	for _, given := range []string{"postgres://given@/db", ""} {
		t.Setenv(pgtest.Variable, given)
		if given == "" {
			server, err := pgtest.Start()
			if errors.Is(err, pgtest.ErrNotInstalled) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		code, err := run([]string{"sh", "-c", `test -n "$` + pgtest.Variable + `" && exit 3`})
		if code != 3 || err != nil {
			t.Errorf("with %q: got code %d and error %v, want the command's 3", given, code, err)
		}
	}
	t.Setenv(pgtest.Variable, "postgres://given@/db")
	if code, err := run([]string{"/no/such/command"}); code != 1 || err == nil {
		t.Errorf("got code %d and error %v, want 1 and why", code, err)
	}
}
