package scim

import (
	"strconv"

	"github.com/rolecall/rolecall"
)

// Meta has the id of a resource, and the values of its attribute meta.
type Meta struct {
	ID       string
	Base     string // base URL of the directory, without a slash at its end
	Created  rolecall.Time
	Modified rolecall.Time
	Version  int64
}

// ETag returns the weak ETag of the version.
func (m *Meta) ETag() string { return `W/"` + strconv.FormatInt(m.Version, 10) + `"` }

// location returns the URL of a resource below the endpoint, such as /Users/.
func (m *Meta) location(endpoint string) string { return m.Base + endpoint + m.ID }

func (m *Meta) object(resourceType, endpoint string) map[string]any {
	return map[string]any{
		"resourceType": resourceType,
		"created":      m.Created.String(),
		"lastModified": m.Modified.String(),
		"location":     m.location(endpoint),
		"version":      m.ETag(),
	}
}
