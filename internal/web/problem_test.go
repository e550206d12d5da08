package web

import (
	"testing"

	"github.com/rolecall/rolecall"
)

func TestTitles(t *testing.T) {
	if got := TitleOf(rolecall.ErrEmailTaken.Code); got != "Email taken" {
		t.Error(got)
	}
}
