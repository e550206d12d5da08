package scim

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// Root is the path below which directories send their requests, before the name of the tenant.
const Root = "/scim/v2"

// bodyMax is the maximum size of a body, in bytes.
const bodyMax = 1 << 20

// requestsAtOnce is the maximum number of requests of a directory that run at the same time in one process, so that a
// directory cannot delay other tenants.
const requestsAtOnce = 8

// Server is the HTTP handler of SCIM.
type Server struct {
	directory *directory.Service
	site      *web.Site
	now       func() rolecall.Time

	mu      sync.Mutex
	running map[rolecall.DirectoryID]int // requests
}

// New returns the handler of the paths below Root.
func New(a *access.Service, d *directory.Service, site *web.Site) http.Handler {
	s := &Server{directory: d, site: site, now: a.Now, running: map[rolecall.DirectoryID]int{}}
	router := site.NewRouter(s.fail)
	router.Handle(s.routes(), nil)
	return site.Handler(router, s.fail)
}

// routes returns the routes of all endpoints.
func (s *Server) routes() []web.Route {
	route := func(method, path, label string, handle handler) web.Route {
		return web.Route{Method: method, Path: Root + "/{tenant}" + path, Label: "Scim_" + label, Handler: s.handler(handle)}
	}
	routes := []web.Route{
		route(http.MethodGet, "/ServiceProviderConfig", "getServiceProviderConfig", s.config),
		route(http.MethodGet, "/ResourceTypes", "listResourceTypes", all(ResourceTypes)),
		route(http.MethodGet, "/ResourceTypes/{id}", "getResourceType", one(ResourceTypes)),
		route(http.MethodGet, "/Schemas", "listSchemas", all(Schemas)),
		route(http.MethodGet, "/Schemas/{id}", "getSchema", one(Schemas)),

		route(http.MethodGet, "/Users", "listUsers", s.listUsers),
		route(http.MethodPost, "/Users", "createUser", s.createUser),
		route(http.MethodGet, "/Users/{id}", "getUser", s.getUser),
		route(http.MethodPut, "/Users/{id}", "replaceUser", s.replaceUser),
		route(http.MethodPatch, "/Users/{id}", "patchUser", s.patchUser),
		route(http.MethodDelete, "/Users/{id}", "deleteUser", s.deleteUser),

		route(http.MethodGet, "/Groups", "listGroups", s.listGroups),
		route(http.MethodPost, "/Groups", "createGroup", s.createGroup),
		route(http.MethodGet, "/Groups/{id}", "getGroup", s.getGroup),
		route(http.MethodPut, "/Groups/{id}", "replaceGroup", s.replaceGroup),
		route(http.MethodPatch, "/Groups/{id}", "patchGroup", s.patchGroup),
		route(http.MethodDelete, "/Groups/{id}", "deleteGroup", s.deleteGroup),

		route(http.MethodGet, "/Me", "me", s.notImplemented),
		route(http.MethodPost, "/Bulk", "bulk", s.notImplemented),
	}
	for _, path := range []string{"/.search", "/Users/.search", "/Groups/.search"} {
		routes = append(routes, route(http.MethodPost, path, "search", s.notImplemented))
	}
	return routes
}

// call is a request of a directory.
type call struct {
	*http.Request
	provider directory.Provider
	base     string // base URL of the directory, without a slash at its end
	query    url.Values
	chosen   Selection
}

// answer is the response to a call.
type answer struct {
	status   int
	body     any // nil for none
	etag     string
	location string
}

type handler func(context.Context, *call) (answer, error)

// handler returns the HTTP handler of an endpoint.
func (s *Server) handler(handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := web.RequestOf(r)
		c := &call{Request: r, base: q.Address() + Root + "/" + r.PathValue("tenant")}
		a, err := s.serve(q, c, handle)
		q.Leave()
		if err != nil {
			status, detail := s.refuse(w, r, err)
			s.record(c, status, detail)
			return
		}
		s.record(c, a.status, "")
		respond(w, r, a)
	})
}

