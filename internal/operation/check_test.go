package operation

import (
	"net/http"
	"net/url"
	"testing"
)

// TestAKeyIsBoundToThePath sends the same idempotency key and body to the paths of two service
// accounts.
func TestAKeyIsBoundToThePath(t *testing.T) {
	op := &Operation{Method: http.MethodPost, Path: "/service-accounts/{id}/tokens"}
	fingerprint := func(path string) string {
		return string(fingerprint(op, &url.URL{Path: path}, []byte(`{"name":"x"}`)))
	}
	one := fingerprint("/service-accounts/01890a5d-ac96-774b-bcce-b302099a8057/tokens")
	if one == fingerprint("/service-accounts/01890a5d-ac96-774b-bcce-b302099a8058/tokens") {
		t.Error("a key counts for another service account")
	}
	if one != fingerprint("/service-accounts/01890A5D-AC96-774B-BCCE-B302099A8057/tokens") {
		t.Error("the case of a UUID matters")
	}
}
