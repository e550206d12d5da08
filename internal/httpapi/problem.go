package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
)

// What the edge refuses before a verb is asked.
var (
	errUnknownPath      = &rolecall.Error{Kind: rolecall.NotFound, Code: "unknown-path", Detail: "Nothing is served at this path. A path has no slash at its end and no encoded or doubled one."}
	errMethodNotAllowed = &rolecall.Error{Kind: rolecall.Malformed, Code: "method-not-allowed", Detail: "This path does not take this method; Allow says which it takes."}
	errNotAcceptable    = &rolecall.Error{Kind: rolecall.Malformed, Code: "not-acceptable", Detail: "Accept leaves out application/json, and that is what is answered."}
	errContentTooLarge  = &rolecall.Error{Kind: rolecall.Malformed, Code: "content-too-large", Detail: "The body is larger than 64 KiB."}
	errURLTooLong       = &rolecall.Error{Kind: rolecall.Malformed, Code: "uri-too-long", Detail: "The path and query are longer than 8 KiB."}
	errTooManyLines     = &rolecall.Error{Kind: rolecall.Malformed, Code: "too-many-headers", Detail: "The header has more than 100 lines."}
	errMediaType        = &rolecall.Error{Kind: rolecall.Malformed, Code: "unsupported-media-type", Detail: "The body must be application/json in UTF-8; PATCH also takes application/merge-patch+json."}
	errContentEncoding  = errMediaType.With("The body must not be compressed.")
	errCrossOrigin      = &rolecall.Error{Kind: rolecall.Forbidden, Code: "cross-origin", Detail: "A browser sent this request from another origin, which is not a trusted one."}
	errCrossSite        = &rolecall.Error{Kind: rolecall.Forbidden, Code: "cross-site", Detail: "The browser would drop the session cookie, because the page is on another site than this service. Serve both under one site, such as https://app.example.com and https://id.example.com, or let your back end hold the session."}
)

// statuses is the status of each kind of error.
var statuses = [...]int{
	rolecall.Internal:             http.StatusInternalServerError,
	rolecall.Malformed:            http.StatusBadRequest,
	rolecall.Invalid:              http.StatusUnprocessableEntity,
	rolecall.Unauthenticated:      http.StatusUnauthorized,
	rolecall.Forbidden:            http.StatusForbidden,
	rolecall.NotFound:             http.StatusNotFound,
	rolecall.Conflict:             http.StatusConflict,
	rolecall.PreconditionFailed:   http.StatusPreconditionFailed,
	rolecall.TooMany:              http.StatusTooManyRequests,
	rolecall.PreconditionRequired: http.StatusPreconditionRequired,
	rolecall.Unavailable:          http.StatusServiceUnavailable,
}

// framingStatuses is the status of those errors of the edge for which HTTP has
// one of its own.
var framingStatuses = map[string]int{
	errMethodNotAllowed.Code: http.StatusMethodNotAllowed,
	errNotAcceptable.Code:    http.StatusNotAcceptable,
	errContentTooLarge.Code:  http.StatusRequestEntityTooLarge,
	errURLTooLong.Code:       http.StatusRequestURITooLong,
	errTooManyLines.Code:     http.StatusRequestHeaderFieldsTooLarge,
	errMediaType.Code:        http.StatusUnsupportedMediaType,
}

// catalogue is every problem that can be answered, by status and code.
var catalogue = []*rolecall.Error{
	rolecall.ErrMalformed,
	rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrWrongCredentials, rolecall.ErrInvitationInvalid,
	rolecall.ErrSecondFactorRequired, rolecall.ErrEnrolmentRequired, rolecall.ErrWrongCode, rolecall.ErrChallengeInvalid, rolecall.ErrPasskeyRefused,
	rolecall.ErrPasswordResetInvalid, rolecall.ErrEmailChangeInvalid,
	rolecall.ErrTenantSuspended, rolecall.ErrUserSuspended, rolecall.ErrPermissionDenied, rolecall.ErrSessionRequired, rolecall.ErrNotRecent, rolecall.ErrFieldNotReadable,
	rolecall.ErrOutsideReach, rolecall.ErrBeyondOwnPermissions, errCrossOrigin, errCrossSite,
	rolecall.ErrNotFound, errUnknownPath,
	errMethodNotAllowed, errNotAcceptable,
	rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken, rolecall.ErrRoleNameTaken, rolecall.ErrRoleKeyTaken, rolecall.ErrRoleInUse, rolecall.ErrAccountNameTaken,
	rolecall.ErrTooManyTokens, rolecall.ErrTooManyAccounts,
	rolecall.ErrFactorDemanded, rolecall.ErrNoSecondFactor, rolecall.ErrPasskeyTaken, rolecall.ErrTooManyPasskeys, rolecall.ErrPasskeysUnavailable,
	rolecall.ErrUserPending,
	rolecall.ErrSystemRole, rolecall.ErrLastOwner, rolecall.ErrTenantExists, rolecall.ErrKeyInProgress,
	rolecall.ErrPreconditionFailed,
	errContentTooLarge, errURLTooLong, errMediaType,
	rolecall.ErrValidation, rolecall.ErrKeyReused,
	rolecall.ErrPreconditionRequired,
	rolecall.ErrTooManyKeys, rolecall.ErrTooManyAttempts, rolecall.ErrTooManyMails,
	errTooManyLines,
	rolecall.ErrInternal,
	rolecall.ErrUnavailable, rolecall.ErrBusy,
}

