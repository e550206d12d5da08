package console

import (
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func TestTheCheckpointIsShownAndDownloaded(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	page := f.get("/console/acme/events/checkpoint", cookie)
	checkpoint, err := f.node.Directory.Checkpoint(t.Context(), f.asOwner(), "")
	if err != nil {
		t.Fatal(err)
	}
	if page.StatusCode != 200 || !strings.Contains(page.body, "rolecall events verify --tenant acme --checkpoint acme-") || !strings.Contains(page.body, "acme") {
		t.Errorf("%d %s", page.StatusCode, page.body)
	}
	file := f.get("/console/acme/events/checkpoint/download", cookie)
	if got := file.Header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="acme-`) {
		t.Errorf("the file is sent as %q", got)
	}
	verifier, err := note.NewVerifier(checkpoint.VerifierKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open([]byte(file.body), note.VerifierList(verifier)); err != nil {
		t.Errorf("%v: %s", err, file.body)
	}
	f.hire("eve@example.com", "Eve Adams", []string{"users:read"})
	if refused := f.get("/console/acme/events/checkpoint", f.signIn("acme", "eve@example.com")); refused.StatusCode != 403 {
		t.Errorf("%d", refused.StatusCode)
	}
}
