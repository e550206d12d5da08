package e2e

import (
	"fmt"
	"sync"
	"testing"
)

func testConditional(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("tags", func(t *testing.T) { testTags(t, w) })
	t.Run("parallel", func(t *testing.T) { testParallelPatches(t, w) })
}

func testTags(t *testing.T, w *world) {
	id, role, group := w.user(t, "tagged", "Sales"), w.role(t, "Tagged", "users:read"), w.group(t, "Tagged")
	for _, target := range []struct{ path, patch string }{{"/users/" + id, `{"name":"Changed"}`}, {"/roles/" + role, `{"name":"Changed"}`}, {"/groups/" + group, `{"name":"Changed"}`}} {
		get, change := "GET "+target.path, "PATCH "+target.path
		first := w.owner.do(t, get, "").expect(t, 200)
		tag := first.header.Get("Etag")
		unchanged := scenario{status: 304, headers: map[string]string{"Etag": tag}}
		for _, header := range []string{tag, "*", `"other", ` + tag, "W/" + tag, ` "a",W/"b" , ` + tag + " "} {
			a := w.owner.do(t, get, "", "if-none-match: "+header)
			if unchanged.check(t, a); len(a.body) != 0 {
				t.Errorf("a 304 has a body: %s", a.body)
			}
		}
		play(t, []scenario{
			{name: "another tag: the whole answer", as: w.owner, send: get, header: []string{`if-none-match: "other"`}, status: 200, headers: map[string]string{"Etag": tag}},
			{name: "a stale tag", as: w.owner, send: change, body: target.patch, header: []string{`if-match: "other"`}, status: 412, code: "precondition-failed"},
			{name: "a weak tag never matches", as: w.owner, send: change, body: target.patch, header: []string{"if-match: W/" + tag}, status: 412},
			{name: "a stale tag and nothing to change", as: w.owner, send: change, body: `{}`, header: []string{`if-match: "other"`}, status: 412},
			{name: "no tag at all", as: w.owner, send: change, body: target.patch, header: []string{"if-match: tag"}, status: 400, faults: []string{"header:if-match format"}},
			{name: "an open tag", as: w.owner, send: change, body: target.patch, header: []string{`if-match: "tag`}, status: 400, faults: []string{"header:if-match format"}},
			{name: "an empty list", as: w.owner, send: change, body: target.patch, header: []string{"if-match: "}, status: 400, faults: []string{"header:if-match format"}},
			{name: "two lines", as: w.owner, send: change, body: target.patch, header: []string{"if-match: " + tag, "+if-match: " + tag}, status: 400, faults: []string{"header:if-match repeated"}},
			{name: "nothing has changed", as: w.owner, send: get, header: []string{"if-none-match: " + tag}, status: 304},
			{name: "a star matches what is there", as: w.owner, send: change, body: `{}`, header: []string{"if-match: *"}, status: 200, headers: map[string]string{"Etag": tag}},
			{name: "one of a list matches", as: w.owner, send: change, body: target.patch, header: []string{`if-match: "other", ` + tag}, status: 200},
			{name: "the old tag is stale", as: w.owner, send: change, body: target.patch, header: []string{"if-match: " + tag}, status: 412},
			{name: "and no longer current", as: w.owner, send: get, header: []string{"if-none-match: " + tag}, status: 200},
			{name: "a stale tag of a deletion", as: w.owner, send: "DELETE " + target.path, header: []string{"if-match: " + tag}, status: 412},
		})
		current := w.owner.do(t, get, "").expect(t, 200).header.Get("Etag")
		w.owner.do(t, "DELETE "+target.path, "", "if-match: "+current).expect(t, 204)
	}
}

func testParallelPatches(t *testing.T, w *world) {
	const n = 50
	id, role, group := w.user(t, "contended", ""), w.role(t, "Contended"), w.group(t, "Contended")
	for _, path := range []string{"/users/" + id, "/roles/" + role, "/groups/" + group} {
		tag := w.owner.do(t, "GET "+path, "").expect(t, 200).header.Get("Etag")
		if got := w.patchAtOnce(t, n, path, "if-match: "+tag); got[200] != 1 || got[412] != n-1 {
			t.Errorf("%d patches of %s with one tag answered %v", n, path, got)
		}
		if got := w.patchAtOnce(t, n, path); got[200] != n {
			t.Errorf("%d patches of %s without a tag answered %v", n, path, got)
		}
	}
	pair := func(i int) string { return fmt.Sprintf(`{"metadata":{"k%d":"v"}}`, i) }
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			if a, err := w.owner.try(t, "PATCH /users/"+id, pair(i)); err != nil || a.status != 200 {
				t.Errorf("%v, %+v", err, a)
			}
		})
	}
	running.Wait()
	if got := len(w.owner.do(t, "GET /users/"+id, "").members("/metadata")); got != n {
		t.Errorf("of %d parallel changes %d are there", n, got)
	}
}

// patchAtOnce sends n PATCH requests with different names at once. It returns the number of
// responses for each status.
func (w *world) patchAtOnce(t *testing.T, n int, path string, header ...string) map[int]int {
	return atOnce(t, n, func(i int) (*answer, error) {
		return w.owner.try(t, "PATCH "+path, fmt.Sprintf(`{"name":"Name %d %s"}`, i, newKey()), header...)
	})
}
