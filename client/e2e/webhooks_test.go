package e2e

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/rolecall/rolecall/client"
	"github.com/rolecall/rolecall/internal/secret"
)

// The service signs with the old and the new secret for a while after a rotation.
func TestVerifyAcceptsWhatTheServiceSigns(t *testing.T) {
	old, next, other, body := secret.NewWebhookSecret(), secret.NewWebhookSecret(), secret.NewWebhookSecret(), []byte(`{"type":"user.updated"}`)
	header, err := secret.WebhookHeader([]string{next, old}, "01a1fd5a-4473-7000-81f7-7c423c118618", time.Now().Unix(), "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(key string, header http.Header) error {
		t.Helper()
		verifier, err := client.NewWebhookVerifier(key)
		if err != nil {
			t.Fatal(err)
		}
		return verifier.Verify(header, body)
	}
	for _, known := range []string{old, next} {
		if err := verify(known, header); err != nil {
			t.Error(err)
		}
	}
	if err := verify(other, header); !errors.Is(err, client.ErrDeliveryInvalid) {
		t.Errorf("with another secret: %v", err)
	}
}
