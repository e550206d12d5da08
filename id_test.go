package rolecall_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

const aMoment = rolecall.Time(1_790_000_000_123_456)

func TestNewIDIsUUIDv7(t *testing.T) {
	id := rolecall.NewID[rolecall.User](rolecall.TimeOf(time.Now()))
	text := id.String()
	if text[14] != '7' {
		t.Errorf("version of %s is %c, want 7", text, text[14])
	}
	if !strings.ContainsRune("89ab", rune(text[19])) {
		t.Errorf("variant of %s is %c, want 8, 9, a or b", text, text[19])
	}
	if id.IsZero() {
		t.Error("a new id is zero")
	}
}

func TestIDCarriesItsMillisecond(t *testing.T) {
	// NewID changes a time that is not later than that of the last id. This time is later
	// than those of all other ids of this process, so NewID does not change it.
	later := rolecall.TimeOf(time.Now().AddDate(200, 0, 0))
	id := rolecall.NewID[rolecall.User](later)
	if got, want := id.CreatedAt(), later/1000*1000; got != want {
		t.Errorf("CreatedAt() = %v, want %v", got, want)
	}
}

func TestIDsIncreaseWhenTheClockGoesBack(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"forward": time.Millisecond,
		"still":   0,
		"back":    -time.Second,
	} {
		now := aMoment
		last := rolecall.NewID[rolecall.User](now)
		for range 10_000 { // more than the 4,096 that fit into a millisecond
			now = now.Add(step)
			next := rolecall.NewID[rolecall.User](now)
			if bytes.Compare(last[:], next[:]) >= 0 {
				t.Fatalf("clock going %s: %s came before %s", name, last, next)
			}
			if next[6]>>4 != 7 || next[8]>>6 != 2 {
				t.Fatalf("clock going %s: %s is not a UUIDv7", name, next)
			}
			last = next
		}
	}
}

func TestIDsAreUniqueAcrossGoroutines(t *testing.T) {
	const makers, each = 8, 5_000
	made := make([][]rolecall.UserID, makers)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			for n := range each {
				made[i] = append(made[i], rolecall.NewID[rolecall.User](aMoment-rolecall.Time(n)))
			}
		})
	}
	wg.Wait()
	seen := map[[8]byte]bool{} // the first half of each id, without the random half
	for _, ids := range made {
		for _, id := range ids {
			seen[[8]byte(id[:8])] = true
		}
	}
	if len(seen) != makers*each {
		t.Errorf("%d distinct of %d", len(seen), makers*each)
	}
}

func TestParseID(t *testing.T) {
	const canonical = "01890a5d-ac96-774b-bcce-b302099a8057"
	for _, text := range []string{canonical, strings.ToUpper(canonical), "6ba7b810-9dad-11d1-80b4-00c04fd430c8"} {
		id, err := rolecall.ParseID[rolecall.User](text)
		if err != nil || id.String() != strings.ToLower(text) {
			t.Errorf("ParseID(%q) = %s, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", " " + canonical, canonical + " ", canonical[:35], "{" + canonical + "}", "urn:uuid:" + canonical,
		strings.ReplaceAll(canonical, "-", ""), strings.Replace(canonical, "a", "g", 1), strings.ReplaceAll(canonical, "-", "_"),
		"01890a5dac-96-774b-bcce-b302099a8057",
	} {
		if id, err := rolecall.ParseID[rolecall.User](text); err == nil || !id.IsZero() {
			t.Errorf("ParseID(%q) = %s, %v, want an error and the zero id", text, id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("01890a5d-ac96-774b-bcce-b302099a8057")
	f.Add("00000000-0000-0000-0000-00000000000G")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := rolecall.ParseID[rolecall.User](text)
		if err == nil && id.String() != strings.ToLower(text) {
			t.Errorf("ParseID(%q) = %s", text, id)
		}
	})
}

func TestIDRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rolecall.UserID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		var parsed, scanned, scannedText rolecall.UserID
		text, err := id.MarshalText()
		if err != nil || parsed.UnmarshalText(text) != nil || parsed != id {
			t.Errorf("text %q gives %s", text, parsed)
		}
		value, err := id.Value()
		if err != nil || scanned.Scan(value) != nil || scanned != id {
			t.Errorf("value %v gives %s", value, scanned)
		}
		if err := scannedText.Scan(id.String()); err != nil || scannedText != id {
			t.Errorf("text of the store gives %s, %v", scannedText, err)
		}
	})
}

