package httpapi

import (
	"html"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestEveryOperationHasAPage(t *testing.T) {
	edge := atBase(t, "/id")
	index := fetch(edge, "/id/docs").Body.String()
	for _, op := range declared {
		if !strings.Contains(index, `href="/id/docs/operations/`+op.ID+`"`) {
			t.Errorf("/docs does not list %s", op.ID)
		}
		response := fetch(edge, "/id/docs/operations/"+op.ID)
		page := html.UnescapeString(codeTags.ReplaceAllString(response.Body.String(), ""))
		if response.Code != http.StatusOK {
			t.Errorf("%s: status %d", op.ID, response.Code)
			continue
		}
		wants := []string{op.Summary, op.Path, "curl "}
		for _, p := range describedOperation(op).Parameters {
			name := strings.TrimPrefix(p.Ref, "#/components/parameters/")
			wants = append(wants, builtDocument().Components.Parameters[name].Description)
		}
		for _, problems := range op.ProblemsByStatus(catalogue) {
			for _, known := range problems {
				wants = append(wants, `href="/id/problems/`+known.Code+`"`)
			}
		}
		for _, want := range wants {
			if !strings.Contains(page, strings.ReplaceAll(want, "`", "")) {
				t.Errorf("the page of %s does not have %q", op.ID, want)
			}
		}
	}
	if got := fetch(edge, "/id/docs/operations/UsersController_unknown").Code; got != http.StatusNotFound {
		t.Errorf("an unknown operation has status %d, want 404", got)
	}
}

var codeTags = regexp.MustCompile(`</?code>`)

func TestTheReferenceListsMembersOfMembers(t *testing.T) {
	page := fetch(atBase(t, ""), "/docs/operations/UsersController_listUsers").Body.String()
	for _, want := range []string{"<code>items[].email</code>", "string (uuid)", "at least 1; default "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}

// The search for "DELETE /roles/" must leave out operations with only one of the words.
func TestTheReferenceListsOperationsWithAllWordsOfASearch(t *testing.T) {
	page := fetch(atBase(t, ""), "/docs?q=DELETE+/roles/").Body.String()
	for id, want := range map[string]bool{
		"RolesController_deleteRole": true, "UsersController_unassignRole": true,
		"UsersController_resetFactors": false, "RolesController_getRole": false, "UsersController_listUsers": false,
	} {
		if got := strings.Contains(page, `/docs/operations/`+id+`"`); got != want {
			t.Errorf("the search for DELETE /roles/ lists %s: %v, want %v", id, got, want)
		}
	}
}

func TestASearchWithoutResultHasAMessageWithTheEscapedWords(t *testing.T) {
	page := fetch(atBase(t, ""), "/docs?q=%3Cscript%3E").Body.String()
	if want := "No operation matches “&lt;script&gt;”"; !strings.Contains(page, want) || strings.Contains(page, "<script>") {
		t.Errorf("the page does not have %q, or has the words unescaped", want)
	}
}

// The example of each operation must be exactly one command for a shell. The test replaces curl
// with a function and counts its calls.
func TestTheCurlCommandsAreShellCommands(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	edge := atBase(t, "")
	request := regexp.MustCompile(`(?s)aria-label="Example request"><code>(.*?)</code>`)
	var script strings.Builder
	script.WriteString("curl() { printf '%s\\n' \"$#\"; }\n")
	all := declared
	for _, op := range all {
		script.WriteString(html.UnescapeString(request.FindStringSubmatch(fetch(edge, "/docs/operations/"+op.ID).Body.String())[1]) + "\n")
	}
	output, err := exec.CommandContext(t.Context(), shell, "-eu", "-c", "ROLECALL_TOKEN=t ROLECALL_OPERATOR_KEY=k\n"+script.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if got := strings.Count(string(output), "\n"); got != len(all) {
		t.Errorf("%d commands ran, want %d", got, len(all))
	}
}

func TestTextsOfTheReferenceAreTypesetAndEscaped(t *testing.T) {
	if got, want := string(typeset("Needs `users:read` & <b>.")), "Needs <code>users:read</code> &amp; &lt;b&gt;."; got != want {
		t.Errorf("typeset: %s, want %s", got, want)
	}
	if got, want := quoted("it's"), `'it'\''s'`; got != want {
		t.Errorf("quoted: %s, want %s", got, want)
	}
}
