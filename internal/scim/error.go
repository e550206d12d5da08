package scim

import (
	"encoding/json"
	"fmt"
	"strconv"
)

const errorSchema = "urn:ietf:params:scim:api:messages:2.0:Error"

// The values of Error.Type, the scimType of RFC 7644, section 3.12.
const (
	InvalidFilter = "invalidFilter"
	InvalidPath   = "invalidPath"
	InvalidSyntax = "invalidSyntax"
	InvalidValue  = "invalidValue"
	Mutability    = "mutability"
	NoTarget      = "noTarget"
	Sensitive     = "sensitive"
	TooMany       = "tooMany"
	Uniqueness    = "uniqueness"
)

// Error is an error of a SCIM request.
type Error struct {
	Status int    // HTTP status
	Type   string // scimType, or empty
	Detail string // sentence for administrators of the directory
}

// Error returns the status, the type and the detail.
func (e *Error) Error() string {
	return fmt.Sprintf("scim: %d %s: %s", e.Status, e.Type, e.Detail)
}

// MarshalJSON returns the body of the response (RFC 7644, section 3.12).
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Schemas []string `json:"schemas"`
		Status  string   `json:"status"`
		Type    string   `json:"scimType,omitempty"`
		Detail  string   `json:"detail,omitempty"`
	}{[]string{errorSchema}, strconv.Itoa(e.Status), e.Type, e.Detail})
}

func badRequest(scimType, format string, values ...any) *Error {
	return &Error{Status: 400, Type: scimType, Detail: fmt.Sprintf(format, values...)}
}

func tooLarge(format string, values ...any) *Error {
	return &Error{Status: 413, Detail: fmt.Sprintf(format, values...)}
}
