package wire

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

// TestWholeNumbers compares the results of WholeNumber with exact arithmetic.
func TestWholeNumbers(t *testing.T) {
	texts := []string{"0", "-0", "7", "-7", "10.0", "1e1", "1E+1", "100e-1", "-2.50e1", "1.5", "15e-1", "0.1", "1e-1", "0e99999999999999999999", "0.000", "12.340e2", "12.345e2", "9223372036854775807", "9223372036854775807.0",
		"-9223372036854775808", "9223372036854775808", "1e18", "1e19", "-1e19", "123456789012345678901234567890", "0.00000000000000000001e20", "1e0005", "0.5e1", "10e-2", "1" + strings.Repeat("0", 60) + "e-60"}
	for _, text := range texts {
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			exact = new(big.Rat) // big.Rat does not support the long exponent of this zero
		}
		n, whole := WholeNumber(text)
		want := new(big.Int).Set(exact.Num())
		if least := big.NewInt(math.MinInt64); want.Cmp(least) < 0 {
			want = least
		} else if most := big.NewInt(math.MaxInt64); want.Cmp(most) > 0 {
			want = most
		}
		if whole != exact.IsInt() || whole && n != want.Int64() {
			t.Errorf("%s is read as %d, %v, and is %s", text, n, whole, exact)
		}
	}
	for text, want := range map[string]int64{"1e400000000": math.MaxInt64, "-1e99999999999999999999": math.MinInt64, "0e-99999999999999999999": 0} {
		if n, whole := WholeNumber(text); n != want || !whole {
			t.Errorf("%s is read as %d, %v", text, n, whole)
		}
	}
	for _, text := range []string{"", "x", "+1", " 1", "1 ", "1e", "e1", ".5", `"1"`, "1e-400000000", "-1e-99999999999999999999", "1.5e", "--1", "1_0", "0x10", "1e1.5", "1.2.3"} {
		if n, whole := WholeNumber(text); whole {
			t.Errorf("%q is read as %d", text, n)
		}
	}
	const huge = "1e400000000"
	if n := testing.AllocsPerRun(10, func() { WholeNumber(huge) }); n > 5 {
		t.Errorf("%s takes %v allocations", huge, n)
	}
}
