package wire

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// WholeNumber returns the value of a JSON number if it is an integer. The spelling does not matter:
// 10, 10.0 and 1e1 are equal. For an integer outside of int64, it returns the nearest int64. The
// work depends on the length of the text, and not on the exponent.
func WholeNumber(text string) (n int64, ok bool) {
	if jsontext.Value(text).Kind() != jsontext.KindNumber {
		return 0, false
	}
	const huge = 1 << 32 // larger than the number of digits of any text
	digits, isNegative := strings.CutPrefix(text, "-")
	digits, exponent, hasExponent := strings.Cut(strings.ToLower(digits), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	significant := strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) - len(significant) // number of zeros after the significant digits
	if hasExponent {
		power, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		zeros += int(min(max(power, -huge), huge))
	}
	significant = strings.TrimLeft(significant, "0")
	switch {
	case significant == "":
		return 0, true
	case zeros < 0:
		return 0, false
	}
	const most = 19 // maximum number of digits of an int64
	if isNegative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", min(zeros, most)), 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}
