package client

import (
	"context"
	"fmt"
	"net/http"
)

// PermissionCheck is a permission to check: for the users of a department, or in the whole
// tenant if Department is nil.
type PermissionCheck struct {
	Permission string  `json:"permission"` // without wildcards, such as shop/invoices:approve
	Department *string `json:"department,omitempty"`
}

// CheckPermissions reports for each check, in the same order, whether the caller holds the
// permission. A call can have up to 200 checks.
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
