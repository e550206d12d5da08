package rolecall_test

import (
	"encoding/json"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

func TestMetadataIsOneObjectInOneForm(t *testing.T) {
	for want, pairs := range map[string]map[string]string{
		`{}`:                            nil,
		`{"a":"1","b":"2"}`:             {"b": "2", "a": "1"},
		`{"quote\"\\":"línea <☃> & '"}`: {`quote"\`: "línea <☃> & '"},
		`{"":"","\u0000":"\t"}`:         {"": "", "\x00": "\t"},
	} {
		if got := rolecall.NewMetadata(pairs).String(); got != want {
			t.Errorf("%v became %s, want %s", pairs, got, want)
		}
	}
}

func TestMetadataKeepsEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "pairs")
		m := rolecall.NewMetadata(pairs)
		value, err := m.Value()
		if err != nil {
			t.Fatal(err)
		}
		var stored, read rolecall.Metadata
		if err := stored.Scan(value); err != nil || stored != m {
			t.Fatalf("%s was stored, %s came back: %v", m, stored, err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &read); err != nil || read != m {
			t.Fatalf("%s was written, %s read: %v", m, read, err)
		}
		if got, err := m.Pairs(); err != nil || !maps.Equal(got, pairs) {
			t.Fatalf("%v became %v: %v", pairs, got, err)
		}
	})
}

func TestWhatIsNoMetadataIsRefused(t *testing.T) {
	var m rolecall.Metadata
	if err := m.Scan([]byte("{}")); err == nil {
		t.Error("bytes were taken")
	}
	if err := m.Scan("[]"); err != nil {
		t.Fatal(err)
	}
	if pairs, err := m.Pairs(); err == nil {
		t.Errorf("a list became %v", pairs)
	}
	if err := json.Unmarshal([]byte(`{"a":1}`), &m); err == nil {
		t.Errorf("a number became %s", m)
	}
}
