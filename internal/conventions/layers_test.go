package conventions

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rolecall/rolecall"

// mayImport lists the packages of this module that each package may import outside of tests.
// Imports point inward: from the command through the HTTP packages and the stores to the root
// package, which defines the types.
var mayImport = map[string][]string{
	".":                              {},
	"bench/floor":                    {},
	"bench/load":                     {},
	"bench/peers":                    {"bench/load", "internal/pgtest", "internal/process"},
	"bench/peers/pocketbase":         {}, // a separate module
	"bench/speed":                    {"bench/floor", "bench/load", "bench/peers", "internal/pgtest", "internal/process", "internal/progress"},
	"bench/checks":                   {}, // a separate module
	"bench/scale":                    {".", "bench/load", "internal/pgtest", "internal/process", "internal/progress", "internal/store", "internal/store/sqlite"},
	"bench/timing":                   {"internal/process"},
	"client":                         {}, // a separate module
	"client/clienttest":              {"client"},
	"client/e2e":                     {}, // a separate module
	"console":                        {".", "internal/access", "internal/auditlog", "internal/authz", "internal/directory", "internal/idempotency", "internal/secret", "internal/signin", "internal/timezone", "internal/typeface", "internal/web", "internal/webhooks"},
	"cmd/rolecall":                   {".", "console", "internal/access", "internal/auditlog", "internal/demo", "internal/feed", "internal/httpapi", "internal/httpserver", "internal/invalidation", "internal/mail", "internal/node", "internal/oidc", "internal/outbound", "internal/outbox", "internal/passkey", "internal/progress", "internal/ratelimit", "internal/scim", "internal/secret", "internal/seed", "internal/store", "internal/store/postgres", "internal/store/sqlite", "internal/tracing", "internal/web", "internal/webhooks"},
	"internal/httpserver":            {},
	"internal/directory":             {".", "internal/access", "internal/auditlog", "internal/authz", "internal/feed", "internal/idempotency", "internal/invalidation", "internal/outbox", "internal/ratelimit", "internal/secret", "internal/store", "internal/timezone"},
	"internal/node":                  {".", "internal/access", "internal/directory", "internal/feed", "internal/invalidation", "internal/signin", "internal/store", "internal/webhooks"},
	"internal/nodetest":              {".", "internal/access", "internal/auditlog", "internal/authz", "internal/directory", "internal/idempotency", "internal/mail", "internal/mail/mailtest", "internal/node", "internal/oidc", "internal/oidc/oidctest", "internal/passkey", "internal/passkey/passkeytest", "internal/patience", "internal/pgtest", "internal/ratelimit", "internal/secret", "internal/signin", "internal/sqlitetest", "internal/store", "internal/store/postgres", "internal/store/sqlite"},
	"internal/demo":                  {".", "internal/access", "internal/authz", "internal/directory", "internal/idempotency", "internal/secret", "internal/signin", "internal/store"},
	"internal/seed":                  {".", "internal/access", "internal/directory", "internal/progress", "internal/secret", "internal/store"},
	"internal/argon2":                {},
	"internal/authz":                 {"."},
	"internal/access":                {".", "internal/auditlog", "internal/authz", "internal/feed", "internal/idempotency", "internal/invalidation", "internal/oidc", "internal/outbound", "internal/outage", "internal/outbox", "internal/passkey", "internal/ratelimit", "internal/secret", "internal/store"},
	"internal/auditlog":              {".", "internal/outage", "internal/secret", "internal/store"},
	"internal/feed":                  {".", "internal/outage", "internal/store", "internal/wire"},
	"internal/idempotency":           {".", "internal/secret", "internal/store"},
	"internal/ratelimit":             {".", "internal/invalidation", "internal/secret", "internal/store"},
	"internal/cireport":              {},
	"internal/conventions":           {},
	"internal/e2e":                   {},
	"internal/e2e/browser":           {"internal/patience"},
	"internal/limiter":               {},
	"internal/faults":                {},
	"internal/httpapi":               {".", "internal/access", "internal/auditlog", "internal/authz", "internal/directory", "internal/feed", "internal/oidc", "internal/operation", "internal/secret", "internal/signin", "internal/timezone", "internal/typeface", "internal/web", "internal/webhooks", "internal/wire", "openapi"},
	"internal/invalidation":          {"."},
	"internal/operation":             {".", "internal/access", "internal/authz", "internal/idempotency", "internal/secret", "internal/web", "internal/wire"},
	"internal/oidc":                  {"internal/outbound"},
	"internal/oidc/oidctest":         {"internal/patience"},
	"internal/openapitest":           {"."},
	"internal/passkey":               {".", "internal/secret"},
	"internal/passkey/passkeytest":   {},
	"internal/mail":                  {".", "internal/outbound", "internal/secret"},
	"internal/mail/mailtest":         {"internal/patience"},
	"internal/outbound":              {},
	"internal/patience":              {},
	"internal/outbound/outboundtest": {"internal/patience"},
	"internal/outage":                {"."},
	"internal/outbox":                {".", "internal/outage", "internal/queue", "internal/secret", "internal/store"},
	"internal/pgtest":                {".", "internal/patience", "internal/process", "internal/store/postgres"},
	"internal/pgtest/withpostgres":   {"internal/pgtest"},
	"internal/process":               {"internal/patience"},
	"internal/progress":              {},
	"internal/queue":                 {"."},
	"internal/secret":                {".", "internal/argon2", "internal/limiter"},
	"internal/scim":                  {".", "internal/access", "internal/directory", "internal/secret", "internal/web"},
	"internal/signin":                {".", "internal/access", "internal/authz", "internal/idempotency", "internal/invalidation", "internal/limiter", "internal/oidc", "internal/outbox", "internal/passkey", "internal/ratelimit", "internal/secret", "internal/store"},
	"internal/sqlitetest":            {".", "internal/store", "internal/store/sqlite"},
	"internal/store":                 {"."},
	"internal/store/postgres":        {".", "internal/store", "internal/store/rekey"},
	"internal/store/rekey":           {".", "internal/store"},
	"internal/store/sqlite":          {".", "internal/store", "internal/store/rekey"},
	"internal/store/storetest":       {".", "internal/patience", "internal/store"},
	"internal/timezone":              {},
	"internal/tracing":               {".", "internal/store"},
	"internal/typeface":              {},
	"internal/web":                   {".", "internal/authz", "internal/limiter", "internal/secret", "internal/tracing", "internal/wire"},
	"internal/webhooks":              {".", "internal/access", "internal/authz", "internal/feed", "internal/idempotency", "internal/outbound", "internal/queue", "internal/secret", "internal/store", "internal/wire"},
	"internal/wire":                  {"."},
	"openapi":                        {},
	"tools/generators/go":            {"tools/generators/.generated/go/rolecall"},  // a separate module
	"tools/generators/oapi-codegen":  {"tools/generators/.generated/oapi-codegen"}, // a separate module
	"tools/webhooks":                 {},                                           // a separate module
}