// serve authenticates the directory and calls the handler.
func (s *Server) serve(q *web.Request, c *call, handle handler) (answer, error) {
	if err := q.Enter(web.WorkLimiter); err != nil {
		return answer{}, err
	}
	if err := s.authenticate(q, c); err != nil {
		return answer{}, err
	}
	switch p := &c.provider; {
	case p.Tenant.Status == rolecall.TenantSuspended:
		return answer{}, &Error{Status: http.StatusForbidden, Detail: "The tenant is suspended."}
	case p.Directory.Paused:
		return answer{}, rolecall.ErrDirectoryPaused
	case !s.begin(p.Directory.ID):
		return answer{}, errTooMany
	}
	defer s.end(c.provider.Directory.ID)
	if err := c.readQuery(); err != nil {
		return answer{}, err
	}
	return handle(q, c)
}

// readQuery reads the query and the selection of attributes. A malformed filter that is ignored would return all users,
// so every malformed or repeated parameter is an error.
func (c *call) readQuery() (err error) {
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		return badRequest(InvalidSyntax, "The query of the URL is malformed. Encode the values of its parameters.")
	}
	for name, values := range c.query {
		if len(values) > 1 || !utf8.ValidString(values[0]) {
			return badRequest(InvalidValue, "The parameter %q must be sent once, in UTF-8.", name)
		}
	}
	c.chosen, err = ParseSelection(c.query.Get("attributes"), c.query.Get("excludedAttributes"))
	return err
}

var (
	errUnauthorized = &Error{Status: http.StatusUnauthorized, Detail: "The request has no valid token of a directory of this tenant. Send one as Authorization: Bearer rd_…. It can have expired or been revoked, or the path can name another tenant."}
	errTooMany      = &Error{Status: http.StatusTooManyRequests, Detail: "Too many requests of this directory run at the same time. Repeat the request shortly."}
	errUnknownPath  = &Error{Status: http.StatusNotFound, Detail: "This endpoint does not exist. The base URL of a directory ends with /scim/v2/ and the name of the tenant, without a slash after it."}
	errNotFound     = &Error{Status: http.StatusNotFound, Detail: "No resource of this directory has this id."}
)

// authenticate sets the provider of the call. Cookies are ignored. A wrong tenant and a wrong token get the same error,
// after the same work.
func (s *Server) authenticate(q *web.Request, c *call) error {
	lines := c.Header["Authorization"]
	if len(lines) != 1 {
		return errUnauthorized
	}
	scheme, text, _ := strings.Cut(lines[0], " ")
	token, ok := secret.ParseDirectoryToken(strings.Trim(text, " "))
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return errUnauthorized
	}
	tenant := rolecall.Tenant{ID: access.UnknownTenant}
	if name := c.PathValue("tenant"); rolecall.IsTenantName(name) {
		found, err := s.directory.Tenant(q, name)
		if err != nil {
			return err
		}
		if !found.ID.IsZero() {
			tenant = found
		}
	}
	provider, err := s.directory.AuthenticateDirectory(q, tenant, token)
	if err != nil {
		return err
	}
	q.Principal, provider.RequestID, provider.Source = provider.Principal, q.ID, q.Source
	c.provider = provider
	return nil
}

// begin counts a request of the directory, and reports whether it may run.
func (s *Server) begin(id rolecall.DirectoryID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] >= requestsAtOnce {
		return false
	}
	s.running[id]++
	return true
}

func (s *Server) end(id rolecall.DirectoryID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id]--; s.running[id] == 0 {
		delete(s.running, id)
	}
}

// record records the request for the administrators of the directory, if it was authenticated.
func (s *Server) record(c *call, status int, detail string) {
	if c.provider.Principal == nil {
		return
	}
	_, path, _ := strings.Cut(c.Pattern, "{tenant}")
	if id, err := rolecall.ParseID[any](c.PathValue("id")); err == nil { // other ids can be personal data
		path = strings.Replace(path, "{id}", id.String(), 1)
	}
	s.directory.RecordDirectoryRequest(c.provider.Caller, rolecall.DirectoryRequest{
		At: s.now(), Method: c.Method, Path: path, Status: status, Detail: detail[:min(len(detail), detailMax)],
	})
}

// detailMax is the maximum length of the detail of a recorded request, in bytes.
const detailMax = 500

var contentType = []string{"application/scim+json"}

