package outboundtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deliveryAge is the greatest difference between the time of a delivery and the clock of its receiver.
const deliveryAge = 5 * time.Minute

// VerifyDelivery verifies the signature of a delivery as receivers of Standard Webhooks do. The secret has the form
// whsec_ and base64. It returns an error unless one of the signatures belongs to the secret, the id, the time and the
// body, and the time is less than five minutes from now. It shares no code with the sender.
func VerifyDelivery(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return err
	}
	if age := time.Since(time.Unix(at, 0)); age.Abs() > deliveryAge {
		return fmt.Errorf("the delivery is %v old", age)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", header.Get("webhook-id"), at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !slices.Contains(strings.Fields(header.Get("webhook-signature")), want) {
		return errors.New("no signature belongs to the delivery")
	}
	return nil
}