// onlyIn maps a package outside of this module to the only packages that may import it. A key that
// ends with a slash stands for all packages with this prefix.
var onlyIn = map[string][]string{
	"crypto/":                           {"internal/secret", "internal/passkey/passkeytest", "internal/oidc/oidctest"},
	"crypto/hmac":                       {"internal/secret", "client", "internal/outbound/outboundtest"},                                                   // receivers of deliveries share no code with the sender
	"crypto/rand":                       {"internal/secret", ".", "client", "client/clienttest", "internal/passkey/passkeytest", "internal/oidc/oidctest"}, // for ids
	"crypto/rsa":                        {"internal/oidc", "internal/oidc/oidctest"},                                                                       // for the size of a provider's key
	"crypto/sha256":                     {".", "internal/secret", "client", "internal/passkey/passkeytest", "internal/oidc/oidctest", "internal/outbound/outboundtest", "bench/peers"},
	"crypto/subtle":                     {"internal/secret", "internal/oidc", "internal/oidc/oidctest"},
	"crypto/tls":                        {"cmd/rolecall", "internal/mail", "internal/mail/mailtest", "internal/oidc/oidctest", "internal/outbound"},
	"crypto/x509":                       {"internal/oidc", "internal/oidc/oidctest", "internal/outbound", "internal/outbound/outboundtest"},
	"golang.org/x/crypto/":              {"internal/argon2", "internal/secret", "bench/floor"},
	"net/http":                          {"console", "bench/scale", "internal/httpapi", "internal/operation", "internal/scim", "internal/tracing", "internal/web", "cmd/rolecall", "internal/httpserver", "internal/mail", "internal/oidc", "internal/oidc/oidctest", "internal/outbound", "internal/secret", "internal/outbound/outboundtest", "internal/webhooks", "tools/generators/oapi-codegen", "tools/webhooks", "client", "client/clienttest", "bench/timing", "internal/process", "bench/floor", "bench/load", "bench/peers", "bench/speed", "internal/openapitest"},
	"database/sql":                      {"internal/store/rekey", "internal/store/sqlite", "internal/store/postgres", "bench/floor"},
	"database/sql/driver":               {".", "internal/store", "internal/store/sqlite", "internal/store/postgres"}, // how values are stored
	"modernc.org/":                      {"internal/store/sqlite", "bench/floor"},
	"github.com/pocketbase/":            {"bench/peers/pocketbase"},
	"github.com/jackc/":                 {"bench/scale", "internal/store/postgres", "internal/pgtest", "bench/floor"},
	"github.com/pressly/":               {"internal/store/sqlite", "internal/store/postgres"},
	"github.com/danielgtaylor/huma/":    {"internal/httpapi", "internal/operation"},
	"github.com/a-h/templ":              {"console"},
	"rsc.io/qr":                         {"console"},
	"github.com/a-h/templ/":             {"console"},
	"github.com/nicksnyder/go-i18n/":    {"console"},
	"github.com/BurntSushi/toml":        {"console"},
	"golang.org/x/text/language":        {"console"},
	"github.com/alecthomas/kong":        {"cmd/rolecall"},
	"github.com/maypok86/otter/":        {"internal/directory", "internal/idempotency", "internal/invalidation", "internal/oidc", "internal/ratelimit", "internal/signin"},
	"go.yaml.in/yaml/":                  {"cmd/rolecall"},
	"github.com/wneessen/":              {"internal/mail"},
	"github.com/prometheus/":            {"cmd/rolecall", "internal/web"},
	"go.opentelemetry.io/":              {"internal/tracing"},
	"github.com/go-logr/":               {"internal/tracing"},
	"pgregory.net/rapid":                {"internal/store/storetest"},
	"github.com/go-webauthn/":           {"internal/passkey"},
	"github.com/coreos/go-oidc/":        {"internal/oidc"},
	"github.com/go-jose/":               {"internal/oidc", "internal/oidc/oidctest"},
	"golang.org/x/oauth2":               {"internal/oidc"},
	"testing":                           {"client/clienttest", "internal/e2e/browser", "internal/mail/mailtest", "internal/nodetest", "internal/oidc/oidctest", "internal/outbound/outboundtest", "internal/passkey/passkeytest", "internal/store/storetest", "internal/pgtest", "internal/sqlitetest"},
	"github.com/go-json-experiment/":    {"internal/authz", "internal/feed", "internal/httpapi", "internal/oidc", "internal/operation", "internal/scim", "internal/store", "internal/wire"},
	"golang.org/x/text/unicode/norm":    {".", "internal/secret", "internal/store/rekey"},
	"golang.org/x/net/idna":             {"."},
	"golang.org/x/text/cases":           {"."},
	"golang.org/x/mod/sumdb/":           {".", "internal/auditlog", "internal/httpapi", "internal/secret", "internal/store"},
	"golang.org/x/sys/":                 {"internal/argon2", "internal/httpserver", "internal/secret"},
	"golang.org/x/sync/":                {"internal/oidc", "internal/seed"},
	"golang.org/x/image/":               {"."},
	"golang.org/x/term":                 {"cmd/rolecall", "internal/progress"},
	"github.com/getkin/kin-openapi/":    {"internal/openapitest"},
	"github.com/santhosh-tekuri/":       {"internal/openapitest"},
	"github.com/anishathalye/porcupine": {},
	"github.com/rogpeppe/go-internal/":  {},
	"github.com/standard-webhooks/":     {"tools/webhooks"},
	"github.com/oapi-codegen/":          {"tools/generators/oapi-codegen"},
}

