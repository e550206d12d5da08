package rolecall

import (
	"slices"
	"testing"
)

func TestFactorMethods(t *testing.T) {
	totp, keys := TOTP{Sealed: []byte("sealed")}, []Passkey{{}}
	for _, test := range []struct {
		factors Factors
		want    []FactorMethod
	}{
		{Factors{}, nil},
		{Factors{TOTP: TOTP{Pending: []byte("sealed")}}, nil},
		{Factors{RecoveryCodes: 10}, nil},
		{Factors{TOTP: totp}, []FactorMethod{FactorTOTP}},
		{Factors{Passkeys: keys}, []FactorMethod{FactorPasskey}},
		{Factors{TOTP: totp, Passkeys: keys, RecoveryCodes: 1}, []FactorMethod{FactorTOTP, FactorPasskey, FactorRecoveryCode}},
	} {
		if got := test.factors.Methods(); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.factors, got, test.want)
		}
	}
}