// statusOf returns the status of err and what may be shown of it. Of an error
// that nobody classified, nothing may.
func statusOf(err error) (int, *rolecall.Error) {
	known, ok := errors.AsType[*rolecall.Error](err)
	if !ok || known.Kind == rolecall.Internal {
		return http.StatusInternalServerError, rolecall.ErrInternal
	}
	if status, ok := framingStatuses[known.Code]; ok {
		return status, known
	}
	return statuses[known.Kind], known
}

// titleOf returns the title of a problem, which says no more than its code.
func titleOf(code string) string {
	return strings.ToUpper(code[:1]) + strings.ReplaceAll(code[1:], "-", " ")
}

// problemHeaders sets the headers that go with the status.
func (x *exchange) problemHeaders(status int, err *rolecall.Error) {
	for _, name := range successHeaders {
		delete(x.header, name)
	}
	if challenge := x.wwwAuthenticate(status, err); challenge != "" {
		x.header["Www-Authenticate"] = []string{challenge}
	}
	switch status {
	case http.StatusRequestEntityTooLarge:
		x.header["Connection"] = closing
	case http.StatusUnsupportedMediaType:
		if err == errContentEncoding {
			x.header["Accept-Encoding"] = []string{"identity"}
		} else if x.request.Method == http.MethodPatch {
			x.header["Accept-Patch"] = []string{"application/json, application/merge-patch+json"}
		} else {
			x.header["Accept"] = asJSON
		}
	}
	if err.RetryAfter > 0 || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		seconds := int64((err.RetryAfter + time.Second - 1) / time.Second)
		x.header["Retry-After"] = []string{strconv.FormatInt(max(seconds, 1), 10)}
	}
}

// successHeaders are those that a handler may have set before it failed.
var successHeaders = []string{"Etag", "Location", "Link", "Withheld-Fields", "Set-Cookie", "Idempotent-Replayed"}

// furtherFaults ends the detail of a problem that does not list every fault.
var furtherFaults = fmt.Sprintf(" Only the first %d errors are listed; there are more.", rolecall.MaxFaults)

// appendProblem appends the problem document (RFC 9457) of err.
func appendProblem(b []byte, base string, status int, err *rolecall.Error, instance, requestID string) []byte {
	b = append(b, `{"type":`...)
	b = appendText(b, base+"/problems/"+err.Code)
	b = append(b, `,"code":`...)
	b = appendText(b, err.Code)
	b = append(b, `,"title":`...)
	b = appendText(b, titleOf(err.Code))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"detail":`...)
	b = appendText(b, detailOf(err))
	b = append(b, `,"instance":`...)
	b = appendText(b, instance)
	b = append(b, `,"requestId":`...)
	b = appendText(b, requestID)
	if len(err.Faults) > 0 {
		b = append(b, `,"errors":`...)
		b = appendList(b, err.Faults[:min(len(err.Faults), rolecall.MaxFaults)], appendFault)
		if hasFurtherFaults(err) {
			b = append(b, `,"moreErrors":true`...)
		}
	}
	if err.Challenge != nil {
		b = appendChallenge(b, err.Challenge)
	}
	return append(b, '}')
}

// hasFurtherFaults reports whether the error has more faults than an answer lists.
func hasFurtherFaults(err *rolecall.Error) bool { return len(err.Faults) > rolecall.MaxFaults }

// detailOf returns the detail of a problem.
func detailOf(err *rolecall.Error) string {
	if hasFurtherFaults(err) {
		return err.Detail + furtherFaults
	}
	return err.Detail
}

// appendChallenge appends what the client is to answer.
func appendChallenge(b []byte, c *rolecall.Challenge) []byte {
	b = append(b, `,"challenge":`...)
	b = appendText(b, c.Token)
	b = append(b, `,"methods":`...)
	b = appendList(b, c.Methods, func(b []byte, m *rolecall.FactorMethod) []byte { return appendText(b, *m) })
	if c.PublicKey != nil {
		b = append(b, `,"publicKey":`...)
		b = append(b, c.PublicKey...)
	}
	return b
}

func appendFault(b []byte, f *rolecall.Fault) []byte {
	switch {
	case f.Header != "":
		b = append(b, `{"header":`...)
		b = appendText(b, f.Header)
	case f.Parameter != "":
		b = append(b, `{"parameter":`...)
		b = appendText(b, f.Parameter)
	default:
		b = append(b, `{"pointer":`...)
		b = appendText(b, boundedPointer(f.Pointer))
	}
	b = append(b, `,"code":`...)
	b = appendText(b, f.Code)
	b = append(b, `,"detail":`...)
	b = appendText(b, f.Detail)
	return append(b, '}')
}

// boundedPointer cuts a pointer that holds names a client chose.
func boundedPointer(pointer string) string {
	if len(pointer) <= 200 {
		return pointer
	}
	return pointer[:strings.LastIndexByte(pointer[:200], '/')+1] + "…"
}
