package peers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/bench/load"
)

// pocketBase is PocketBase, built as a program from a separate module. The session
// operation is the refresh of a token, because PocketBase checks a token with this
// request.
type pocketBase struct{}

func (pocketBase) About() About {
	return About{Name: "PocketBase", Version: "0.36.8", Store: "SQLite (set to synchronous FULL)", Hash: "bcrypt, cost 10"}
}

// Fetch builds the program at every call. Repeated builds are fast, because go build caches its
// results.
func (pocketBase) Fetch(ctx context.Context, cache string) (program string, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/rolecall/rolecall").Output()
	if err != nil {
		return "", fmt.Errorf("the source of PocketBase's program is not found: %w", err)
	}
	program = filepath.Join(cache, "pocketbase")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(root)), "bench", "peers", "pocketbase")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return program, nil
}

func (p pocketBase) Prepare(ctx context.Context, s *Service) error {
	return s.run(exec.CommandContext(ctx, s.Program, "superuser", "upsert", admin, password, p.data(s)))
}

func (p pocketBase) Command(s *Service) *exec.Cmd {
	return exec.Command(s.Program, "serve", "--http", s.Address, p.data(s))
}

func (pocketBase) data(s *Service) string { return "--dir=" + filepath.Join(s.Folder, "data") }

func (pocketBase) Ready() string { return "/api/health" }

// Fill creates the users with PocketBase's cheapest hash, because each must have a password.
// The users who sign in get its default hash.
func (p pocketBase) Fill(ctx context.Context, s *Service, users int) error {
	const cheapest, byDefault = 4, 10
	token, err := p.signIn(ctx, s, "_superusers", admin)
	if err != nil {
		return err
	}
	if err := p.setCost(ctx, s, token, cheapest); err != nil {
		return err
	}
	secret := fmt.Sprintf(`"password":%[1]q,"passwordConfirm":%[1]q,`, password)
	if err := s.send(ctx, p.creations(s, token, "users", secret), http.StatusOK, users-people); err != nil {
		return err
	}
	if err := p.setCost(ctx, s, token, byDefault); err != nil {
		return err
	}
	for n := range people {
		account := map[string]string{"email": person(n), "name": "Ada Lovelace", "password": password, "passwordConfirm": password}
		if _, err := s.call(ctx, http.MethodPost, "/api/collections/users/records", authorization(token), account, nil); err != nil {
			return err
		}
	}
	// A collection without passwords. Its records are the users that the create operation creates,
	// without a hash.
	_, err = s.call(ctx, http.MethodPost, "/api/collections", authorization(token), map[string]any{
		"name": "people", "type": "base",
		"fields":  []any{map[string]any{"name": "email", "type": "email", "required": true}, map[string]any{"name": "name", "type": "text"}},
		"indexes": []string{"CREATE UNIQUE INDEX people_email ON people (email)"},
	}, nil)
	return err
}

// setCost sets the cost of the hash of new passwords.
func (pocketBase) setCost(ctx context.Context, s *Service, token string, cost int) error {
	const path = "/api/collections/users"
	var collection struct{ Fields []map[string]any }
	if _, err := s.call(ctx, http.MethodGet, path, authorization(token), nil, &collection); err != nil {
		return err
	}
	for _, field := range collection.Fields {
		if field["type"] == "password" {
			field["cost"] = cost
		}
	}
	_, err := s.call(ctx, http.MethodPatch, path, authorization(token), map[string]any{"fields": collection.Fields}, nil)
	return err
}

func (p pocketBase) Plan(ctx context.Context, s *Service) ([]Operation, error) {
	token, err := p.signIn(ctx, s, "_superusers", admin)
	if err != nil {
		return nil, err
	}
	const path = "/api/collections/users"
	requests := map[string][]string{
		"page":   {s.request(http.MethodGet, path+"/records?perPage=50&skipTotal=1", "", "Authorization: "+token)},
		"create": p.creations(s, token, "people", ""),
	}
	for page := 1; ; page++ {
		var list struct{ Items []struct{ ID string } }
		if _, err := s.call(ctx, http.MethodGet, fmt.Sprintf("%s/records?perPage=1000&skipTotal=1&page=%d", path, page), authorization(token), nil, &list); err != nil {
			return nil, err
		}
		if len(list.Items) == 0 {
			break
		}
		for _, user := range list.Items {
			requests["read"] = append(requests["read"], s.request(http.MethodGet, path+"/records/"+user.ID, "", "Authorization: "+token))
		}
	}
	for n := range people {
		own, err := p.signIn(ctx, s, "users", person(n))
		if err != nil {
			return nil, err
		}
		requests["session"] = append(requests["session"], s.request(http.MethodPost, path+"/auth-refresh", "", "Authorization: "+own))
		requests["login"] = append(requests["login"], s.request(http.MethodPost, path+"/auth-with-password", fmt.Sprintf(`{"identity":%q,"password":%q}`, person(n), password), jsonBody))
	}
	return operations(requests, http.StatusOK), nil
}

func (pocketBase) creations(s *Service, token, collection, secret string) (requests []string) {
	for _, name := range names {
		body := fmt.Sprintf(`{%s"email":"user-%s@example.com","name":"%s %s"}`, secret, load.Number, name[0], name[1])
		requests = append(requests, s.request(http.MethodPost, "/api/collections/"+collection+"/records", body, jsonBody, "Authorization: "+token))
	}
	return requests
}

// signIn signs a user of the collection in and returns a token.
func (pocketBase) signIn(ctx context.Context, s *Service, collection, email string) (string, error) {
	var answer struct{ Token string }
	_, err := s.call(ctx, http.MethodPost, "/api/collections/"+collection+"/auth-with-password", nil, map[string]string{"identity": email, "password": password}, &answer)
	return answer.Token, err
}

func authorization(token string) http.Header { return http.Header{"Authorization": {token}} }
