package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/nicksnyder/go-i18n/v2/i18n"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// messageForms returns the forms of each message of the catalog, by its key.
func messageForms(t *testing.T) map[string][]string {
	t.Helper()
	list, err := i18n.ParseMessageBytes(englishMessages, toml.Unmarshal)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string][]string{}
	for _, m := range list {
		forms[m.ID] = []string{m.Other}
		if m.One != "" {
			forms[m.ID] = append(forms[m.ID], m.One)
		}
	}
	return forms
}

// sources returns the parsed Go files of the console, without the tests.
func sources(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	set, parsed := token.NewFileSet(), map[string]*ast.File{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if parsed[name], err = parser.ParseFile(set, name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return set, parsed
}

// literals calls do for each string literal in the node. call is the name of the function
// that receives the literal as an argument. It is empty if no function does.
func literals(node ast.Node, do func(text, call string, at token.Pos)) {
	calls := map[ast.Expr]string{}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				return false
			}
		case *ast.CallExpr:
			for _, argument := range n.Args {
				switch function := n.Fun.(type) {
				case *ast.Ident:
					calls[argument] = function.Name
				case *ast.SelectorExpr:
					calls[argument] = function.Sel.Name
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, _ := strconv.Unquote(n.Value)
				do(text, calls[n], n.Pos())
			}
		}
		return true
	})
}

// families are the keys that are made of a prefix in the source and one of these words.
func families() map[string][]string {
	all := map[string][]string{
		signedOutPrefix: {"signed-out", "password-reset", "email-changed", "reset-requested", "second-factor-required"},
		statusPrefix:    {"pending", "active", "suspended", "deleted"},
		viaPrefix:       {"token", "command", "mail", "scim"},
		obstaclePrefix:  {"tenant-suspended", "user-suspended", "user-pending", "invitation-void", "invitation-expired", "no-password", "no-identity", "second-factor-enrolment-required", "second-factor-unusable"},
		donePrefix: {
			"saved", "user-created", "user-invited", "email-asked", "session-ended", "role-created", "role-deleted", "role-given", "role-taken", "roles-copied", "restored", "group-created", "group-deleted", "member-added", "member-removed",
			"password-changed", "app-added", "app-removed", "codes-made", "passkey-added", "passkey-removed", "service-account-created", "token-revoked", jobStarted, "logo-set", "logo-removed",
		},
		keywordsPrefix:    {"new-user.title", "nav.invitations", "nav.access", "nav.jobs", "nav.your-account", "nav.deleted", "nav.events", "nav.directories", "settings.edit"},
		"logo.":           {"length", "format", "type", "range"},
		"time.ago-":       {"minutes", "hours"},
		"time.in-":        {"minutes", "hours"},
		"settings.scope-": {string(rolecall.SecondFactorOfNobody), string(rolecall.SecondFactorOfAll), string(rolecall.SecondFactorOfRoles)},
	}
	for _, known := range reworded {
		all[detailPrefix] = append(all[detailPrefix], known.Code)
	}
	all[faultPrefix] = []string{"reach/departments.too-few", "code.wrong", "settings/secondFactor/roles.required", "types.too-few", "types.conflict"}
	for _, a := range slices.Concat(actions, serviceAccountActions) {
		all[a.key+"."] = []string{"label", "title", "detail"}
		all[donePrefix] = append(all[donePrefix], a.done)
	}
	for _, a := range append(slices.Clone(webhookActions), *rotateSecret) {
		all[a.key+"."] = []string{"label", "title", "detail"}
		if a.done != "" {
			all[donePrefix] = append(all[donePrefix], a.done)
		}
	}
	all[donePrefix] = append(all[donePrefix], "webhook-replayed")
	all[donePrefix] = append(all[donePrefix], "connection-created", "connection-deleted", "identity-removed", "identity-added")
	all[failurePrefix] = []string{signin.CodeRefused, signin.CodeIdentityUnknown, rolecall.ErrConnectionUnavailable.Code, rolecall.ErrCodeInvalid.Code, rolecall.ErrUserSuspended.Code, rolecall.ErrTooManyAttempts.Code}
	all["connections.linking-"] = []string{string(rolecall.LinkInvited), string(rolecall.LinkVerifiedEmail)}
	all["connections.groups-by-"] = []string{string(rolecall.MatchName), string(rolecall.MatchExternalID)}
	all["connections.groups-match-"] = all["connections.groups-by-"]
	all["groups.source-"] = []string{string(rolecall.SourceConnection), string(rolecall.SourceDirectory)}
	all["connections.factor-"] = []string{string(rolecall.FactorRequire), string(rolecall.FactorTrust)}
	all[donePrefix] = append(all[donePrefix], "directory-created", "directory-deleted", "directory-token-revoked")
	for _, a := range directoryActions {
		all[a.key+"."] = []string{"label", "title", "detail"}
		all[donePrefix] = append(all[donePrefix], a.done)
	}
	for _, value := range slices.Concat(matchings, deprovisionings) {
		all["directories."] = append(all["directories."], value, value+"-effect")
	}
	for _, p := range provisioners {
		all[p+"."] = []string{"name", "where", "enter"}
	}
	all["settings.passwords-"] = []string{string(rolecall.PasswordsOfAll), string(rolecall.PasswordsOfOwners)}
	for _, provider := range providers {
		all[provider+"."] = []string{"name", "where", "redirect", "issuer"}
		for _, optional := range []string{"signed-out", "note"} {
			if hasMessage(provider + "." + optional) {
				all[provider+"."] = append(all[provider+"."], optional)
			}
		}
	}
	all["webhooks.error-"] = []string{"redirect", "timeout", "address-refused", "name-unresolved", "tls", "connection", "permission-denied", "service-account-suspended", "service-account-deleted", "secret-unreadable"}
	all["webhooks.state-"] = []string{string(webhooks.StateEnabled), string(webhooks.StateFailing), string(webhooks.StateBlocked), string(webhooks.StateDisabled)}
	all["webhooks.reason-"] = []string{rolecall.WebhookGone, rolecall.WebhookFailing, rolecall.WebhookUnattended}
	for i := range bulkActions {
		all[bulkActions[i].key+"."] = []string{"label", "title", "detail", "outcome"}
		if bulkActions[i].opposite != "" {
			all[bulkActions[i].key+"."] = append(all[bulkActions[i].key+"."], "these", "undo")
		}
	}
	for _, d := range rolecall.EventDescriptions() {
		if d.Subjects[0] == rolecall.SubjectOperatorKey {
			continue // only in the operators' log, which the console does not show
		}
		all[eventPrefix] = append(all[eventPrefix], string(d.Type))
		all[sentencePrefix] = append(all[sentencePrefix], string(d.Type))
		for _, suffix := range []string{ownSuffix, unknownSuffix, groupSuffix} {
			if hasMessage(sentencePrefix + string(d.Type) + suffix) {
				all[sentencePrefix] = append(all[sentencePrefix], string(d.Type)+suffix)
			}
		}
	}
	for m := range rolecall.AllUserMembers.All() {
		all[memberPrefix] = append(all[memberPrefix], m.String())
	}
	for _, p := range append(rolecall.OwnPermissions(), rolecall.AllOwn, rolecall.AllApplications) {
		if p.Field == "" || p == rolecall.UsersEmail {
			all[permissionPrefix] = append(all[permissionPrefix], p.String())
		}
	}
	for i := range bulkActions {
		all[bulkActions[i].key+"."] = append(all[bulkActions[i].key+"."], "title-at-least")
	}
	for _, action := range []rolecall.JobAction{rolecall.JobSuspend, rolecall.JobResume, rolecall.JobAssignRole, rolecall.JobUnassignRole} {
		all["jobs."] = append(all["jobs."], string(action)+"-title")
	}
	all["jobs.problem-"] = []string{"unauthenticated", "permission-denied", "beyond-own-permissions", "field-not-readable", "validation", "not-found", "internal", "other"}
	all["jobs.refused-"] = []string{"permission-denied", "beyond-own-permissions", "last-owner", "other"}
	for _, w := range settingTexts {
		all[w.key()+"."] = []string{"label", "detail"}
		if w.weakens {
			all[w.key()+"."] = append(all[w.key()+"."], "weaker")
		}
	}
	return all
}

