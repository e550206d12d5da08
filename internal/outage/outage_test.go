package outage_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outage"
)

func TestAnOutageHasOneWarningAndOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written strings.Builder
		log := outage.New(slog.New(slog.NewTextHandler(&written, nil)))
		down := rolecall.ErrUnavailable.Because(errors.New("connection refused"))
		for range 2 {
			written.Reset()
			for range 100 {
				log.Report(t.Context(), "cannot read jobs", down)
				log.Report(t.Context(), "cannot read mail", down)
				log.Warn(t.Context(), "cannot delete", down)
				time.Sleep(time.Second)
			}
			if got := written.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"cannot read jobs" error="connection refused"`) {
				t.Errorf("during the outage: %s", got)
			}
			log.Report(t.Context(), "cannot read jobs", nil)
			if got := written.String(); strings.Contains(got, "works again") {
				t.Errorf("while a task fails: %s", got)
			}
			log.Report(t.Context(), "cannot read mail", nil)
			log.Report(t.Context(), "cannot read mail", nil)
			if got := written.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"the database works again" after=1m40s`) {
				t.Errorf("after the outage: %s", got)
			}
		}
	})
}

func TestOtherErrorsAreLoggedAlways(t *testing.T) {
	var written strings.Builder
	log := outage.New(slog.New(slog.NewTextHandler(&written, nil)))
	for range 2 {
		log.Report(t.Context(), "cannot read jobs", rolecall.ErrUnavailable)
		log.Report(t.Context(), "cannot read mail", errors.New("broken"), "mail", 7)
		log.Warn(t.Context(), "cannot delete", errors.New("broken"))
	}
	if got := strings.Count(written.String(), "broken"); got != 4 {
		t.Errorf("%d errors were logged, want 4:\n%s", got, written.String())
	}
}
