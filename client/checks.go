package client

import (
	"context"
	"fmt"
	"net/http"
)

// PermissionCheck names a permission to check with CheckPermissions. Department limits the
// check to the users of one department. A nil Department means the whole tenant.
type PermissionCheck struct {
	Permission string  `json:"permission"` // must not contain wildcards; an example is shop/invoices:approve
	Department *string `json:"department,omitempty"`
}

// CheckPermissions reports for each check, in the order of checks, whether the caller holds
// the permission. A call accepts up to 200 checks.
func (c *Client) CheckPermissions(ctx context.Context, checks ...PermissionCheck) ([]bool, error) {
	body := struct {
		Checks []PermissionCheck `json:"checks"`
	}{append([]PermissionCheck{}, checks...)}
	var answer struct {
		Results []struct {
			Allowed bool `json:"allowed"`
		} `json:"results"`
	}
	if _, err := c.do(ctx, call{method: http.MethodPost, path: "/auths/checks", body: body, into: &answer}); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(checks) {
		return nil, fmt.Errorf("rolecall: %d results of %d checks", len(answer.Results), len(checks))
	}
	allowed := make([]bool, len(checks))
	for i, result := range answer.Results {
		allowed[i] = result.Allowed
	}
	return allowed, nil
}