func respond(w http.ResponseWriter, r *http.Request, a answer) {
	h := w.Header()
	if a.etag != "" {
		h["Etag"] = []string{a.etag}
	}
	if a.location != "" {
		h["Location"] = []string{a.location}
	}
	if a.body == nil {
		web.Respond(w, r, a.status, nil)
		return
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		web.RequestOf(r).Cause, a.status = err, http.StatusInternalServerError
	}
	h["Content-Type"] = contentType
	web.Respond(w, r, a.status, body)
}

// fail responds to a request that failed before it reached a handler.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if err == web.ErrUnknownPath {
		err = errUnknownPath
	}
	s.refuse(w, r, err)
}

// refuse sends the error (RFC 7644, section 3.12). It returns the status and the detail.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) (int, string) {
	p := web.RequestOf(r).ProblemOf(problem(err))
	p.SetHeaders(w, r)
	known, ok := errors.AsType[*Error](err)
	if !ok {
		known = scimError(p.Status, p.Error)
	}
	h := w.Header()
	switch known.Status {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusUnsupportedMediaType:
		h["Accept"] = []string{"application/scim+json, application/json"}
		delete(h, "Accept-Patch")
	case http.StatusTooManyRequests:
		h["Retry-After"] = []string{"1"}
	}
	respond(w, r, answer{status: known.Status, body: known})
	return known.Status, known.Detail
}

// problem returns the error for ProblemOf. An *Error has no cause for the log.
func problem(err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return &rolecall.Error{Kind: rolecall.Conflict, Code: "scim", Detail: known.Detail}
	}
	return err
}

// scimError returns the error for one of the service.
func scimError(status int, e *rolecall.Error) *Error {
	known := &Error{Status: status, Detail: e.Detail}
	switch e.Code {
	case rolecall.ErrNotFound.Code:
		return errNotFound
	case rolecall.ErrUnauthenticated.Code:
		return errUnauthorized
	case rolecall.ErrEmailTaken.Code, rolecall.ErrUserNameTaken.Code:
		known.Type = Uniqueness
	case rolecall.ErrGroupNameTaken.Code:
		known.Type, known.Detail = Uniqueness, "Another group of this directory has this displayName."
	case rolecall.ErrGroupExternalIDTaken.Code:
		known.Type, known.Detail = Uniqueness, "Another group of this directory has this externalId."
	case rolecall.ErrOwnerProtected.Code:
		known.Type = Mutability
	}
	if e.Kind == rolecall.Invalid {
		known.Status, known.Type = http.StatusBadRequest, InvalidValue
	}
	return known
}

// notImplemented answers an endpoint that RFC 7644 has and Rolecall does not.
func (s *Server) notImplemented(context.Context, *call) (answer, error) {
	return answer{}, &Error{Status: http.StatusNotImplemented, Detail: "Rolecall does not support this endpoint."}
}

// body returns the JSON object in the body.
func (c *call) body() (object map[string]any, err error) {
	q := web.RequestOf(c.Request)
	media, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || media != "application/scim+json" && media != "application/json" {
		return nil, &Error{Status: http.StatusUnsupportedMediaType, Detail: "The body must be application/scim+json or application/json."}
	}
	if c.ContentLength > bodyMax {
		return nil, tooLarge("The body can have at most %d bytes.", bodyMax)
	}
	if coding := c.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, web.ErrContentEncoding
	}
	q.Leave() // the client may send slowly
	content, err := web.ReadBody(c.Request, nil, bodyMax)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge("The body can have at most %d bytes.", bodyMax)
	}
	if err != nil {
		return nil, badRequest(InvalidSyntax, "The body could not be read.")
	}
	if err := q.Enter(web.WorkLimiter); err != nil {
		return nil, err
	}
	if err := jsonv2.Unmarshal(content, &object); err != nil || object == nil {
		return nil, badRequest(InvalidSyntax, "The body must be a JSON object, in UTF-8 and without duplicate names.")
	}
	return object, nil
}

