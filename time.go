package rolecall

import (
	"bytes"
	"errors"
	"time"
)

// Time is a time in UTC, in microseconds since 1970. Both databases store times with this
// resolution. The text form is RFC 3339 with six decimals.
type Time int64

// Never is later than every other Time. It is the expiry of objects that do not expire.
const Never Time = 1<<63 - 1

// TimeOf returns t truncated to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std returns the time as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Add returns t plus d. Never plus d is Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	return t + Time(d.Microseconds())
}

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// String returns the time in the form of RFC 3339 with six decimals.
func (t Time) String() string { return string(t.Append(nil)) }

// Append appends the time to b, in the form of RFC 3339 with six decimals. It does not use
// time.Format, which is slower: a page can have hundreds of times.
func (t Time) Append(b []byte) []byte {
	std := t.Std()
	year, month, day := std.Date()
	if year < 0 || year > 9999 {
		return std.AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	}
	hour, minute, second := std.Clock()
	micro := std.Nanosecond() / 1000
	text := [...]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 26: 'Z'}
	putTwo(text[0:2], year/100)
	putTwo(text[2:4], year%100)
	putTwo(text[5:7], int(month))
	putTwo(text[8:10], day)
	putTwo(text[11:13], hour)
	putTwo(text[14:16], minute)
	putTwo(text[17:19], second)
	putTwo(text[20:22], micro/10_000)
	putTwo(text[22:24], micro/100%100)
	putTwo(text[24:26], micro%100)
	return append(b, text[:]...)
}

// putTwo writes n as two decimal digits into text.
func putTwo(text []byte, n int) {
	text[0], text[1] = '0'+byte(n/10), '0'+byte(n%10)
}

// MarshalText returns the time in the form of RFC 3339 (encoding.TextMarshaler).
func (t Time) MarshalText() ([]byte, error) { return t.Append(nil), nil }

// UnmarshalText sets the time from its form of RFC 3339, with any time zone offset
// (encoding.TextUnmarshaler). It returns an error if the year in UTC is not from 0 to 9999.
func (t *Time) UnmarshalText(text []byte) error {
	// RFC 3339 requires two digits for the hour and a decimal point. time.Parse also
	// accepts one digit and a comma.
	parsed, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil || text[len("2006-01-02T15")] != ':' || bytes.IndexByte(text, ',') >= 0 {
		return errors.New("not a moment of RFC 3339")
	}
	if year := parsed.UTC().Year(); year < 0 || year > 9999 {
		return errors.New("not a moment of RFC 3339 in UTC")
	}
	*t = TimeOf(parsed)
	return nil
}
