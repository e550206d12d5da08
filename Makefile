# The commands of this project. `make run` and `make test` need nothing but Go;
# PostgreSQL and the tools of the tests are found, or installed where that asks no
# password.

SHELL = /bin/bash -o pipefail
WITH_POSTGRES = go run ./internal/pgtest/withpostgres
STATICCHECK = go tool -modfile=tools/go.mod staticcheck
TEMPL = go tool -modfile=tools/go.mod templ
VALE = go tool -modfile=tools/go.mod vale
GOVULNCHECK = go tool -modfile=tools/go.mod govulncheck
FUZZTIME = 10s
# Most of what a test does is waiting, for a database or for a process.
TEST = go test -timeout 20m -p 4 -parallel 6
# The race detector watches all but SQLite, which is translated from C, guards
# itself, and would take four fifths of the time.
RACE = -race -gcflags=modernc.org/...=-race=false
# Tests that run on Citus as on the other stores.
ON_CITUS = ^(TestProgram|TestTheTenantDoesNotOutliveItsTransaction|TestPreparedStatementsFollowTheTenant|TestViolationsKeepTheConnection|TestRoundTripsPerOperation)$$
BLACK_BOX = ./internal/e2e ./internal/faults
BROWSER_TESTS = cd console/e2e && npm ci --silent --no-audit --no-fund && cd ../.. && go build -o console/e2e/results/rolecall ./cmd/rolecall
# How pages look and who can use them does not depend on the store.
CONSOLE_TESTS = $(filter-out $(if $(filter postgres,$(STORE)),console/e2e/pages.test.js),$(wildcard console/e2e/*.test.js))
TEST_TOOLS = nginx haproxy pgbouncer sqlite3 strace nodejs

.PHONY: help run test test-citus test-tools browser-test console-test screenshots templ check prose race bench bench-scale benchmarks faults timing fuzz openapi examples vuln

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve a demo on http://127.0.0.1:8080; it prints how to sign in
	go run ./cmd/rolecall serve --demo

test: test-tools ## the tests, on SQLite and on a PostgreSQL of their own; make check and make race run those that take longer
	$(WITH_POSTGRES) $(TEST) -short ./...

test-citus: ## the store, the black-box scenarios and the faults on a Citus cluster; FULL=1 kills and asks as often as a proof needs
	$(WITH_POSTGRES) -citus $(TEST) -count=1 -run 'Citus|Shard|Distribut|LaterMigrations|$(ON_CITUS)/^citus$$' ./internal/store/postgres ./internal/e2e
	$(WITH_POSTGRES) -citus $(TEST) -count=1 -run 'Citus|^(TestTenantsStayIsolated|TestKill)$$/^citus$$' $(if $(FULL),-v -timeout 600m) ./internal/faults $(if $(FULL),-full)

# Tests of what cannot be installed are skipped, but not where CI is set.
test-tools:
	@for tool in $(TEST_TOOLS); do \
		command -v $$tool >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends $$tool; } || exit 1; \
	done

browser-test: TEST_TOOLS = chromium
browser-test: test-tools ## the topologies of the guide, attacks on them, and passkeys, in a real Chromium
	@command -v chromium >/dev/null || { echo "chromium is not installed"; exit 1; }
	ROLECALL_TEST_BROWSER="$$(command -v chromium)" go test -count=1 -run '^(TestTopologies|TestPasskeysInABrowser)$$' ./internal/e2e

console-test screenshots: TEST_TOOLS = chromium npm
console-test: test-tools ## the console in a real Chromium; STORE=postgres for what depends on the store, on a PostgreSQL of its own
	$(BROWSER_TESTS)
	$(if $(filter postgres,$(STORE)),$(WITH_POSTGRES)) node --test --test-concurrency=1 $(CONSOLE_TESTS)

screenshots: test-tools ## the pictures of the README; ALL=1 for all pages, into console/e2e/results/pages
	$(BROWSER_TESTS)
	$(if $(ALL),ROLECALL_TEST_PICTURES=1 node --test --test-name-pattern='all pages' console/e2e/pages.test.js,node console/e2e/screenshots.js)

templ: ## write the Go code of the console's templates anew
	$(TEMPL) generate -include-version=false -path console

check race: export GORACE = halt_on_error=1 exitcode=66 atexit_sleep_ms=0

check: test-tools ## what must hold before a change is merged, the race detector included
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	go mod tidy -diff
	$(TEMPL) generate -include-version=false -path console
	git diff --exit-code -- 'console/*_templ.go' # make templ, and commit what it writes
	go vet ./...
	$(STATICCHECK) ./...
	$(MAKE) prose
	$(TEST) ./internal/conventions # which parses all files in one goroutine
	$(WITH_POSTGRES) $(TEST) $(RACE) $$(go list ./... | grep -v -x -e '.*/internal/e2e' -e '.*/internal/faults' -e '.*/internal/conventions')

prose: ## the style of the documents, by the rules in .vale
	$(VALE) --output=line $$(git ls-files -co --exclude-standard '*.md')

# make test runs a part of these (-short). This runs all of them, on both stores.
race: test-tools ## the black-box suites, whole on both stores, against a program that watches for races
	ROLECALL_TEST_BUILD="$(RACE)" $(WITH_POSTGRES) $(TEST) $(BLACK_BOX)

bench: ## speed against the least that could be done; BENCH=-full takes longer, BENCH=-peers measures other services, BENCH=-citus clusters
	go run ./bench/speed $(BENCH)

bench-scale: ## whether cost grows with the data: up to 1,000,000 users and 100,000 tenants; BENCH=-small to try it
	go run ./bench/scale $(BENCH)

benchmarks: ## the Go benchmarks: time and allocations per operation
	$(WITH_POSTGRES) go test -run '^$$' -bench . -benchmem ./...

faults: test-tools ## kills, cuts, full disks, failover, overload, restarts under load: an hour
	$(WITH_POSTGRES) go test -count=1 -v -timeout 120m ./internal/faults -full

timing: ## whether the time of a refused sign-in, a reset or a change of address tells what the answer does not
	go run ./bench/timing

fuzz: ## every fuzz target for FUZZTIME each
	@go test -list '^Fuzz' ./... | awk '/^Fuzz/ { target[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, target[i]; n = 0 }' | \
	while read -r package target; do go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; done

openapi: ## write the OpenAPI document and the pages of permissions, events and step-up
	go test ./internal/httpapi -run 'TestDocumentIsTheCommittedOne|TestPermissionsPage|TestEventsPage|TestTheStepUpPage' -update

examples: openapi ## add examples of new operations to the OpenAPI document
	go test ./internal/httpapi -short -examples
	$(MAKE) openapi

vuln: ## known vulnerabilities of what is imported; needs vuln.go.dev
	$(GOVULNCHECK) ./...
