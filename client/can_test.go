package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/client"
)

// principal returns a caller with permissions in the whole tenant, and one for some departments.
func principal(t *testing.T, text string) *client.Principal {
	t.Helper()
	p := &client.Principal{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCoversRefusesMalformedPermissions(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, text := range []string{"", "*", "shop", "shop/", "shop/invoices", ":approve", "shop/:approve", "shop/invoices:", "a/b/c:d", "a:b:c", "a.b.c:d", "Shop/a:b", "shop/a:b ", " shop/a:b", "shop/a:b\n",
		"shop/ä:b", "shop/aä:b", "shop/a*:b", "**:*", "/a:b", "a.:b", "a.b/c:d", "a:b/c", "a:b.c", long + "a:b", long + "/" + long + "." + long + ":" + long, "shop/invoices.:approve"} {
		for _, pair := range [][2]string{{"*/*:*", text}, {"*:*", text}, {text, "shop/invoices:approve"}, {text, text}} {
			if client.Covers(pair[0], pair[1]) {
				t.Errorf("%q covers %q", pair[0], pair[1])
			}
		}
	}
}

func TestANilCallerHasNoPermission(t *testing.T) {
	if client.Can(nil, "shop/invoices:approve", "Sales") {
		t.Error("a nil caller has a permission")
	}
}

func TestCanInDepartments(t *testing.T) {
	sales := principal(t, `{"permissions":["store/*:*"],"scopedPermissions":[{"reach":{"departments":["Sales",""]},"permissions":["shop/c:d","shop/a:b"]},{"reach":{"departments":["Sales"]},"permissions":["users:read"]}]}`)
	for asked, want := range map[[2]string]bool{
		{"shop/a:b", "Sales"}: true, {"shop/a:b", ""}: false, {"shop/a:b", "sales"}: false, {"shop/a:b", "Ops"}: false, {"shop/a:c", "Sales"}: false,
		{"users:read", "Sales"}: false, {"store/a:b", "Ops"}: true, {"store/a:b", ""}: true, {"shop/a", "Sales"}: false,
	} {
		if got := client.Can(sales, asked[0], asked[1]); got != want {
			t.Errorf("%q: %v", asked, got)
		}
	}
}
