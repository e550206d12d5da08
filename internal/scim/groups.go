package scim

import (
	"context"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// groupsWithMembers is the maximum number of groups in a list that has their members.
const groupsWithMembers = 20

func (c *call) groupResource(g *directory.ProvisionedGroup) (map[string]any, Meta) {
	meta := Meta{ID: g.ID.String(), Base: c.base, Created: g.CreatedAt, Modified: g.UpdatedAt, Version: g.Version}
	sent := Group{DisplayName: g.Name}
	if g.ExternalID != nil {
		sent.ExternalID = *g.ExternalID
	}
	return sent.Resource(meta, g.Members), meta
}

func (c *call) groupAnswer(status int, g *directory.ProvisionedGroup) answer {
	resource, meta := c.groupResource(g)
	return c.resourceAnswer(status, resource, &meta, "/Groups/")
}

func (s *Server) listGroups(ctx context.Context, c *call) (answer, error) {
	p, err := c.page()
	if err != nil {
		return answer{}, err
	}
	q := directory.ProvisionedGroupQuery{After: rolecall.GroupID(p.after), Offset: p.offset, Members: c.chosen.Requests("members")}
	if q.Members {
		p.limit = min(p.limit, groupsWithMembers)
	}
	q.Limit = p.limit
	matching, err := c.groupFilter(&q)
	if err != nil || !matching {
		return answer{status: http.StatusOK, body: p.listResponse([]map[string]any{}, 0)}, err
	}
	groups, total, err := s.directory.ProvisionedGroups(ctx, c.provider, q)
	if err != nil {
		return answer{}, err
	}
	resources := make([]map[string]any, len(groups))
	for i := range groups {
		resources[i], _ = c.groupResource(&groups[i])
		c.chosen.Apply(resources[i])
	}
	return answer{status: http.StatusOK, body: p.listResponse(resources, total)}, nil
}

// groupFilter adds the filter of the request to the query. It returns false if no group can match.
func (c *call) groupFilter(q *directory.ProvisionedGroupQuery) (matching bool, err error) {
	if !c.query.Has("filter") {
		return true, nil
	}
	terms, err := ParseGroupFilter(c.query.Get("filter"))
	if err != nil {
		return false, err
	}
	matching = true
	for _, t := range terms {
		switch t.Attribute {
		case ByDisplayName:
			matching = matching && t.Text != "" && (q.Name == "" || strings.EqualFold(q.Name, t.Text))
			q.Name = t.Text
		case ByExternalID:
			matching = matching && t.Text != "" && (q.ExternalID == "" || q.ExternalID == t.Text)
			q.ExternalID = t.Text
		case ByID:
			id, err := rolecall.ParseID[rolecall.Group](t.Text)
			matching = matching && err == nil && !id.IsZero() && (q.ID.IsZero() || q.ID == id)
			q.ID = id
		case ByMember:
			id, err := rolecall.ParseID[rolecall.User](t.Text)
			matching = matching && err == nil && !id.IsZero() && (q.Member.IsZero() || q.Member == id)
			q.Member = id
		}
	}
	return matching, nil
}

func (s *Server) createGroup(ctx context.Context, c *call) (answer, error) {
	body, err := c.body()
	if err != nil {
		return answer{}, err
	}
	sent, users, _, err := DecodeGroup(body)
	if err != nil {
		return answer{}, err
	}
	g, err := s.directory.ProvisionGroup(ctx, c.provider, rolecall.GroupDraft{Name: sent.DisplayName, ExternalID: optional(sent.ExternalID)}, users)
	if err != nil {
		return answer{}, err
	}
	return c.groupAnswer(http.StatusCreated, &g), nil
}

// optional returns nil for the empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (s *Server) getGroup(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.Group](c)
	if err != nil {
		return answer{}, err
	}
	g, err := s.directory.ProvisionedGroup(ctx, c.provider, id, c.chosen.Returns("members"))
	if err != nil {
		return answer{}, err
	}
	return c.groupAnswer(http.StatusOK, &g), nil
}

func (s *Server) replaceGroup(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.Group](c)
	if err != nil {
		return answer{}, err
	}
	body, err := c.body()
	if err != nil {
		return answer{}, err
	}
	sent, users, membersSent, err := DecodeGroup(body)
	if err != nil {
		return answer{}, err
	}
	change := directory.GroupChange{Name: rolecall.Some(sent.DisplayName), ExternalID: rolecall.Some(optional(sent.ExternalID))}
	if membersSent {
		change.Members = []directory.MemberChange{{Users: users, Others: true}}
	}
	g, err := s.directory.ChangeProvisionedGroup(ctx, c.provider, id, match(c, groupVersion), change)
	if err != nil {
		return answer{}, err
	}
	return c.groupAnswer(http.StatusOK, &g), nil
}

func groupVersion(g *rolecall.Group) int64 { return g.Version }

// patchGroup answers 204, which Entra expects, unless the request selects attributes.
func (s *Server) patchGroup(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.Group](c)
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
	patch, err := PatchGroup(operations)
	if err != nil {
		return answer{}, err
	}
	change := directory.GroupChange{Name: patch.DisplayName}
	if patch.ExternalID.Set {
		change.ExternalID = rolecall.Some(optional(patch.ExternalID.Value))
	}
	for _, m := range patch.Changes {
		change.Members = append(change.Members, directory.MemberChange{Users: m.Users, Removes: m.Op == Remove, Others: m.Op == Replace})
	}
	g, err := s.directory.ChangeProvisionedGroup(ctx, c.provider, id, match(c, groupVersion), change)
	if err != nil {
		return answer{}, err
	}
	if c.query.Has("attributes") || c.query.Has("excludedAttributes") {
		return c.groupAnswer(http.StatusOK, &g), nil
	}
	return answer{status: http.StatusNoContent}, nil
}

func (s *Server) deleteGroup(ctx context.Context, c *call) (answer, error) {
	id, err := pathID[rolecall.Group](c)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, s.directory.DeprovisionGroup(ctx, c.provider, id, match(c, groupVersion))
}
