package console

import (
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// What the words of done may name: whom the page is about, and a role, of which the
// address has the id alone.
const (
	whom     = "{whom}"
	roleName = "{role}"
)

// part is a piece of a sentence: words, or a name.
type part struct {
	text   string
	isName bool
}

// told returns what the page says of what has been done, nil if nothing has.
func (c *console) told(f frame) []part {
	words := done[f.asked("done")]
	if words == "" || !f.isFromOwnPage() {
		return nil
	}
	role := part{text: "The role"}
	if strings.Contains(words, roleName) {
		if r, ok := c.roleAsked(f.pageContext); ok {
			role = part{r.Name, true}
		}
	}
	var parts []part
	for words != "" {
		i := strings.IndexByte(words, '{')
		if i < 0 {
			i = len(words)
		}
		parts = append(parts, part{text: words[:i]})
		switch words = words[i:]; {
		case strings.HasPrefix(words, whom):
			parts, words = append(parts, part{f.title, true}), words[len(whom):]
		case strings.HasPrefix(words, roleName):
			parts, words = append(parts, role), words[len(roleName):]
		}
	}
	return parts
}

// roleAsked returns the role that the address names, as far as the caller may read it.
func (c *console) roleAsked(v *pageContext) (rolecall.Role, bool) {
	id, err := rolecall.ParseID[rolecall.Role](v.request.URL.Query().Get("role"))
	if err != nil || authz.ReadRoles.Authorize(v.call.Principal) != nil {
		return rolecall.Role{}, false
	}
	role, err := c.directory.Role(v.ctx, v.call, id)
	return role, err == nil
}
