package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// deliveryTolerance is the maximum difference between the time of a delivery and the clock.
const deliveryTolerance = 5 * time.Minute

// ErrDeliveryInvalid is the error of Verify for a delivery that the webhook has not sent, or not at this
// time. Answer it with the status 401 or 400, and do not use its body.
var ErrDeliveryInvalid = errors.New("rolecall: the delivery of the webhook is not valid")

// WebhookVerifier verifies the deliveries of a webhook by its secret (Standard Webhooks 1.0). It is safe
// for concurrent use.
type WebhookVerifier struct {
	keys [][]byte
	now  func() time.Time
}

// NewWebhookVerifier returns a verifier for the secret of a webhook: whsec_ and base64. To accept an old
// and a new secret for a while, pass both.
func NewWebhookVerifier(secret string, others ...string) (*WebhookVerifier, error) {
	v := &WebhookVerifier{now: time.Now}
	for _, secret := range append([]string{secret}, others...) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, errors.New("rolecall: the secret of a webhook must be whsec_ and base64") // without the secret
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Verify checks that the webhook has sent a request with this header and body in the last five
// minutes. The body must be the bytes that were received, before they are decoded. Verify returns an
// error that wraps ErrDeliveryInvalid otherwise. A delivery can arrive more than once, and has the same
// webhook-id then.
func (v *WebhookVerifier) Verify(header http.Header, body []byte) error {
	id, timestamp, signatures := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if id == "" || timestamp == "" || signatures == "" {
		return fmt.Errorf("%w: it lacks webhook-id, webhook-timestamp or webhook-signature", ErrDeliveryInvalid)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: webhook-timestamp is not a number of seconds", ErrDeliveryInvalid)
	}
	if age := v.now().Sub(time.Unix(seconds, 0)); age > deliveryTolerance || age < -deliveryTolerance {
		return fmt.Errorf("%w: it was sent more than five minutes ago, or in the future", ErrDeliveryInvalid)
	}
	var valid bool
	for _, key := range v.keys {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + timestamp + ".")) // never fails
		_, _ = mac.Write(body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for signature := range strings.SplitSeq(signatures, " ") {
			valid = hmac.Equal([]byte(signature), want) || valid
		}
	}
	if !valid {
		return fmt.Errorf("%w: no signature matches", ErrDeliveryInvalid)
	}
	return nil
}
