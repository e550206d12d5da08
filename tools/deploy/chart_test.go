//go:build !short

// Helm and the types of Kubernetes take minutes to compile.

package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strictyaml "sigs.k8s.io/yaml"
)

const chart = root + "/deploy/helm/rolecall"

// helm runs helm, which is a tool of this module.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, "go", append([]string{"tool", "helm"}, args...)...)
}

// kinds has a value of the Go type of each kind of object that the chart can have.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                 func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                func() any { return new(appsv1.StatefulSet) },
	"batch/v1 Job":                       func() any { return new(batchv1.Job) },
	"v1 ConfigMap":                       func() any { return new(corev1.ConfigMap) },
	"v1 Service":                         func() any { return new(corev1.Service) },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return new(networkingv1.NetworkPolicy) },
	"networking.k8s.io/v1 Ingress":       func() any { return new(networkingv1.Ingress) },
	"policy/v1 PodDisruptionBudget":      func() any { return new(policyv1.PodDisruptionBudget) },
}

func TestChart(t *testing.T) {
	for values, want := range map[string][]string{
		"postgres": {"ConfigMap", "Deployment", "Job-migrate", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service-operator"},
		"sqlite":   {"ConfigMap", "NetworkPolicy", "Service", "Service-operator", "StatefulSet"},
		"full":     {"ConfigMap", "Deployment", "Ingress", "Job-migrate", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service-operator"},
	} {
		t.Run(values, func(t *testing.T) {
			file := filepath.Join(chart, "ci", values+"-values.yaml")
			helm(t, "lint", "--strict", chart, "--values", file)
			objects := decodeStrictly(t, helm(t, "template", "people", chart, "--kube-version", "1.30.0", "--values", file))
			var got []string
			for kind := range objects {
				got = append(got, kind)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the chart has %v, want %v", got, want)
			}
			base := ""
			if values == "full" {
				base = "/people" // the path of its public-url
				checkFull(t, objects)
			}
			checkServices(t, objects)
			checkPolicy(t, objects["NetworkPolicy"].(*networkingv1.NetworkPolicy))
			checkPods(t, objects, base)
			checkConfig(t, objects["ConfigMap"].(*corev1.ConfigMap))
		})
	}
}

// checkServices checks that the listener for operators has a separate service, which is not published.
func checkServices(t *testing.T, objects map[string]any) {
	t.Helper()
	for name, port := range map[string]string{"Service": "http", "Service-operator": "operator"} {
		spec := objects[name].(*corev1.Service).Spec
		if len(spec.Ports) != 1 || spec.Ports[0].TargetPort.StrVal != port || port == "operator" && spec.Type != corev1.ServiceTypeClusterIP {
			t.Errorf("%s has the type %s and the ports %+v", name, spec.Type, spec.Ports)
		}
	}
}

// checkFull checks that the values of the file full reach the nodes and the migration.
func checkFull(t *testing.T, objects map[string]any) {
	t.Helper()
	node, job := objects["Deployment"].(*appsv1.Deployment).Spec.Template.Spec, objects["Job-migrate"].(*batchv1.Job).Spec.Template.Spec
	for name, pod := range map[string]corev1.PodSpec{"node": node, "migration": job} {
		container := pod.Containers[0]
		env, paths := environment(container), map[string]bool{}
		for _, mount := range container.VolumeMounts {
			paths[mount.MountPath] = true
		}
		if !paths["/etc/authority"] || !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "authority" }) {
			t.Errorf("the %s does not mount the authority: %v", name, paths)
		}
		if env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "" || pod.Affinity == nil {
			t.Errorf("the %s lacks env or affinity: %v %v", name, env, pod.Affinity)
		}
		// The owner migrates, so the direct URL of the role that serves is for the nodes only.
		if direct := env["ROLECALL_DIRECT_DATABASE_FILE"] != ""; direct != (name == "node") {
			t.Errorf("the %s has a direct database: %t", name, direct)
		}
	}
	if got := environment(node.Containers[0])["ROLECALL_OPERATOR_LISTEN"]; got != ":8181" {
		t.Errorf("a node listens for operators on %q, want :8181", got)
	}
}

// checkPolicy checks that the network policy allows named peers, and no peers at the port for operators.
func checkPolicy(t *testing.T, policy *networkingv1.NetworkPolicy) {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) != 1 || rule.Ports[0].Port.StrVal == "operator" {
			t.Errorf("the network policy allows %+v", rule)
		}
	}
	if n := len(policy.Spec.Ingress); n != 2 {
		t.Errorf("the network policy has %d rules, want those of http and metrics", n)
	}
}

