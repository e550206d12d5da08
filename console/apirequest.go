package console

import (
	"maps"
	"net/url"
	"regexp"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// pathParameter matches a parameter in the path of a page or an operation.
var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// showsRequest reports whether the page shows its API request as a curl command. Pages without a
// session, pages that only navigate, and forms for several users do not.
func (p *page) showsRequest() bool {
	if p.policy.Curl == nil || p.policy.Public || p.policy.Policy == authz.ReadSession {
		return false
	}
	own := map[string]bool{}
	for _, match := range pathParameter.FindAllStringSubmatch(p.path, -1) {
		own[match[1]] = true
	}
	for _, match := range pathParameter.FindAllStringSubmatch(p.policy.Path, -1) {
		if !own[match[1]] {
			return false
		}
	}
	return true
}

// apiRequest returns the curl command of the page with the IDs and filters of its address. It is
// empty if the page has none. The command contains no value of a form and no secret.
func (f frame) apiRequest() string {
	isRefusal := f.problem != nil && (f.form == nil || !f.isAllowed)
	if f.page == nil || isRefusal || !f.page.showsRequest() {
		return ""
	}
	given := url.Values{}
	maps.Copy(given, f.request.URL.Query())
	for _, match := range pathParameter.FindAllStringSubmatch(f.page.policy.Path, -1) {
		given.Set(match[1], f.request.PathValue(match[1]))
	}
	given.Set("x-tenant-schema", f.tenant)
	given.Set(fieldKey, rolecall.NewID[any](f.now).String())
	return f.page.policy.Curl(f.console.site.Address(f.request), given)
}
