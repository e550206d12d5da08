# The commands of this project. `make run` and `make test` need only Go and make. `make test` finds
# PostgreSQL and the tools of the tests, or installs them if that needs no password.

SHELL = /bin/bash -o pipefail
# All programs and tests but those with the race detector are built without C, like a release, so
# that each package is compiled once.
export CGO_ENABLED = 0
WITH_POSTGRES = go run ./internal/pgtest/withpostgres
TOOL = go tool -modfile=$(CURDIR)/tools/go.mod
STATICCHECK = $(TOOL) staticcheck
TEMPL = $(TOOL) templ
GOVULNCHECK = $(TOOL) govulncheck
GOTESTSUM = $(TOOL) gotestsum
FUZZTIME = 10s

PACKAGES = ./...
SHORT = -short
# More tests than cores run at once, because most of them wait for a database or a process.
# make check runs go vet.
TEST_FLAGS = -timeout 35m -p 4 -parallel 6 -vet=off
# $(call gotest,packages,flags) runs go test. .ci/run sets EVENTS, the file for the events of the tests. Then a
# failed top-level test is run once more, alone.
gotest = go test $(TEST_FLAGS) $(2) $(1)
ifdef EVENTS
gotest = $(GOTESTSUM) --format=pkgname-and-test-fails --format-hide-empty-pkg --rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --jsonfile=$(EVENTS) --packages="$(1)" -- $(TEST_FLAGS) $(2)
endif
# compile compiles packages and their tests with the flags, so that no test runs during this. go test links them.
compile = go list -export -test -deps -f '' $(2) $(1)

# The race detector leaves out SQLite, which is translated from C and would take four fifths of
# the time.
RACE = -race -gcflags=modernc.org/...=-race=false
BLACK_BOX = ./internal/e2e ./internal/faults
# The packages whose code runs in several goroutines. Their tests run with the race detector.
RACED = $(addprefix ./internal/,access argon2 auditlog directory feed httpserver idempotency invalidation limiter mail/... node oidc/... outbox queue ratelimit secret signin store/... web webhooks)
# All other packages. The conventions are a part of make check.
PLAIN = $$(go list ./... | grep -v -x -F -e "$$(go list $(BLACK_BOX) $(RACED) ./internal/conventions)")

# The Go client is a module, so that applications do not inherit the dependencies of the server. Its tests against the
# program are another module, client/e2e, which also finds the packages of the client.
CLIENT = github.com/rolecall/rolecall/client/...

# The program that black-box tests, browsers and clients test, and the same program with the race detector.
# Its password hashes are cheap, and tests can let it send webhooks to this machine.
TEST_TAGS = -tags=cheap_hashes,loopback_endpoints
PROGRAM = $(CURDIR)/.cache/program/rolecall
RACED_PROGRAM = $(CURDIR)/.cache/program/rolecall-race

