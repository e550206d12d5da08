// Command webhooks verifies deliveries of webhooks with the official Go library of Standard Webhooks. It
// reads one delivery per line. It fails if one is not valid, or is valid after a byte was changed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type delivery struct{ Secret, ID, Timestamp, Signature, Body string }

func (d *delivery) verify() error {
	w, err := standardwebhooks.NewWebhook(d.Secret)
	if err != nil {
		return err
	}
	header := http.Header{}
	header.Set("webhook-id", d.ID)
	header.Set("webhook-timestamp", d.Timestamp)
	header.Set("webhook-signature", d.Signature)
	return w.Verify([]byte(d.Body), header)
}

func run(in io.Reader) (refused int, err error) {
	for decoder := json.NewDecoder(in); ; {
		var d delivery
		switch err := decoder.Decode(&d); {
		case errors.Is(err, io.EOF):
			return refused, nil
		case err != nil:
			return refused, err
		}
		if err := d.verify(); err != nil {
			return refused, fmt.Errorf("a delivery is refused: %w", err)
		}
		for _, of := range []func(*delivery) *string{func(d *delivery) *string { return &d.ID }, func(d *delivery) *string { return &d.Timestamp }, func(d *delivery) *string { return &d.Body }} {
			for i := range len(*of(&d)) {
				changed := d
				text := []byte(*of(&changed))
				text[i] ^= 1
				*of(&changed) = string(text)
				if changed.verify() == nil {
					return refused, errors.New("a changed delivery is accepted")
				}
				refused++
			}
		}
	}
}

func main() {
	refused, err := run(os.Stdin)
	if err == nil && refused == 0 {
		err = errors.New("no delivery was read")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("Go:", refused, "changed deliveries refused")
}
