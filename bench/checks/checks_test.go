package checks

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/rolecall/rolecall/client"
)

const (
	permission = "shop/invoices:approve"
	ticks      = 100 // per second, in /proc
)

// service is the demo that all benchmarks use.
var service demo

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	folder, err := os.MkdirTemp("", "rolecall-checks")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if service, err = start(context.Background(), folder); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, service.process.Process.Signal(os.Interrupt), service.process.Wait()) }()
	return m.Run(), nil
}

// demo is a running demo, and the token of a session of its owner.
type demo struct {
	Address, Tenant, Email, Password string

	process *exec.Cmd
	header  http.Header
}

func start(ctx context.Context, folder string) (d demo, err error) {
	program := filepath.Join(folder, "rolecall")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/rolecall")
	build.Dir = filepath.Join("..", "..") // the module of the program
	if output, err := build.CombinedOutput(); err != nil {
		return d, fmt.Errorf("the program does not build: %w\n%s", err, output)
	}
	d.process = exec.Command(program, "serve", "--demo", "--json", "--listen", "127.0.0.1:0", "--database", filepath.Join(folder, "demo.db"))
	d.process.Dir = folder
	output, err := d.process.StdoutPipe()
	if err != nil {
		return d, err
	}
	if err := d.process.Start(); err != nil {
		return d, err
	}
	if err := json.NewDecoder(output).Decode(&d); err != nil {
		return d, err
	}
	c := client.NewBearer(d.Address, d.Tenant, nil)
	if _, err := c.Login(ctx, d.Email, d.Password); err != nil {
		return d, err
	}
	d.header = http.Header{"Authorization": {"Bearer " + c.Token()}}
	return d, nil
}

// BenchmarkOverHTTP reports the processor time of the service, and that of its caller, per check.
func BenchmarkOverHTTP(b *testing.B) {
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, service.Address+"/auths/check?permission="+permission, nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header = service.header.Clone()
	request.Header.Set("X-Tenant-Schema", service.Tenant)
	before, err := processorTime(service.process.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	used := processorTimeOfThis(b)
	for b.Loop() {
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusNoContent {
			b.Fatal(answer.Status, err)
		}
	}
	b.ReportMetric(float64((processorTimeOfThis(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
	after, err := processorTime(service.process.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((after-before).Nanoseconds())/float64(b.N), "service-ns/op")
}

// BenchmarkInMemory measures the check of the Go client while it follows the changes.
func BenchmarkInMemory(b *testing.B) {
	token, err := service.feedToken(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	p := client.NewPrincipals(client.PrincipalsConfig{Base: service.Address, Tenant: service.Tenant, FeedToken: token})
	defer p.Close()
	for first := (*client.Principal)(nil); ; { // the memory is empty until the feed has begun
		caller, err := p.Get(b.Context(), service.header)
		if err != nil {
			b.Fatal(err)
		}
		if caller == first {
			break
		}
		first = caller
	}
	used := processorTimeOfThis(b)
	for b.Loop() {
		caller, err := p.Get(b.Context(), service.header)
		if err != nil || !client.Can(caller, permission, "") {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTimeOfThis(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func (d *demo) feedToken(ctx context.Context) (string, error) {
	send := func(method, path string, body any) (made struct{ ID, Token string }, err error) {
		encoded, err := json.Marshal(body)
		if err != nil {
			return made, err
		}
		request, err := http.NewRequestWithContext(ctx, method, d.Address+path, strings.NewReader(string(encoded)))
		if err != nil {
			return made, err
		}
		request.Header = d.header.Clone()
		request.Header.Set("X-Tenant-Schema", d.Tenant)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", rand.Text())
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return made, err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode >= http.StatusBadRequest {
			return made, fmt.Errorf("%s: %s, %v", path, text, err)
		}
		return made, json.Unmarshal(text, &made)
	}
	role, err := send(http.MethodPost, "/roles", map[string]any{"name": "Follower", "permissions": []string{"changes:read"}})
	if err != nil {
		return "", err
	}
	account, err := send(http.MethodPost, "/service-accounts", map[string]any{"name": "Follower"})
	if err != nil {
		return "", err
	}
	path := "/service-accounts/" + account.ID
	if _, err := send(http.MethodPut, path+"/roles/"+role.ID, map[string]any{}); err != nil {
		return "", err
	}
	token, err := send(http.MethodPost, path+"/tokens", map[string]any{"name": "Follower", "permissions": []string{"changes:read"}, "expiresAt": time.Now().Add(time.Hour)})
	return token.Token, err
}

// claims are those of a JWT with permissions.
type claims struct {
	Permissions []string `json:"permissions"`
	jwt.RegisteredClaims
}

// BenchmarkSignedToken verifies a JWT that has the permissions of an owner, and checks the permission.
func BenchmarkSignedToken(b *testing.B) {
	ofEC, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	public, ofEd, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	ofRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	shared := []byte(rand.Text() + rand.Text())
	for _, kind := range []struct {
		method          jwt.SigningMethod
		private, public any
	}{
		{jwt.SigningMethodHS256, shared, shared}, {jwt.SigningMethodES256, ofEC, ofEC.Public()},
		{jwt.SigningMethodEdDSA, ofEd, public}, {jwt.SigningMethodRS256, ofRSA, ofRSA.Public()},
	} {
		content := claims{[]string{"*/*:*", "*:*"}, jwt.RegisteredClaims{Subject: rand.Text(), ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}}
		signed, err := jwt.NewWithClaims(kind.method, content).SignedString(kind.private)
		if err != nil {
			b.Fatal(err)
		}
		parser := jwt.NewParser(jwt.WithValidMethods([]string{kind.method.Alg()}), jwt.WithExpirationRequired())
		b.Run(kind.method.Alg(), func(b *testing.B) {
			used := processorTimeOfThis(b)
			for b.Loop() {
				var c claims
				_, err := parser.ParseWithClaims(signed, &c, func(*jwt.Token) (any, error) { return kind.public, nil })
				if err != nil || !client.Can(&client.Principal{Permissions: c.Permissions}, permission, "") {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTimeOfThis(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime returns the processor time that the process has used.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * time.Second / ticks, nil
}

// processorTimeOfThis returns the processor time that this process has used. Unlike the time of a
// benchmark, it does not depend on the load of the machine.
func processorTimeOfThis(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
