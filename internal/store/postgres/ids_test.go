package postgres

import (
	"testing"

	"github.com/rolecall/rolecall"
)

func TestIDsTravelBinaryAndTheZeroIDIsNull(t *testing.T) {
	id := rolecall.NewID[rolecall.User](1)
	encoded, err := encodeBinary{}.Encode(id, nil)
	if err != nil || string(encoded) != string(id[:]) {
		t.Errorf("encoded %x, %v; want %x", encoded, err, id)
	}
	if text, err := (encodeText{}).Encode(id, nil); err != nil || string(text) != id.String() {
		t.Errorf("encoded text %s, %v; want %s", text, err, id)
	}
	if null, err := (encodeBinary{}).Encode(rolecall.UserID{}, nil); err != nil || null != nil {
		t.Errorf("encoded the zero id as %x, %v; want NULL", null, err)
	}
	var read rolecall.UserID
	if err := (scanBinary{}).Scan(id[:], &read); err != nil || read != id {
		t.Errorf("read %s, %v; want %s", read, err, id)
	}
	if err := (scanBinary{}).Scan(nil, &read); err != nil || !read.IsZero() {
		t.Errorf("read NULL as %s, %v; want the zero id", read, err)
	}
}
