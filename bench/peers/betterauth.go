package peers

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/bench/load"
)

// betterAuthFiles are a service with better-auth and the packages that it needs.
//
//go:embed betterauth/package.json betterauth/package-lock.json betterauth/server.mjs
var betterAuthFiles embed.FS

const betterAuthVersion = "1.7.25"

// betterAuth is better-auth on PostgreSQL, with a Node.js process for each core.
type betterAuth struct{}

func (betterAuth) About() About {
	return About{Name: "better-auth", Version: betterAuthVersion, Store: PostgreSQL, Hash: "argon2id, 19 MiB, 2 passes (set)", Compiles: true}
}

// Fetch installs the packages of package-lock.json, which has their checksums.
func (betterAuth) Fetch(ctx context.Context, cache string) (program string, err error) {
	folder, err := inCache(cache, "better-auth-"+betterAuthVersion, func(folder string) error {
		if err := copyBetterAuth(folder, "package.json", "package-lock.json"); err != nil {
			return err
		}
		install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = folder
		if output, err := install.CombinedOutput(); err != nil {
			return fmt.Errorf("npm ci: %w\n%s", err, output)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "server.mjs"), copyBetterAuth(folder, "server.mjs")
}

func copyBetterAuth(folder string, names ...string) error {
	for _, name := range names {
		content, err := betterAuthFiles.ReadFile("betterauth/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b betterAuth) Prepare(ctx context.Context, s *Service) error {
	command := exec.CommandContext(ctx, "node", s.Program, "migrate")
	command.Env = append(b.environment(s), "ADMIN_EMAIL="+admin, "ADMIN_PASSWORD="+password)
	return s.run(command)
}

func (b betterAuth) Command(s *Service) *exec.Cmd {
	command := exec.Command("node", s.Program)
	command.Env = b.environment(s)
	return command
}

func (betterAuth) environment(s *Service) []string {
	return append(os.Environ(), "NODE_ENV=production", "BASE_URL="+s.URL(), "DATABASE_URL="+s.Database, "SECRET=a secret of a measurement, no more")
}

func (betterAuth) Ready() string { return "/api/auth/ok" }

func (b betterAuth) Fill(ctx context.Context, s *Service, users int) error {
	cookie, err := b.signIn(ctx, s, admin)
	if err != nil {
		return err
	}
	for n := range people {
		account := map[string]string{"email": person(n), "name": "Ada Lovelace", "password": password}
		if _, err := s.call(ctx, http.MethodPost, "/api/auth/admin/create-user", b.header(s, cookie), account, nil); err != nil {
			return err
		}
	}
	return s.send(ctx, b.creations(s, cookie), http.StatusOK, users-people-1)
}

func (b betterAuth) Plan(ctx context.Context, s *Service) ([]Operation, error) {
	cookie, err := b.signIn(ctx, s, admin)
	if err != nil {
		return nil, err
	}
	var list struct{ Users []struct{ ID string } }
	if _, err := s.call(ctx, http.MethodGet, "/api/auth/admin/list-users?limit=1000000", b.header(s, cookie), nil, &list); err != nil {
		return nil, err
	}
	requests := map[string][]string{
		"page":   {s.request(http.MethodGet, "/api/auth/admin/list-users?limit=50", "", "Cookie: "+cookie)},
		"create": b.creations(s, cookie),
	}
	for _, user := range list.Users {
		requests["read"] = append(requests["read"], s.request(http.MethodGet, "/api/auth/admin/get-user?id="+user.ID, "", "Cookie: "+cookie))
	}
	for n := range people {
		own, err := b.signIn(ctx, s, person(n))
		if err != nil {
			return nil, err
		}
		requests["session"] = append(requests["session"], s.request(http.MethodGet, "/api/auth/get-session", "", "Cookie: "+own))
		requests["login"] = append(requests["login"], s.request(http.MethodPost, "/api/auth/sign-in/email", fmt.Sprintf(`{"email":%q,"password":%q}`, person(n), password), jsonBody, "Origin: "+s.URL()))
	}
	return operations(requests, http.StatusOK), nil
}

func (betterAuth) creations(s *Service, cookie string) (requests []string) {
	for _, name := range names {
		body := fmt.Sprintf(`{"email":"user-%s@example.com","name":"%s %s"}`, load.Number, name[0], name[1])
		requests = append(requests, s.request(http.MethodPost, "/api/auth/admin/create-user", body, jsonBody, "Origin: "+s.URL(), "Cookie: "+cookie))
	}
	return requests
}

// signIn signs a user in and returns the session cookie.
func (b betterAuth) signIn(ctx context.Context, s *Service, email string) (cookie string, err error) {
	header, err := s.call(ctx, http.MethodPost, "/api/auth/sign-in/email", b.header(s, ""), map[string]string{"email": email, "password": password}, nil)
	if err != nil {
		return "", err
	}
	cookie, _, _ = strings.Cut(header.Get("Set-Cookie"), ";")
	return cookie, nil
}

// header returns the request header of a browser that shows a page of the service.
func (betterAuth) header(s *Service, cookie string) http.Header {
	header := http.Header{"Origin": {s.URL()}}
	if cookie != "" {
		header.Set("Cookie", cookie)
	}
	return header
}
