package mail

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestMailOverHTTP(t *testing.T) {
	key := secret.NewWebhookSecret()
	var bodies []map[string]any
	var ids []string
	status := http.StatusNoContent
	endpoint := outboundtest.Endpoint(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := outboundtest.VerifyDelivery(key, r.Header, body); err != nil {
			t.Error(err)
		}
		for i := range body {
			flipped := slices.Clone(body)
			flipped[i] ^= 1
			if outboundtest.VerifyDelivery(key, r.Header, flipped) == nil {
				t.Errorf("the flipped byte %d is accepted", i)
			}
		}
		var document map[string]any
		if err := json.Unmarshal(body, &document); err != nil {
			t.Error(err)
		}
		bodies, ids = append(bodies, document), append(ids, r.Header.Get("Webhook-Id"))
		w.WriteHeader(status)
	})
	requests := outbound.New(outbound.Options{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: outboundtest.Roots(endpoint),
		Resolver: outboundtest.Resolver(t, map[string][]string{"": {"127.0.0.1"}}),
	})
	links := rolecall.MailLinks{rolecall.MailPasswordReset: "https://{tenant}.example.com/password#{token}"}
	mailer, err := NewWebhook("https://example.com:"+outboundtest.Port(endpoint)+"/mail", key, links, requests)
	if err != nil {
		t.Fatal(err)
	}
	tenant := rolecall.Tenant{ID: rolecall.NewID[rolecall.Tenant](1), Name: "acme", DisplayName: "Acme"}
	m := rolecall.Mail{ID: rolecall.NewID[rolecall.Mail](1), Kind: rolecall.MailPasswordReset, To: "hedy@example.com", Name: "Hedy Lamarr", Token: "token", ExpiresAt: 2}
	for range 2 { // an attempt that is repeated has the same id
		if err := mailer.Send(t.Context(), tenant, m); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := bodies[0]["data"].(map[string]any)
	inTenant, _ := data["tenant"].(map[string]any)
	if bodies[0]["type"] != "mail.password_reset" || data["to"] != m.To || data["name"] != m.Name || data["token"] != "token" ||
		data["link"] != "https://acme.example.com/password#token" || inTenant["displayName"] != "Acme" || data["locale"] != nil {
		t.Errorf("the body is %v", bodies[0])
	}
	if len(ids) != 2 || ids[0] != m.ID.String() || ids[1] != ids[0] {
		t.Errorf("the ids are %q", ids)
	}
	notice := rolecall.Mail{ID: rolecall.NewID[rolecall.Mail](1), Kind: rolecall.MailNewBrowser, To: "hedy@example.com", Client: "Firefox on Linux"}
	if err := mailer.Send(t.Context(), tenant, notice); err != nil {
		t.Fatal(err)
	}
	data, _ = bodies[2]["data"].(map[string]any)
	if _, has := data["link"]; has || data["client"] != "Firefox on Linux" {
		t.Errorf("the notice is %v", bodies[2])
	}
	for answered, want := range map[int]string{http.StatusInternalServerError: "500", http.StatusFound: "302", http.StatusGone: rolecall.ErrNoMailbox.Error()} {
		status = answered
		if err := mailer.Send(t.Context(), tenant, m); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, rolecall.ErrNoMailbox) != (answered == http.StatusGone) || strings.Contains(err.Error(), "token") {
			t.Errorf("%s: %v", strconv.Itoa(answered), err)
		}
	}
	endpoint.Close()
	if err := mailer.Send(t.Context(), tenant, m); err == nil || strings.Contains(err.Error(), "token") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "secret", "whsec_", "whsec_%%", "whsec_" + strings.Repeat("A", 28)} {
		if _, err := NewWebhook("https://example.com", bad, links, requests); err == nil {
			t.Errorf("the secret %q is accepted", bad)
		}
	}
}