// environment returns the variables of the container by name.
func environment(container corev1.Container) map[string]string {
	env := map[string]string{}
	for _, v := range container.Env {
		env[v.Name] = v.Value
	}
	return env
}

// decodeStrictly decodes the documents with the types of Kubernetes. Unknown and repeated members fail the
// test. The key of an object is its kind and the part of its name after that of the release.
func decodeStrictly(t *testing.T, documents string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	reader := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(documents)))
	buffer := make([]byte, 1<<20)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		document := bytes.Clone(buffer[:n])
		var kind struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := strictyaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind == "" {
			continue // only a comment
		}
		create := kinds[kind.APIVersion+" "+kind.Kind]
		if create == nil {
			t.Fatalf("the test does not know %s %s", kind.APIVersion, kind.Kind)
		}
		object := create()
		if err := strictyaml.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %v\n%s", kind.Kind, err, document)
		}
		objects[kind.Kind+strings.TrimPrefix(kind.Metadata.Name, "people-rolecall")] = object
	}
}

// checkPods checks the security of the pods, the paths of their probes, and that a node has enough time to
// stop.
func checkPods(t *testing.T, objects map[string]any, base string) {
	t.Helper()
	for kind, object := range objects {
		var pod corev1.PodSpec
		switch o := object.(type) {
		case *appsv1.Deployment:
			pod = o.Spec.Template.Spec
		case *appsv1.StatefulSet:
			pod = o.Spec.Template.Spec
		case *batchv1.Job:
			pod = o.Spec.Template.Spec
		default:
			continue
		}
		container := pod.Containers[0]
		if c := container.SecurityContext; !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || c.Capabilities.Drop[0] != "ALL" ||
			!*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != imageID || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod has more rights than it needs: %+v %+v", kind, pod.SecurityContext, c)
		}
		if kind == "Job-migrate" {
			continue
		}
		env := environment(container)
		if start := container.StartupProbe.Exec; start == nil || !slices.Equal(start.Command, []string{"/rolecall", "health"}) {
			t.Errorf("%s: the probe of the start is %+v", kind, container.StartupProbe)
		}
		for name, probe := range map[string]*corev1.Probe{"livez": container.LivenessProbe, "readyz": container.ReadinessProbe} {
			if want := base + "/" + name; probe.HTTPGet.Path != want {
				t.Errorf("%s: a probe has the path %s, want %s", kind, probe.HTTPGet.Path, want)
			}
		}
		drain, ready := duration(t, env["ROLECALL_DRAIN"]), container.ReadinessProbe
		if notices := int64(ready.PeriodSeconds * ready.FailureThreshold); drain < notices {
			t.Errorf("%s: a node drains for %d s, but Kubernetes notices after %d s", kind, drain, notices)
		}
		const stop = 37 // six seconds for open connections, six for the last ones, 20 for requests in progress, and five for the last spans
		if *pod.TerminationGracePeriodSeconds < drain+stop {
			t.Errorf("%s: the grace period of %d s is too short for a drain of %d s", kind, *pod.TerminationGracePeriodSeconds, drain)
		}
	}
}

func duration(t *testing.T, text string) int64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return int64(d / time.Second)
}

// checkConfig checks the settings of the chart with the program.
func checkConfig(t *testing.T, config *corev1.ConfigMap) {
	t.Helper()
	folder := t.TempDir()
	file := write(t, folder, "rolecall.yaml", config.Data["rolecall.yaml"])
	check := exec.Command(program, "config", "check", "--config", file, "--database", filepath.Join(folder, "new.db"))
	if strings.Contains(config.Data["rolecall.yaml"], "mail-from") {
		check.Env = append(os.Environ(), "ROLECALL_SMTP_FILE="+write(t, folder, "smtp-url", "smtps://rolecall:password@mail.example.com\n"))
	}
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("config check: %v\n%s", err, out)
	}
}

// TestChartRefusesMistakes checks the schema of the values.
func TestChartRefusesMistakes(t *testing.T) {
	for set, says := range map[string]string{
		"replica=3":                      "replica",
		"store=mysql":                    "store",
		"config.database=postgres://a@b": "database",
		"drainSeconds=soon":              "drainSeconds",
		"config.operator-listen=:8085":   "operator-listen",
	} {
		command := exec.Command("go", "tool", "helm", "template", "people", chart, "--kube-version", "1.30.0", "--set", set)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
			t.Errorf("--set %s: %v\n%s", set, err, out)
		}
	}
}
