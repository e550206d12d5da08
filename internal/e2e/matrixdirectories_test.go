package e2e

import (
	"fmt"
	"testing"
	"time"
)

const (
	everyDirectoryMember      = "id name matching deprovisioning paused createdAt updatedAt"
	everyDirectoryTokenMember = "id directoryId name createdBy createdAt expiresAt lastUsedAt token"
)

func directoryBody(mark string) string { return `{"name":` + quoted("Directory "+mark) + `}` }

func directoryTokenBody() string {
	return `{"name":"Entra","expiresAt":` + quoted(time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)) + `}`
}

// makeDirectory creates a directory and returns its id.
func (w *world) makeDirectory(t testing.TB, mark string) string {
	t.Helper()
	return w.owner.do(t, "POST /directories", directoryBody(mark)).expect(t, 201).text("/id")
}

// makeDirectoryToken creates a token of the directory, and returns the response.
func (w *world) makeDirectoryToken(t testing.TB, directory string) *answer {
	t.Helper()
	a := w.owner.do(t, "POST /directories/"+directory+"/tokens", directoryTokenBody()).expect(t, 201)
	w.program.secret(a.text("/token"))
	return a
}

// eachDirectory calls send with a directory of this tenant, one of another tenant, and one that does not exist. It
// deletes them afterwards, because a tenant can have only a few.
func (m *matrix) eachDirectory(t *testing.T, send func(id string, exists bool)) {
	t.Helper()
	m.fresh++
	own, foreign := m.makeDirectory(t, fmt.Sprint(m.fresh)), m.foreign.makeDirectory(t, fmt.Sprint(m.fresh))
	send(own, true)
	send(foreign, false)
	send(never, false)
	m.owner.do(t, "DELETE /directories/"+own, "")
	m.foreign.owner.do(t, "DELETE /directories/"+foreign, "").expect(t, 204)
}

// readDirectory compares the response to a request that reads a directory.
func (p *principal) readDirectory(t *testing.T, line, members string, exists bool) {
	t.Helper()
	p.compare(t, "a directory", line, "", first(done(200, members), check{p.may("connections:read", ""), mayNot}, check{exists, notThere}))
}

func listDirectoriesCells(t *testing.T, _ *matrix, p *principal) {
	p.readDirectory(t, "GET /directories", "items nextCursor", true)
}

var _ = specify("DirectoriesController_listDirectories", changesNothing, withoutObject("GET /directories", ""), listDirectoriesCells)

func createDirectoryCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	a := p.compare(t, "a directory", "POST /directories", directoryBody(fmt.Sprint(m.fresh)), p.connects("connections:create", true, done(201, everyDirectoryMember)))
	if a.status == 201 {
		m.owner.do(t, "DELETE /directories/"+a.text("/id"), "").expect(t, 204)
	}
}

var _ = specify("DirectoriesController_createDirectory", grantsAccess, func(*testing.T, *providerWorld) request {
	return request{line: "POST /directories", body: directoryBody(newKey()), events: []string{"directory.created directory {id} []"}}
}, createDirectoryCells)

func getDirectoryCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) { p.readDirectory(t, "GET /directories/"+id, everyDirectoryMember, exists) })
}

var _ = specify("DirectoriesController_getDirectory", changesNothing, withObject(aDirectory, "GET /directories/{id}", ""), getDirectoryCells)

func updateDirectoryCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) {
		p.compare(t, "a directory", "PATCH /directories/"+id, `{"matching":"email"}`, p.connects("connections:update", exists, done(200, everyDirectoryMember)))
	})
}

var _ = specify("DirectoriesController_updateDirectory", grantsAccess, withObject(aDirectory, "PATCH /directories/{id}", `{"matching":"email","deprovisioning":"delete","paused":true}`,
	"directory.updated directory {id} [matching deprovisioning paused]"), updateDirectoryCells)

func deleteDirectoryCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) {
		p.compare(t, "a directory", "DELETE /directories/"+id, "", p.connects("connections:delete", exists, done(204, "")))
	})
}

var _ = specify("DirectoriesController_deleteDirectory", removesForGood, withObject(aDirectory, "DELETE /directories/{id}", "", "directory.deleted directory {id} []"), deleteDirectoryCells)

func listDirectoryRequestsCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) {
		p.readDirectory(t, "GET /directories/"+id+"/requests", "items nextCursor", exists)
	})
}

var _ = specify("DirectoriesController_listDirectoryRequests", changesNothing, withObject(aDirectory, "GET /directories/{id}/requests", ""), listDirectoryRequestsCells)

func listDirectoryTokensCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) {
		p.readDirectory(t, "GET /directories/"+id+"/tokens", "items nextCursor", exists)
	})
}

var _ = specify("DirectoriesController_listDirectoryTokens", changesNothing, func(t *testing.T, w *providerWorld) request {
	id := aDirectory(t, w)
	w.makeDirectoryToken(t, id)
	return request{id: id, line: "GET /directories/{id}/tokens"}
}, listDirectoryTokensCells)

func createDirectoryTokenCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) {
		p.compare(t, "a token", "POST /directories/"+id+"/tokens", directoryTokenBody(), p.connects("connections:update", exists, done(201, everyDirectoryTokenMember)))
	})
}

var _ = specify("DirectoriesController_createDirectoryToken", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{id: aDirectory(t, w), line: "POST /directories/{id}/tokens", body: directoryTokenBody(), events: []string{"directory.token_created directory {id} []"}}
}, createDirectoryTokenCells)

func revokeDirectoryTokenCells(t *testing.T, m *matrix, p *principal) {
	m.eachDirectory(t, func(id string, exists bool) {
		token := never
		if exists {
			token = m.makeDirectoryToken(t, id).text("/id")
			p.compare(t, "an unknown token", "DELETE /directories/"+id+"/tokens/"+never, "", p.connects("connections:update", false, done(204, "")))
		}
		p.compare(t, "a token", "DELETE /directories/"+id+"/tokens/"+token, "", p.connects("connections:update", exists, done(204, "")))
	})
}

var _ = specify("DirectoriesController_revokeDirectoryToken", endsAccess, func(t *testing.T, w *providerWorld) request {
	id := aDirectory(t, w)
	return request{id: id, line: "DELETE /directories/{id}/tokens/" + w.makeDirectoryToken(t, id).text("/id"), events: []string{"directory.token_revoked directory {id} []"}}
}, revokeDirectoryTokenCells)
