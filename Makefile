# The commands of this project. `make run` and `make test` need only Go and make. `make test` finds
# PostgreSQL and the tools of the tests, or installs them if that needs no password.

SHELL = /bin/bash -o pipefail
WITH_POSTGRES = go run ./internal/pgtest/withpostgres
STATICCHECK = go tool -modfile=tools/go.mod staticcheck
TEMPL = go tool -modfile=tools/go.mod templ
VALE = go tool -modfile=tools/go.mod vale
GOVULNCHECK = go tool -modfile=tools/go.mod govulncheck
FUZZTIME = 10s
# More tests than cores run at once, because most of them wait for a database or a process.
TEST = go test -timeout 40m -p 4 -parallel 6
# The race detector leaves out SQLite, which is translated from C and would take four fifths of
# the time.
RACE = -race -gcflags=modernc.org/...=-race=false
# Tests that run on all stores, and also on Citus.
ON_CITUS = ^(TestProgram|TestTheTenantDoesNotOutliveItsTransaction|TestPreparedStatementsFollowTheTenant|TestViolationsKeepTheConnection|TestRoundTripsPerOperation)$$
BLACK_BOX = ./internal/e2e ./internal/faults
BROWSER_TESTS = cd console/e2e && npm ci --silent --no-audit --no-fund && cd ../.. && go build -o console/e2e/results/rolecall ./cmd/rolecall
# The appearance and accessibility of pages do not depend on the store.
CONSOLE_TESTS = $(filter-out $(if $(filter postgres,$(STORE)),console/e2e/pages.test.js),$(wildcard console/e2e/*.test.js))
TEST_TOOLS = nginx haproxy pgbouncer sqlite3 strace nodejs

.PHONY: help run test test-citus test-tools test-deploy clients-test interop test-idp browser-test console-test screenshots templ check prose race bench bench-scale benchmarks faults timing fuzz openapi examples vuln

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve a demo on http://127.0.0.1:8080, and print how to sign in
	go run ./cmd/rolecall serve --demo

test: test-tools ## run the tests on SQLite and on a temporary PostgreSQL; make check and make race run the longer ones
	$(WITH_POSTGRES) $(TEST) -short ./...

test-citus: ## run the tests of the store, the program and faults on a Citus cluster; FULL=1 runs the long ones
	$(WITH_POSTGRES) -citus $(TEST) -count=1 -run 'Citus|Shard|Distribut|LaterMigrations|$(ON_CITUS)/^citus$$' ./internal/store/postgres ./internal/e2e
	$(WITH_POSTGRES) -citus $(TEST) -count=1 -run 'Citus|^(TestTenantsStayIsolated|TestKill)$$/^citus$$' $(if $(FULL),-v -timeout 600m) ./internal/faults $(if $(FULL),-full)

# If a tool cannot be installed, its tests are skipped. If CI is set, they fail instead. A tool whose package
# has another name is written as command:package.
test-tools:
	@for tool in $(TEST_TOOLS); do \
		command -v $${tool%:*} >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends $${tool#*:}; } || exit 1; \
	done

clients-test: TEST_TOOLS = nodejs npm python3
clients-test: test-tools ## test the clients in other languages against the program, on SQLite and on a temporary PostgreSQL
	@for client in clients/*/test; do $$client || exit 1; done

test-deploy: TEST_TOOLS = nginx haproxy caddy prometheus buildah
test-deploy: test-tools ## test the image, the compose file, the chart, the units, the proxies, the alerts and the dashboard in deploy/
	$(WITH_POSTGRES) sh -c 'cd tools/deploy && go test -count=1 -v -timeout 20m ./...'

interop: TEST_TOOLS = nodejs npm python3
interop: test-tools ## parse what the change feeds return, and verify deliveries of webhooks, with the official libraries
	cd internal/httpapi/interop && npm ci --silent --no-audit --no-fund
	cd internal/httpapi/interop && python3 -m venv .venv && .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
	ROLECALL_TEST_INTEROP=1 go test -count=1 -run '^TestItemsAreCloudEvents$$' ./internal/httpapi
	tools/webhooks/run

test-idp: TEST_TOOLS = nodejs npm openssl chromium java:default-jre-headless
test-idp: test-tools ## sign in with oidc-provider and with Keycloak, also in Chromium, on both stores; the first run downloads Keycloak from Maven Central
	$(BROWSER_TESTS)
	cd tools/idp && npm ci --silent --no-audit --no-fund
	$(WITH_POSTGRES) node tools/idp/run.js sh -ec '\
		go test -count=1 -run "^TestRealProviders$$" ./internal/oidc; \
		env -u ROLECALL_TEST_POSTGRES node --test tools/idp/browser.test.js; \
		node --test tools/idp/browser.test.js'

browser-test: TEST_TOOLS = chromium
browser-test: test-tools ## test the topologies of the guide, attacks on them, and passkeys in Chromium
	@command -v chromium >/dev/null || { echo "chromium is not installed"; exit 1; }
	ROLECALL_TEST_BROWSER="$$(command -v chromium)" go test -count=1 -run '^(TestTopologies|TestPasskeysInABrowser)$$' ./internal/e2e

console-test: TEST_TOOLS = chromium firefox-esr npm
screenshots: TEST_TOOLS = chromium npm
console-test: test-tools ## test the console in Chromium, and the main scenarios in Firefox; STORE=postgres runs the tests that depend on the store on a temporary PostgreSQL
	$(BROWSER_TESTS)
	$(if $(filter postgres,$(STORE)),$(WITH_POSTGRES)) node --test --test-concurrency=1 $(CONSOLE_TESTS)

screenshots: test-tools ## take the pictures of the README; ALL=1 takes pictures of all pages in console/e2e/results/pages
	$(BROWSER_TESTS)
	$(if $(ALL),ROLECALL_TEST_PICTURES=1 node --test --test-name-pattern='all pages' console/e2e/pages.test.js,node console/e2e/screenshots.js)

templ: ## generate the Go code of the console's templates
	$(TEMPL) generate -include-version=false -path console

check race: export GORACE = halt_on_error=1 exitcode=66 atexit_sleep_ms=0

check: test-tools ## run the checks that a change must pass, with the race detector
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	go mod tidy -diff
	$(TEMPL) generate -include-version=false -path console
	git diff --exit-code -- 'console/*_templ.go' # if this fails, run make templ and commit the result
	go vet ./...
	$(STATICCHECK) ./...
	$(MAKE) prose
	$(TEST) ./internal/conventions # without the race detector: it parses all files in one goroutine
	$(WITH_POSTGRES) $(TEST) $(RACE) $$(go list ./... | grep -v -x -e '.*/internal/e2e' -e '.*/internal/faults' -e '.*/internal/conventions')

prose: ## check the style of the documents by the rules in .vale
	$(VALE) --output=line $$(git ls-files -co --exclude-standard '*.md')

# make test runs a part of these tests (-short). This target runs all of them on both stores.
race: test-tools ## run all tests of the program and of faults on both stores, against a program built with the race detector
	ROLECALL_TEST_BUILD="$(RACE)" $(WITH_POSTGRES) $(TEST) $(BLACK_BOX)

bench: ## compare the speed with a minimal service; BENCH=-full takes longer, BENCH=-peers measures other services, BENCH=-citus clusters
	go run ./bench/speed $(BENCH)

bench-scale: ## measure whether cost grows with the data, up to 1,000,000 users and 100,000 tenants; BENCH=-small is a short run
	go run ./bench/scale $(BENCH)

benchmarks: ## run the Go benchmarks: time and allocations per operation
	$(WITH_POSTGRES) go test -run '^$$' -bench . -benchmem ./...

faults: test-tools ## test kills, cut connections, full disks, failover, overload and restarts under load, for an hour
	$(WITH_POSTGRES) go test -count=1 -v -timeout 120m ./internal/faults -full

timing: ## measure whether the time of a response reveals if a user exists
	go run ./bench/timing

fuzz: ## run each fuzz target for FUZZTIME
	@go test -list '^Fuzz' ./... | awk '/^Fuzz/ { target[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, target[i]; n = 0 }' | \
	while read -r package target; do go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; done

openapi: ## generate the OpenAPI document and the pages of permissions, events and step-up
	go test ./internal/httpapi -run 'TestDocumentIsTheCommittedOne|TestPermissionsPage|TestEventsPage|TestTheStepUpPage' -update

examples: openapi ## add examples of new operations to the OpenAPI document
	go test ./internal/httpapi -short -examples
	$(MAKE) openapi

vuln: ## list known vulnerabilities of the dependencies; needs vuln.go.dev
	$(GOVULNCHECK) ./...