// matches reports whether the header contains the ETag or is *.
func matches(header []string, etag string) bool {
	for part := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// match returns the precondition of the header If-Match, or nil without one.
func match[T any](c *call, version func(*T) int64) access.Match[T] {
	header := c.Header["If-Match"]
	if header == nil {
		return nil
	}
	return func(value *T) bool {
		meta := Meta{Version: version(value)}
		return matches(header, meta.ETag())
	}
}

// page is the part of a list that the client requested.
type page struct {
	offset, limit int
	byCursor      bool
	after         rolecall.AnyID
}

// page returns the page that the query selects (RFC 7644, section 3.4.2.4, and RFC 9865).
func (c *call) page() (p page, err error) {
	p.limit = DefaultResults
	if text := c.query.Get("count"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return p, badRequest(InvalidValue, "count must be a number.")
		}
		p.limit = min(max(n, 0), MaxResults)
	}
	if cursor, given := c.query["cursor"]; given {
		p.byCursor = true
		if cursor[0] != "" {
			if p.after, err = rolecall.ParseID[any](cursor[0]); err != nil {
				return p, badRequest("invalidCursor", "The cursor is not one that a response has returned.")
			}
		}
		return p, nil
	}
	if text := c.query.Get("startIndex"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return p, badRequest(InvalidValue, "startIndex must be a number.")
		}
		if n > rolecall.DirectoryStartIndexMax {
			return p, badRequest(InvalidValue, "startIndex can be at most %d. Use cursors (RFC 9865) for longer lists.", rolecall.DirectoryStartIndexMax)
		}
		p.offset = max(n, 1) - 1
	}
	return p, nil
}

// listResponse returns a page of a list. The id of the last resource is the cursor of the next page.
func (p *page) listResponse(resources []map[string]any, total int) map[string]any {
	response := map[string]any{
		"schemas":      []string{"urn:ietf:params:scim:api:messages:2.0:ListResponse"},
		"itemsPerPage": len(resources),
		"Resources":    resources,
	}
	if p.after.IsZero() { // a count is expensive, so later pages have none
		response["totalResults"] = total
	}
	switch {
	case !p.byCursor:
		response["startIndex"] = p.offset + 1
	case len(resources) == p.limit && p.limit > 0:
		response["nextCursor"] = resources[len(resources)-1]["id"]
	}
	return response
}

func (s *Server) config(_ context.Context, c *call) (answer, error) {
	return answer{status: http.StatusOK, body: ServiceProviderConfig(c.base)}, nil
}

// all returns the handler that lists the resources, which need no filter.
func all(resources func(base string) []map[string]any) handler {
	return func(_ context.Context, c *call) (answer, error) {
		if c.query.Get("filter") != "" {
			return answer{}, &Error{Status: http.StatusForbidden, Detail: "These resources cannot be filtered."}
		}
		found := resources(c.base)
		p := page{limit: len(found)}
		return answer{status: http.StatusOK, body: p.listResponse(found, len(found))}, nil
	}
}

// one returns the handler that returns one of the resources.
func one(resources func(base string) []map[string]any) handler {
	return func(_ context.Context, c *call) (answer, error) {
		for _, resource := range resources(c.base) {
			if resource["id"] == c.PathValue("id") {
				return answer{status: http.StatusOK, body: resource}, nil
			}
		}
		return answer{}, errNotFound
	}
}

// resourceAnswer returns the answer with the resource, or 304 if the client has the version. The version of a user does
// not depend on groups, and that of a group does not change when a member is deleted. So a response with groups or members
// never becomes 304.
func (c *call) resourceAnswer(status int, resource map[string]any, meta *Meta, endpoint string) answer {
	a := answer{status: status, etag: meta.ETag()}
	if status == http.StatusCreated {
		a.location = meta.location(endpoint)
	}
	isRead, hasOthers := c.Method == http.MethodGet || c.Method == http.MethodHead, resource["groups"] != nil || resource["members"] != nil
	if header := c.Header["If-None-Match"]; isRead && !hasOthers && header != nil && matches(header, a.etag) {
		a.status = http.StatusNotModified
		return a
	}
	c.chosen.Apply(resource)
	a.body = resource
	return a
}

// pathID returns the id in the path. An id that is not a UUID is unknown.
func pathID[T any](c *call) (rolecall.ID[T], error) {
	id, err := rolecall.ParseID[T](c.PathValue("id"))
	if err != nil || id.IsZero() {
		return id, errNotFound
	}
	return id, nil
}
