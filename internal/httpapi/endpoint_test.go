package httpapi

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
)

// TestInputsAreTheDocumentedParameters compares what each operation reads with what the
// document says that it reads.
func TestInputsAreTheDocumentedParameters(t *testing.T) {
	for _, op := range everyOperation {
		documented, read := map[string]bool{}, map[string]bool{}
		for _, p := range op.parameters {
			documented[string(p.in)+" "+p.name] = p.required && p != requiredIfMatch
		}
		for _, p := range op.endpoint.inputs() {
			read[string(p.in)+" "+p.name] = p.required
		}
		if !maps.Equal(documented, read) {
			t.Errorf("%s: documented %v, read %v", op.id, documented, read)
		}
	}
}

// TestAKeyIsBoundToThePath sends the same key and body for two service accounts.
func TestAKeyIsBoundToThePath(t *testing.T) {
	i := slices.IndexFunc(operations, func(op *operation) bool { return op.id == "ServiceAccountsController_createServiceAccountToken" })
	fingerprint := func(path string) string {
		x := &exchange{
			route:   &route{operation: operations[i]},
			request: httptest.NewRequest(http.MethodPost, path, nil), body: []byte(`{"name":"x"}`),
		}
		return string(x.fingerprint())
	}
	one := fingerprint("/service-accounts/01890a5d-ac96-774b-bcce-b302099a8057/tokens")
	if one == fingerprint("/service-accounts/01890a5d-ac96-774b-bcce-b302099a8058/tokens") {
		t.Error("a key counts for another service account")
	}
	if one != fingerprint("/service-accounts/01890A5D-AC96-774B-BCCE-B302099A8057/tokens") {
		t.Error("the case of a UUID matters")
	}
}

// decodeBody decodes the body of the exchange into the input of a typed operation.
func decodeBody[In any](x *exchange) (in In, err error) {
	f, _ := reflect.TypeFor[In]().FieldByName("Body")
	return in, bodyDecoder[In](f)(x, &in)
}

// userDraft decodes the body of the exchange as the draft of a user.
func (x *exchange) userDraft() (rolecall.UserDraft, error) {
	in, err := decodeBody[createUserRequest](x)
	return in.Body, err
}

// userPatch decodes the body of the exchange as the patch of a user.
func (x *exchange) userPatch() (rolecall.UserPatch, error) {
	in, err := decodeBody[updateUserRequest](x)
	return in.Body.UserPatch, err
}
