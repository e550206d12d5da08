package peers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/bench/load"
)

const (
	keycloakVersion = "26.7.3"
	keycloakSum     = "77657f30b7e90d70f727712ce1c967f430fd6a5e9f458d32d8c6df0635345f47"
)

// keycloak is Keycloak on PostgreSQL, one node. Users sign in with the password
// grant, and "who am I" is the userinfo endpoint, which looks the session up.
type keycloak struct{}

func (keycloak) About() About {
	return About{Name: "Keycloak", Version: keycloakVersion, Store: PostgreSQL, Hash: "argon2id, 19 MiB, 2 passes (set)", Compiles: true}
}

func (keycloak) Fetch(ctx context.Context, cache string) (program string, err error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", err
	}
	name := "keycloak-" + keycloakVersion
	folder, err := inCache(cache, name, func(folder string) error {
		const distribution = "https://repo.maven.apache.org/maven2/org/keycloak/keycloak-quarkus-dist/" +
			keycloakVersion + "/keycloak-quarkus-dist-" + keycloakVersion + ".tar.gz"
		if err := unpack(ctx, distribution, keycloakSum, folder); err != nil {
			return err
		}
		build := exec.CommandContext(ctx, filepath.Join(folder, "bin", "kc.sh"), "build", "--db=postgres")
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("kc.sh build: %w\n%s", err, output)
		}
		return nil
	})
	return filepath.Join(folder, "bin", "kc.sh"), err
}

// Prepare has nothing to do: Keycloak makes its tables when it starts.
func (keycloak) Prepare(context.Context, *Service) error { return nil }

func (keycloak) Command(s *Service) *exec.Cmd {
	database, err := url.Parse(s.Database)
	if err != nil {
		panic(err) // NewDatabase has returned it
	}
	host, port, _ := strings.Cut(s.Address, ":")
	command := exec.Command(s.Program, "start", "--optimized", "--cache=local",
		"--http-enabled=true", "--http-host="+host, "--http-port="+port, "--hostname="+s.URL(),
		"--db-url=jdbc:postgresql://"+database.Host+database.Path, "--db-username="+database.User.Username(), "--db-password=none",
		"--spi-password-hashing--argon2--memory=19456", "--spi-password-hashing--argon2--iterations=2")
	command.Env = append(os.Environ(), "KC_BOOTSTRAP_ADMIN_USERNAME="+admin, "KC_BOOTSTRAP_ADMIN_PASSWORD="+password)
	return command
}

func (keycloak) Ready() string { return "/realms/master" }

// Fill creates a realm with an administrator and the users who sign in, and then the other
// users one by one.
func (k keycloak) Fill(ctx context.Context, s *Service, users int) error {
	token, err := k.signIn(ctx, s, "master", "admin-cli", admin)
	if err != nil {
		return err
	}
	realm := map[string]any{
		"realm": "bench", "enabled": true,
		"accessTokenLifespan": 3600, // longer than the measurement
		"clients":             []any{map[string]any{"clientId": "app", "publicClient": true, "directAccessGrantsEnabled": true}},
	}
	accounts := []any{}
	for n := range people {
		accounts = append(accounts, k.account(person(n)))
	}
	administrator := k.account(admin)
	administrator["clientRoles"] = map[string]any{"realm-management": []string{"realm-admin"}}
	realm["users"] = append(accounts, administrator)
	if _, err := s.call(ctx, http.MethodPost, "/admin/realms", bearer(token), realm, nil); err != nil {
		return err
	}
	if token, err = k.signIn(ctx, s, "bench", "app", admin); err != nil {
		return err
	}
	return s.send(ctx, k.creations(s, token), http.StatusCreated, users-people-1)
}

func (k keycloak) Plan(ctx context.Context, s *Service) ([]Operation, error) {
	token, err := k.signIn(ctx, s, "bench", "app", admin)
	if err != nil {
		return nil, err
	}
	authorization := "Authorization: Bearer " + token
	const path = "/admin/realms/bench/users"
	var list []struct{ ID string }
	if _, err := s.call(ctx, http.MethodGet, path+"?briefRepresentation=true&max=1000000", bearer(token), nil, &list); err != nil {
		return nil, err
	}
	requests := map[string][]string{
		"page":   {s.request(http.MethodGet, path+"?briefRepresentation=true&max=50", "", authorization)},
		"create": k.creations(s, token),
	}
	for _, user := range list {
		requests["read"] = append(requests["read"], s.request(http.MethodGet, path+"/"+user.ID, "", authorization))
	}
	for n := range people {
		own, err := k.signIn(ctx, s, "bench", "app", person(n))
		if err != nil {
			return nil, err
		}
		requests["session"] = append(requests["session"], s.request(http.MethodGet, "/realms/bench/protocol/openid-connect/userinfo", "", "Authorization: Bearer "+own))
		requests["login"] = append(requests["login"], s.request(http.MethodPost, tokenPath("bench"), k.grant("app", person(n)).Encode(), "Content-Type: application/x-www-form-urlencoded"))
	}
	return operations(requests, http.StatusCreated), nil
}

// account returns a user who can sign in.
func (keycloak) account(email string) map[string]any {
	return map[string]any{
		"username": email, "email": email, "emailVerified": true, "firstName": "Ada", "lastName": "Lovelace", "enabled": true,
		"credentials": []any{map[string]any{"type": "password", "value": password}},
	}
}

func (keycloak) creations(s *Service, token string) (requests []string) {
	for _, name := range names {
		body := fmt.Sprintf(`{"username":"user-%[1]s@example.com","email":"user-%[1]s@example.com","firstName":%[2]q,"lastName":%[3]q,"enabled":true}`, load.Number, name[0], name[1])
		requests = append(requests, s.request(http.MethodPost, "/admin/realms/bench/users", body, jsonBody, "Authorization: Bearer "+token))
	}
	return requests
}

func tokenPath(realm string) string { return "/realms/" + realm + "/protocol/openid-connect/token" }

// grant returns the form that signs a user in.
func (keycloak) grant(client, username string) url.Values {
	return url.Values{"grant_type": {"password"}, "client_id": {client}, "scope": {"openid"}, "username": {username}, "password": {password}}
}

// signIn signs a user in and returns an access token.
func (k keycloak) signIn(ctx context.Context, s *Service, realm, client, username string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+tokenPath(realm), strings.NewReader(k.grant(client, username).Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token string `json:"access_token"`
	}
	_, err = do(request, &answer)
	return answer.Token, err
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
