package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

const (
	webhookPrefix = "whsec_"
	webhookBytes  = 32
	webhookLeast  = 24 // the shortest key that Standard Webhooks allows
)

// NewWebhookSecret returns a secret that signs the deliveries of a webhook, in the form of the
// specification Standard Webhooks.
func NewWebhookSecret() string {
	key := make([]byte, webhookBytes)
	_, _ = rand.Read(key) // never fails: it ends the process instead
	return webhookPrefix + base64.StdEncoding.EncodeToString(key)
}

// SignWebhook returns the signature of a delivery as Standard Webhooks defines it. The argument at is
// the time of the attempt in seconds since 1970. SignWebhook returns an error unless the secret is
// whsec_ and at least 24 bytes in base64.
func SignWebhook(secret, id string, at int64, body []byte) (string, error) {
	encoded, ok := strings.CutPrefix(secret, webhookPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !ok || len(key) < webhookLeast {
		return "", errors.New("not a secret of a webhook")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at, 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// WebhookHeader returns the headers of a delivery, with a signature for each secret. It returns the
// errors of SignWebhook.
func WebhookHeader(secrets []string, id string, at int64, mediaType string, body []byte) (http.Header, error) {
	var signatures []string
	for _, s := range secrets {
		signature, err := SignWebhook(s, id, at, body)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, signature)
	}
	return http.Header{
		"Content-Type": {mediaType}, "User-Agent": {"Rolecall"}, "Webhook-Id": {id},
		"Webhook-Timestamp": {strconv.FormatInt(at, 10)}, "Webhook-Signature": {strings.Join(signatures, " ")},
	}, nil
}