func TestEachMessageIsInTheCatalogAndUsed(t *testing.T) {
	forms, used := messageForms(t), map[string]bool{}
	for prefix, words := range families() {
		for _, word := range words {
			key := prefix + word
			if used[key] = true; forms[key] == nil {
				t.Errorf("%s is not in messages/en.toml", key)
			}
		}
	}
	_, files := sources(t)
	for name, file := range files {
		literals(file, func(text, call string, _ token.Pos) {
			if (call == "msg" || call == "say") && strings.Contains(text, ".") && !strings.Contains(text, " ") && forms[text] == nil && !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is not in messages/en.toml", name, text)
			}
			used[text] = true
		})
	}
	scripts, _ := filepath.Glob("assets/*.js")
	for _, name := range scripts {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`\bwords\.([a-zA-Z]+)`).FindAllSubmatch(source, -1) {
			key := scriptPrefix + string(match[1])
			if used[key] = true; forms[key] == nil && !strings.HasSuffix(name, ".min.js") {
				t.Errorf("%s: %s is not in messages/en.toml", name, key)
			}
		}
	}
	for key, texts := range forms {
		if !used[key] {
			t.Errorf("%s is in the catalog, and nothing uses it", key)
		}
		for _, text := range texts {
			if strings.TrimSpace(text) == "" || text != strings.TrimSpace(text) {
				t.Errorf("%s is empty, or begins or ends with a space", key)
			}
		}
	}
}

// placeholders returns the names of the placeholders in the text, sorted.
func placeholders(text string) (names []string) {
	for _, match := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestEachPlaceholderHasAValue(t *testing.T) {
	forms := messageForms(t)
	set, files := sources(t)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, _ := call.Fun.(*ast.Ident)
			key, isText := call.Args[0].(*ast.BasicLit)
			if function == nil || function.Name != "msg" && function.Name != "say" || !isText {
				return true
			}
			name, _ := strconv.Unquote(key.Value)
			var given []string
			for i := 1; i < len(call.Args); i += 2 {
				if text, ok := call.Args[i].(*ast.BasicLit); ok {
					value, _ := strconv.Unquote(text.Value)
					given = append(given, value)
				}
			}
			slices.Sort(given)
			for _, text := range forms[name][:min(1, len(forms[name]))] {
				if want := placeholders(text); !slices.Equal(given, want) {
					t.Errorf("%s: %s is given %v, and has %v", set.Position(call.Pos()), name, given, want)
				}
			}
			return true
		})
	}
}

func TestMessagesAreFilledIn(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{msg("user.count", "Count", 1), "1 user"},
		{msg("user.count", "Count", 1234), "1,234 users"},
		{msg("no.such-message"), "no.such-message"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
