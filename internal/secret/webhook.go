package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

const (
	webhookPrefix = "whsec_"
	webhookBytes  = 32
)

// NewWebhookSecret returns a secret that signs the deliveries of a webhook, in the form of the
// specification Standard Webhooks.
func NewWebhookSecret() string {
	key := make([]byte, webhookBytes)
	_, _ = rand.Read(key) // never fails: it ends the process instead
	return webhookPrefix + base64.StdEncoding.EncodeToString(key)
}

// SignWebhook returns the signature of a delivery as Standard Webhooks defines it. The argument at is
// the time of the attempt in seconds since 1970.
func SignWebhook(secret, id string, at int64, body []byte) (string, error) {
	encoded, ok := strings.CutPrefix(secret, webhookPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !ok {
		return "", errors.New("not a secret of a webhook")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at, 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
