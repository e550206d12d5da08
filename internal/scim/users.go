package scim

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// userOf returns the user as the directory has sent it. A user for which the directory has sent no data has the attributes
// that Rolecall knows.
func userOf(e *rolecall.DirectoryEntry) (u User, err error) {
	if e.Of.Attributes == "" {
		u = User{UserName: e.User.Email, DisplayName: e.User.Name, Emails: []Email{{Value: e.User.Email, Primary: new(true)}}}
		if e.User.Department != nil {
			u.Department = *e.User.Department
		}
	} else {
		err = json.Unmarshal([]byte(e.Of.Attributes), &u)
	}
	u.Active = new(e.Of.Active)
	if e.Of.User.IsZero() {
		u.Active = new(e.User.Status != rolecall.UserSuspended)
	}
	return u, err
}

// provisioned returns the values of the user for the service. Its attributes have no active, which changes apart.
func (u User) provisioned() (p directory.Provisioned, err error) {
	p = directory.Provisioned{UserName: u.UserName, Email: u.Address(), Name: u.FullName(), WorkEmail: u.workEmail()}
	if u.Department != "" {
		p.Department = new(rolecall.TrimName(u.Department))
	}
	if u.ExternalID != "" {
		p.ExternalID = &u.ExternalID
	}
	if u.Active != nil {
		p.Active = rolecall.Some(*u.Active)
	}
	u.Active = nil
	text, err := json.Marshal(u)
	p.Attributes = string(text)
	return p, err
}

// workEmail returns the address by which filters find the user: the primary one, else the first of the type work, else
// the first.
func (u *User) workEmail() string {
	var found *Email
	for i := range u.Emails {
		switch e := &u.Emails[i]; {
		case e.isPrimary():
			return e.Value
		case found == nil, strings.EqualFold(e.Type, "work") && !strings.EqualFold(found.Type, "work"):
			found = e
		}
	}
	if found == nil {
		return ""
	}
	return found.Value
}

func (c *call) userMeta(u *rolecall.User) Meta {
	return Meta{ID: u.ID.String(), Base: c.base, Created: u.CreatedAt, Modified: u.UpdatedAt, Version: u.Version}
}

func (c *call) userResource(e *rolecall.DirectoryEntry, groups []rolecall.GroupName) (map[string]any, Meta, error) {
	meta := c.userMeta(&e.User)
	u, err := userOf(e)
	return u.Resource(meta, groups), meta, err
}

func (c *call) userAnswer(status int, e *rolecall.DirectoryEntry, groups []rolecall.GroupName) (answer, error) {
	resource, meta, err := c.userResource(e, groups)
	if err != nil {
		return answer{}, err
	}
	return c.resourceAnswer(status, resource, &meta, "/Users/"), nil
}

func (s *Server) listUsers(ctx context.Context, c *call) (answer, error) {
	p, err := c.page()
	if err != nil {
		return answer{}, err
	}
	q := rolecall.DirectoryUserQuery{After: rolecall.UserID(p.after), Offset: p.offset, Limit: p.limit}
	matching, err := c.userFilter(&q)
	if err != nil || !matching {
		return answer{status: http.StatusOK, body: p.listResponse([]map[string]any{}, 0)}, err
	}
	entries, total, err := s.directory.ProvisionedUsers(ctx, c.provider, q)
	if err != nil {
		return answer{}, err
	}
	resources := make([]map[string]any, len(entries))
	for i := range entries {
		if resources[i], _, err = c.userResource(&entries[i], nil); err != nil {
			return answer{}, err
		}
		c.chosen.Apply(resources[i])
	}
	return answer{status: http.StatusOK, body: p.listResponse(resources, total)}, nil
}

// userFilter adds the filter of the request to the query. It returns false if no user can match.
func (c *call) userFilter(q *rolecall.DirectoryUserQuery) (matching bool, err error) {
	if !c.query.Has("filter") {
		return true, nil
	}
	terms, err := ParseUserFilter(c.query.Get("filter"))
	if err != nil {
		return false, err
	}
	set := func(to *string, value string) bool {
		isConsistent := value != "" && (*to == "" || strings.EqualFold(*to, value))
		*to = value
		return isConsistent
	}
	matching = true
	for _, t := range terms {
		switch t.Attribute {
		case ByUserName:
			matching = set(&q.UserName, t.Text) && matching
		case ByExternalID:
			matching = set(&q.ExternalID, t.Text) && matching
		case ByEmail:
			if t.Type != "" && !strings.EqualFold(t.Type, "work") {
				return false, badRequest(InvalidFilter, "Users can be found by their address of the type work only.")
			}
			matching = set(&q.WorkEmail, t.Text) && matching
		case ByID:
			id, err := rolecall.ParseID[rolecall.User](t.Text)
			if err != nil || id.IsZero() || !q.ID.IsZero() && q.ID != id {
				matching = false
			}
			q.ID = id
		case ByActive:
			if q.Active.Set && q.Active.Value != t.Bool {
				matching = false
			}
			q.Active = rolecall.Some(t.Bool)
		}
	}
	return matching, nil
}

func (s *Server) createUser(ctx context.Context, c *call) (answer, error) {
	sent, err := c.decodeUser()
	if err != nil {
		return answer{}, err
	}
	entry, err := s.directory.ProvisionUser(ctx, c.provider, sent)
	if err != nil {
		return answer{}, err
	}
	return c.userAnswer(http.StatusCreated, &entry, nil)
}

func (c *call) decodeUser() (p directory.Provisioned, err error) {
	body, err := c.body()
	if err != nil {
		return p, err
	}
	u, err := DecodeUser(body)
	if err != nil {
		return p, err
	}
	return u.provisioned()
}

func (s *Server) getUser(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.User](c)
	if err != nil {
		return answer{}, err
	}
	entry, groups, err := s.directory.ProvisionedUser(ctx, c.provider, id)
	if err != nil {
		return answer{}, err
	}
	return c.userAnswer(http.StatusOK, &entry, groups)
}

func (s *Server) replaceUser(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.User](c)
	if err != nil {
		return answer{}, err
	}
	sent, err := c.decodeUser()
	if err != nil {
		return answer{}, err
	}
	return s.changeUser(ctx, c, id, func(rolecall.DirectoryEntry) (directory.Provisioned, error) { return sent, nil })
}

func (s *Server) patchUser(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.User](c)
	if err != nil {
		return answer{}, err
	}
	body, err := c.body()
	if err != nil {
		return answer{}, err
	}
	operations, err := DecodePatch(body)
	if err != nil {
		return answer{}, err
	}
	return s.changeUser(ctx, c, id, func(e rolecall.DirectoryEntry) (p directory.Provisioned, err error) {
		u, err := userOf(&e)
		if err != nil {
			return p, err
		}
		was := *u.Active
		if u, err = PatchUser(u, operations); err != nil {
			return p, err
		}
		if u.Active != nil && *u.Active == was { // an administrator can have suspended a user that is taken over, which the directory has not asked for
			u.Active = nil
		}
		return u.provisioned()
	})
}

func (s *Server) changeUser(ctx context.Context, c *call, id rolecall.UserID, change func(rolecall.DirectoryEntry) (directory.Provisioned, error)) (answer, error) {
	entry, groups, err := s.directory.ChangeProvisioned(ctx, c.provider, id, match(c, userVersion), change)
	if err != nil {
		return answer{}, err
	}
	return c.userAnswer(http.StatusOK, &entry, groups)
}

func userVersion(u *rolecall.User) int64 { return u.Version }

func (s *Server) deleteUser(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.User](c)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, s.directory.Deprovision(ctx, c.provider, id, match(c, userVersion))
}
