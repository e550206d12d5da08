package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const monitoring = root + "/deploy/monitoring"

// alertRules returns the alerts by name, with their annotations.
func alertRules(t *testing.T) map[string]map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	alerts := map[string]map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			alerts[rule.Alert] = rule.Annotations
		}
	}
	return alerts
}

func TestAlerts(t *testing.T) {
	promtool := need(t, "promtool")
	output(t, promtool, "check", "rules", filepath.Join(monitoring, "alerts.yaml"))
	output(t, promtool, "test", "rules", filepath.Join(monitoring, "alerts_test.yaml"))
	output(t, promtool, "check", "config", "--syntax-only", filepath.Join(monitoring, "prometheus.yaml"))
	tests, page := read(t, "deploy/monitoring/alerts_test.yaml"), read(t, "docs/operations.md")
	for alert, annotations := range alertRules(t) {
		if !strings.Contains(tests, alert) {
			t.Errorf("alerts_test.yaml does not test %s", alert)
		}
		if annotations["runbook"] == "" || annotations["summary"] == "" {
			t.Errorf("%s has no runbook or summary", alert)
		}
		if !strings.Contains(page, "| `"+alert+"` | "+annotations["runbook"]+" |") {
			t.Errorf("docs/operations.md does not have the runbook of %s", alert)
		}
	}
}

// dashboardQueries returns the queries of the dashboard by the title of their panel.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries[panel.Title] = append(queries[panel.Title], target.Expr)
		}
	}
	return queries
}

// TestDashboard runs each query of the dashboard on a Prometheus that scrapes a node under load.
func TestDashboard(t *testing.T) {
	prometheus := need(t, "prometheus")
	file, metrics := database(t), "127.0.0.1:"+freePort(t)
	node, _ := startNode(t, file, "http://127.0.0.1", "--metrics-listen", metrics)
	folder, address := t.TempDir(), "127.0.0.1:"+freePort(t)
	config := write(t, folder, "prometheus.yaml", fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: rolecall, static_configs: [{targets: [%q]}]}]\n", metrics))
	start(t, nil, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address, "--log.level=warn")
	awaitOK(t, http.DefaultClient, "http://"+address+"/-/ready")

	_, cookie := signIn(t, http.DefaultClient, "http://"+node, ownerPassword)
	signIn(t, http.DefaultClient, "http://"+node, "wrong")
	for title, queries := range dashboardQueries(t) {
		for _, query := range queries {
			query = strings.NewReplacer("$__rate_interval", "10s", "$job", ".*").Replace(query)
			await(t, title+": "+query, func(context.Context) error {
				send(t, http.DefaultClient, http.MethodGet, "http://"+node+"/auths/session", nil, map[string]string{"x-tenant-schema": "acme", "cookie": cookie})
				if samples(t, address, query) == 0 {
					return errors.New("no data")
				}
				return nil
			})
		}
	}
	checkMetricNames(t, metrics)
}

// samples returns the number of series that Prometheus returns for the query.
func samples(t *testing.T, address, query string) int {
	t.Helper()
	_, body := send(t, http.DefaultClient, http.MethodGet, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query), nil, nil)
	var answer struct {
		Status string
		Data   struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", query, err, body)
	}
	return len(answer.Data.Result)
}

var metricName = regexp.MustCompile(`\brolecall_[a-z0-9_]+`)

// checkMetricNames checks that the node exposes each metric that the alerts use.
func checkMetricNames(t *testing.T, address string) {
	t.Helper()
	_, exposed := send(t, http.DefaultClient, http.MethodGet, "http://"+address+"/metrics", nil, nil)
	for _, name := range metricName.FindAllString(read(t, "deploy/monitoring/alerts.yaml"), -1) {
		if !strings.Contains(exposed, "\n"+name) {
			t.Errorf("an alert uses %s, which the node does not expose", name)
		}
	}
}

// TestMetricsParse checks the metrics of a node with promtool, which also checks their names.
func TestMetricsParse(t *testing.T) {
	promtool := need(t, "promtool")
	metrics := "127.0.0.1:" + freePort(t)
	startNode(t, database(t), "http://127.0.0.1", "--metrics-listen", metrics)
	_, exposed := send(t, http.DefaultClient, http.MethodGet, "http://"+metrics+"/metrics", nil, nil)
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(exposed)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	if !strings.Contains(exposed, `rolecall_build_info{commit="abc",go_version="go`) || !strings.Contains(exposed, `version="1.2.3"} 1`) {
		t.Error("rolecall_build_info does not have the version of the build")
	}
}
