package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The example of the official Go library of Standard Webhooks (libraries/go/webhook_test.go).
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime      = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

// delivery returns the header of the example, with the changes: name and value in turn.
func delivery(changes ...string) http.Header {
	header := http.Header{}
	header.Set("webhook-id", vectorID)
	header.Set("webhook-timestamp", fmt.Sprint(vectorTime))
	header.Set("webhook-signature", vectorSignature)
	for i := 0; i < len(changes); i += 2 {
		header.Set(changes[i], changes[i+1])
	}
	return header
}

// verifierAt returns a verifier for the secrets, whose clock is shifted from the time of the example.
func verifierAt(t *testing.T, shift time.Duration, secrets ...string) *WebhookVerifier {
	t.Helper()
	v, err := NewWebhookVerifier(secrets[0], secrets[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	v.now = func() time.Time { return time.Unix(vectorTime, 0).Add(shift) }
	return v
}

func TestVerifyAgreesWithTheOfficialLibrary(t *testing.T) {
	const other, five = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", 5 * time.Minute
	for name, test := range map[string]struct {
		shift   time.Duration
		secrets []string
		header  http.Header
		body    string
		valid   bool
	}{
		"the example":                  {0, []string{vectorSecret}, delivery(), vectorBody, true},
		"a secret without its prefix":  {0, []string{strings.TrimPrefix(vectorSecret, "whsec_")}, delivery(), vectorBody, true},
		"several signatures":           {0, []string{vectorSecret}, delivery("webhook-signature", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= "+vectorSignature+" v1a,xyz"), vectorBody, true},
		"two secrets":                  {0, []string{other, vectorSecret}, delivery(), vectorBody, true},
		"five minutes old":             {five, []string{vectorSecret}, delivery(), vectorBody, true},
		"five minutes early":           {-five, []string{vectorSecret}, delivery(), vectorBody, true},
		"older":                        {five + 1, []string{vectorSecret}, delivery(), vectorBody, false},
		"earlier":                      {-five - 1, []string{vectorSecret}, delivery(), vectorBody, false},
		"another secret":               {0, []string{other}, delivery(), vectorBody, false},
		"another id":                   {0, []string{vectorSecret}, delivery("webhook-id", vectorID+"x"), vectorBody, false},
		"another time":                 {0, []string{vectorSecret}, delivery("webhook-timestamp", fmt.Sprint(vectorTime+1)), vectorBody, false},
		"another body":                 {0, []string{vectorSecret}, delivery(), vectorBody + " ", false},
		"another signature":            {0, []string{vectorSecret}, delivery("webhook-signature", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="), vectorBody, false},
		"another version":              {0, []string{vectorSecret}, delivery("webhook-signature", strings.Replace(vectorSignature, "v1", "v2", 1)), vectorBody, false},
		"a part of the signature":      {0, []string{vectorSecret}, delivery("webhook-signature", vectorSignature[:20]), vectorBody, false},
		"an empty signature":           {0, []string{vectorSecret}, delivery("webhook-signature", "v1,"), vectorBody, false},
		"no signature":                 {0, []string{vectorSecret}, delivery("webhook-signature", ""), vectorBody, false},
		"no id":                        {0, []string{vectorSecret}, delivery("webhook-id", ""), vectorBody, false},
		"no time":                      {0, []string{vectorSecret}, delivery("webhook-timestamp", ""), vectorBody, false},
		"a time that is not a number":  {0, []string{vectorSecret}, delivery("webhook-timestamp", "now"), vectorBody, false},
		"a time beyond all others":     {0, []string{vectorSecret}, delivery("webhook-timestamp", "9223372036854775807"), vectorBody, false},
		"a time before all others":     {0, []string{vectorSecret}, delivery("webhook-timestamp", "-9223372036854775808"), vectorBody, false},
		"the time in another spelling": {0, []string{vectorSecret}, delivery("webhook-timestamp", fmt.Sprint("+", vectorTime)), vectorBody, false},
	} {
		if err := verifierAt(t, test.shift, test.secrets...).Verify(test.header, []byte(test.body)); (err == nil) != test.valid || err != nil && !errors.Is(err, ErrDeliveryInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEachFlippedBitOfADeliveryIsRejected(t *testing.T) {
	v := verifierAt(t, 0, vectorSecret)
	flip := func(text string, i int) string {
		bytes := []byte(text)
		bytes[i/8] ^= 1 << (i % 8)
		return string(bytes)
	}
	reject := func(what string, i int, header http.Header, body string) {
		t.Helper()
		if err := v.Verify(header, []byte(body)); !errors.Is(err, ErrDeliveryInvalid) {
			t.Errorf("with bit %d of the %s flipped: %v", i, what, err)
		}
	}
	for i := range 8 * len(vectorBody) {
		reject("body", i, delivery(), flip(vectorBody, i))
	}
	for i := range 8 * len(vectorID) {
		reject("id", i, delivery("webhook-id", flip(vectorID, i)), vectorBody)
	}
	for i := range 8 * len(vectorSignature) {
		reject("signature", i, delivery("webhook-signature", flip(vectorSignature, i)), vectorBody)
	}
	for i := range 8 * len(fmt.Sprint(vectorTime)) {
		reject("time", i, delivery("webhook-timestamp", flip(fmt.Sprint(vectorTime), i)), vectorBody)
	}
}

func TestSecretsOfWebhooksAreChecked(t *testing.T) {
	for _, text := range []string{"", "whsec_", "whsec_?", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"} {
		if _, err := NewWebhookVerifier(vectorSecret, text); err == nil || text != "" && text != "whsec_" && strings.Contains(err.Error(), strings.TrimPrefix(text, "whsec_")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func ExampleWebhookVerifier() {
	verifier, err := NewWebhookVerifier("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	handle := func(header http.Header, body []byte) (status int) {
		if err := verifier.Verify(header, body); err != nil {
			return http.StatusUnauthorized
		}
		return http.StatusNoContent
	}

	// The sender signs the delivery.
	key, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	id, timestamp, body := "msg_1", fmt.Sprint(time.Now().Unix()), []byte(`{"type":"user.updated"}`)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	header := http.Header{}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", timestamp)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))

	fmt.Println(handle(header, body), handle(header, []byte(`{"type":"user.deleted"}`)))
	// Output: 204 401
}