# Tests that run on all stores, and also on Citus.
ON_CITUS = ^($(shell grep -E '^func Test.* onEachStore' internal/e2e/e2e_test.go | grep -oE 'Test[A-Za-z]+' | tr '\n' '|')TestTheTenantDoesNotOutliveItsTransaction|TestPreparedStatementsFollowTheTenant|TestViolationsKeepTheConnection|TestRoundTripsPerOperation)$$
# The files of the console that run on PostgreSQL too, because what they test depends on the store.
CONSOLE_STORE_TESTS = access bulk exports lists people records users views
CONSOLE_TESTS = $(if $(filter postgres,$(STORE)),$(CONSOLE_STORE_TESTS:%=console/e2e/%.test.js),$(wildcard console/e2e/*.test.js))
NPM_CI = npm ci --silent --no-audit --no-fund
NODE_TEST = ROLECALL_PROGRAM=$(PROGRAM) node tools/nodetest.mjs
CONSOLE_PACKAGES = cd console/e2e && ../../tools/installed package-lock.json $(NPM_CI)
TEST_TOOLS = nginx haproxy pgbouncer sqlite3 strace nodejs
# The package cargo of Debian 12 is too old for the generated Rust code, but cargo-web is not.
CARGO = cargo:cargo-web,cargo

.PHONY: help run test server-test go-client-test test-citus test-tools all-tools clean-tree test-deploy clients-test generators interop test-idp browser-test console-test screenshots templ check race black-box program raced-program bench bench-scale benchmarks faults timing fuzz openapi examples vuln

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve a demo on http://127.0.0.1:8080, and print how to sign in
	go run ./cmd/rolecall serve --demo

test: server-test go-client-test ## run the tests on SQLite and on a temporary PostgreSQL, without the long ones; SHORT= runs these too

server-test: test-tools program
	$(call compile,$(PACKAGES))
	ROLECALL_PROGRAM=$(PROGRAM) $(WITH_POSTGRES) $(call gotest,$(PACKAGES),$(SHORT))

go-client-test: program
	cd client/e2e && ROLECALL_PROGRAM=$(PROGRAM) $(call gotest,$(CLIENT),$(SHORT))

program:
	go build $(TEST_TAGS) -o $(PROGRAM) ./cmd/rolecall

raced-program: export CGO_ENABLED = 1
raced-program:
	go build $(TEST_TAGS) $(RACE) -o $(RACED_PROGRAM) ./cmd/rolecall

race: export CGO_ENABLED = 1
race: test-tools ## run all tests of the packages whose code runs in several goroutines, with the race detector
	$(call compile,$(RACED),$(RACE))
	$(WITH_POSTGRES) $(call gotest,$(RACED),$(RACE))

black-box: test-tools raced-program ## run all black-box tests and faults on both stores, against a program built with the race detector
	$(call compile,$(BLACK_BOX))
	ROLECALL_PROGRAM=$(RACED_PROGRAM) $(WITH_POSTGRES) $(call gotest,$(BLACK_BOX))

test-citus: ## run the tests of the store, the program and faults on a Citus cluster; FULL=1 runs the long ones
	$(WITH_POSTGRES) -citus go test $(TEST_FLAGS) -count=1 -run 'Citus|Shard|Distribut|LaterMigrations|$(ON_CITUS)/^citus$$' ./internal/store/postgres ./internal/e2e
	$(WITH_POSTGRES) -citus go test $(TEST_FLAGS) -count=1 -run 'Citus|^(TestTenantsStayIsolated|TestKill)$$/^citus$$' $(if $(FULL),-v -timeout 600m) ./internal/faults $(if $(FULL),-full)

# If a tool cannot be installed, its tests are skipped. If CI is set, they fail instead. A tool whose package
# has another name is written as command:package, or as command:package,package for the first one that apt-get has.
# Without chromium-headless-shell, tests use chromium, which is slower.
test-tools:
	@for tool in $(TEST_TOOLS); do \
		command -v $${tool%:*} >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
		{ package=$${tool#*:} && apt-get -qq update && apt-get -qq satisfy -y --no-install-recommends "$${package//,/ | }"; } || test $$tool = chromium-headless-shell || exit 1; \
	done

# The tools of all targets that .ci/run calls. apt-get cannot run twice at the same time.
all-tools: TEST_TOOLS = nginx haproxy pgbouncer sqlite3 strace nodejs npm python3 openssl chromium chromium-headless-shell firefox-esr javac:default-jdk-headless mvn:maven $(CARGO) caddy prometheus buildah
all-tools: test-tools
	$(WITH_POSTGRES) true # it installs PostgreSQL

clients-test: TEST_TOOLS = nodejs npm python3
clients-test: test-tools program ## test the clients in other languages against the program, on SQLite and on a temporary PostgreSQL
	@ROLECALL_PROGRAM=$(PROGRAM) $(MAKE) --no-print-directory -j2 --output-sync=target clients/python/test.run clients/typescript/test.run

clients/%/test.run:
	@clients/$*/test

test-deploy: SHORT =
test-deploy: TEST_TOOLS = nginx haproxy caddy prometheus buildah
test-deploy: test-tools ## test everything in deploy/; SHORT=-short leaves out the chart and the release, whose tools take minutes to compile
	$(WITH_POSTGRES) sh -c 'cd tools/deploy && go vet $(if $(SHORT),-tags=short) . && $(call gotest,.,$(if $(EVENTS),,-v) -count=1 $(if $(SHORT),-tags=short))'

generators: TEST_TOOLS = nodejs npm python3 javac:default-jdk-headless mvn:maven $(CARGO)
generators: test-tools program ## generate clients with code generators, and run a flow with each against the program; RECIPES=rust runs one; the first run downloads packages of npm, Python, Java and Rust
	cd tools/generators && ../installed package-lock.json $(NPM_CI)
	cd tools/generators && ../installed requirements.txt sh -ec 'test -x .venv/bin/python || python3 -m venv .venv; .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt'
	ROLECALL_PROGRAM=$(PROGRAM) node tools/generators/run.mjs $(RECIPES)

interop: TEST_TOOLS = nodejs npm python3
interop: test-tools ## parse what the change feeds return, and verify deliveries of webhooks, with the official libraries
	cd internal/httpapi/interop && ../../../tools/installed package-lock.json $(NPM_CI)
	cd internal/httpapi/interop && ../../../tools/installed requirements.txt sh -ec 'test -x .venv/bin/python || python3 -m venv .venv; .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt'
	ROLECALL_TEST_INTEROP=1 go test -count=1 -v -run '^TestLibrariesParseItems$$' ./internal/httpapi
	tools/webhooks/run

test-idp: TEST_TOOLS = nodejs npm openssl chromium chromium-headless-shell java:default-jre-headless
test-idp: test-tools program ## sign in with oidc-provider and with Keycloak, also in Chromium, on both stores; the first run downloads Keycloak from Maven Central
	$(CONSOLE_PACKAGES)
	cd tools/idp && ../installed package-lock.json $(NPM_CI)
	$(WITH_POSTGRES) node tools/idp/run.js sh -ec '\
		go test -count=1 -run "^TestRealProviders$$" ./internal/oidc; \
		$(NODE_TEST) --concurrency=2 tools/idp/postgres.test.js tools/idp/sqlite.test.js'

browser-test: TEST_TOOLS = chromium
browser-test: test-tools program ## test the topologies of the guide, attacks on them, and passkeys in Chromium
	@command -v chromium >/dev/null || { echo "chromium is not installed"; exit 1; }
	ROLECALL_PROGRAM=$(PROGRAM) ROLECALL_TEST_BROWSER="$$(command -v chromium)" $(call gotest,./internal/e2e,-run='^(TestTopologies|TestPasskeysInABrowser)$$')

console-test: TEST_TOOLS = chromium chromium-headless-shell firefox-esr npm
screenshots: TEST_TOOLS = chromium npm
console-test: test-tools program ## test the console in Chromium, and the main scenarios in Firefox; STORE=postgres runs the tests that depend on the store on a temporary PostgreSQL
	$(CONSOLE_PACKAGES)
	$(if $(filter postgres,$(STORE)),$(WITH_POSTGRES) env) $(NODE_TEST) --concurrency=2 $(CONSOLE_TESTS)

screenshots: test-tools program ## take the pictures of the README; ALL=1 takes pictures of all pages in console/e2e/results/pages
	$(CONSOLE_PACKAGES)
	export ROLECALL_PROGRAM=$(PROGRAM); $(if $(ALL),ROLECALL_TEST_PICTURES=1 node --test --test-name-pattern=widths console/e2e/pages.test.js,node console/e2e/screenshots.js)

templ: ## generate the Go code of the console's templates
	$(TEMPL) generate -include-version=false -path console

race black-box: export GORACE = halt_on_error=1 exitcode=66 atexit_sleep_ms=0

check: ## run the linters and the tests of the conventions
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	go mod tidy -diff
	$(TEMPL) generate -include-version=false -path console
	git diff --exit-code -- 'console/*_templ.go' # if this fails, run make templ and commit the result
	go vet ./...
	$(STATICCHECK) ./...
	cd client && go mod tidy -diff
	cd client/e2e && go mod tidy -diff && go vet $(CLIENT) && $(STATICCHECK) $(CLIENT)
	cd bench/checks && go mod tidy -diff && go vet ./...
	cd tools/deploy && go mod tidy -diff # make test-deploy vets it
	$(call gotest,./internal/conventions)

clean-tree: # the checks must not change the tree
	@changes=$$(git status --porcelain); test -z "$$changes" || { echo "$$changes"; exit 1; }

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
	go test ./internal/e2e -run '^TestOperations$$/^sqlite$$' -examples
	$(MAKE) openapi

vuln: ## list known vulnerabilities of the dependencies; needs vuln.go.dev
	$(GOVULNCHECK) ./...