func TestImportsPointInward(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() {
			continue
		}
		name := f.folder()
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s: the table does not say what %s may import", f.path, name)
		}
		seen[name] = true
		for _, spec := range f.syntax.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if inside(path) && !slices.Contains(allowed, relative(path)) || !inside(path) && !outsideAllowed(name, path) {
				t.Errorf("%s: %s must not import %s", f.path, name, path)
			}
		}
	}
	for name := range mayImport {
		if !seen[name] {
			t.Errorf("the table names %s, which is not there", name)
		}
	}
}

// longestChain is the maximum number of packages in a chain of imports, so that readers can
// follow a call.
const longestChain = 7

func TestChainsOfImportsAreShort(t *testing.T) {
	var chain func(name string) []string
	chain = func(name string) (longest []string) {
		for _, imported := range mayImport[name] {
			if c := chain(imported); len(c) > len(longest) {
				longest = c
			}
		}
		return append([]string{name}, longest...)
	}
	for name := range mayImport {
		if c := chain(name); len(c) > longestChain {
			t.Errorf("%s: %d packages, want at most %d", strings.Join(c, " → "), len(c), longestChain)
		}
	}
}

// outsideAllowed reports whether the package may import path, which is outside of this module. The
// most specific entry of onlyIn decides. Packages of the standard library without an entry are
// allowed.
func outsideAllowed(name, path string) bool {
	best := ""
	for prefix := range onlyIn {
		matches := path == prefix || strings.HasPrefix(path, prefix) && strings.HasSuffix(prefix, "/")
		if matches && len(prefix) > len(best) {
			best = prefix
		}
	}
	if best == "" {
		return isStandard(path)
	}
	return slices.Contains(onlyIn[best], name)
}

func inside(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// isStandard reports whether path is in the standard library: its first element is not a
// domain.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