func TestIDStoresZeroAsNull(t *testing.T) {
	if value, err := (rolecall.UserID{}).Value(); value != nil || err != nil {
		t.Errorf("Value() = %v, %v", value, err)
	}
	id := rolecall.NewID[rolecall.User](aMoment)
	if err := id.Scan(nil); err != nil || !id.IsZero() {
		t.Errorf("Scan(nil) = %v, leaves %s", err, id)
	}
	for _, foreign := range []any{[]byte("short"), int64(7), "nonsense"} {
		if err := id.Scan(foreign); err == nil {
			t.Errorf("Scan(%v) has no error", foreign)
		}
	}
}

func TestTimeText(t *testing.T) {
	if got, want := aMoment.String(), "2026-09-21T14:13:20.123456Z"; got != want {
		t.Errorf("String() = %s, want %s", got, want)
	}
	for text, want := range map[string]rolecall.Time{
		"2026-09-21T14:13:20.123456Z":      aMoment,
		"2026-09-21T16:13:20.123456+02:00": aMoment,
		"2026-09-21T14:13:20.1234569Z":     aMoment, // cut, not rounded
		"1970-01-01T00:00:00Z":             0,
	} {
		var got rolecall.Time
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s is read as %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "2026-09-21", "2026-09-21 14:13:20Z", "2026-09-21T14:13:20", "2026-13-21T14:13:20Z",
		"2026-09-21T4:13:20Z", "2026-09-21T14:13:20,5Z", "2026-09-21T14:13:20+25:00",
		"0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", // of the years -1 and 10000 in UTC
	} {
		got := aMoment
		if err := got.UnmarshalText([]byte(text)); err == nil || got != aMoment {
			t.Errorf("%q is read as %v, %v, want an error", text, got, err)
		}
	}
}

func TestTimeRoundTrips(t *testing.T) {
	const year9999 = 253_402_300_799_999_999
	rapid.Check(t, func(t *rapid.T) {
		moment := rolecall.Time(rapid.Int64Range(0, year9999).Draw(t, "moment"))
		var read rolecall.Time
		if err := read.UnmarshalText(moment.Append(nil)); err != nil || read != moment {
			t.Errorf("%s is read as %v, %v", moment, read, err)
		}
		if moment.Add(time.Minute).Sub(moment) != time.Minute {
			t.Errorf("%s plus a minute is %s", moment, moment.Add(time.Minute))
		}
	})
}

func TestNeverRoundTrips(t *testing.T) {
	if got := rolecall.Never.Add(time.Hour); got != rolecall.Never {
		t.Errorf("Never plus an hour is %d", got)
	}
}

func TestFirstIDSeparatesIDsByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rolecall.Time(rapid.Int64Range(0, 1<<48-1).Draw(t, "milliseconds")) * 1000
		first := rolecall.FirstID[rolecall.User](at + rolecall.Time(rapid.IntRange(0, 999).Draw(t, "and microseconds")))
		if first.CreatedAt() != at || first != rolecall.FirstID[rolecall.User](at) {
			t.Errorf("FirstID(%v) = %v, of %v", at, first, first.CreatedAt())
		}
		earlier := rolecall.FirstID[rolecall.User](at - 1000)
		for i := 6; i < len(earlier); i++ {
			earlier[i] = 0xff // the last id of the millisecond before
		}
		if at > 0 && bytes.Compare(earlier[:], first[:]) >= 0 {
			t.Errorf("%v is not before %v", earlier, first)
		}
	})
	if id := rolecall.NewID[rolecall.User](aMoment); bytes.Compare(id[:], firstOf(aMoment)) < 0 {
		t.Errorf("%v is before the first id of its moment", id)
	}
	for _, before1970 := range []rolecall.Time{-1, -1 << 62} {
		if got := rolecall.FirstID[rolecall.User](before1970); !got.IsZero() {
			t.Errorf("FirstID(%d) = %v", before1970, got)
		}
	}
}

func firstOf(at rolecall.Time) []byte {
	id := rolecall.FirstID[rolecall.User](at)
	return id[:]
}
