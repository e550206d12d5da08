package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) logoOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/tenant/logo", ID: "TenantController_getLogo", Summary: "Get the logo of the tenant",
			Description: "Returns the image as it was uploaded.",
			Policy:      authz.ReadTenant,
			Answers:     operation.Answers{{http.StatusOK, "The image.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.Download(rolecall.LogoMediaTypes, s.getLogo),
		},
		{
			Method: http.MethodPut, Path: "/tenant/logo", ID: "TenantController_setLogo", Summary: "Set the logo of the tenant",
			Description: "Stores the image in the body, and replaces an earlier logo. The pages where users sign in, accept an invitation, or follow another mailed link show it to everyone. The image has a width and a height from 16 to 1024 pixels. It is stored unchanged, with its metadata. SVG is refused, because it can contain scripts.",
			Policy:      authz.UpdateTenant,
			Answers:     operation.Answers{{http.StatusOK, "The logo. The ETag is that of GET /tenant/logo.", []string{"ETag"}}},
			Handler:     operation.JSON(s.setLogo),
		},
		{
			Method: http.MethodDelete, Path: "/tenant/logo", ID: "TenantController_deleteLogo", Summary: "Remove the logo of the tenant",
			Description: "Removes the logo. Browsers can keep a copy.",
			Policy:      authz.UpdateTenant,
			Answers:     operation.Answers{{http.StatusNoContent, "The logo was removed.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.deleteLogo),
		},
	}
}

func (s *Server) getLogo(ctx context.Context, c access.Caller, _ *getTenantRequest) (operation.File, error) {
	file, err := s.directory.TenantLogo(ctx, c)
	return operation.File(file), err
}

type setLogoRequest struct {
	operation.IfMatchHeader
	Body operation.File
}

// FileRules returns the limits of the image.
func (setLogoRequest) FileRules() operation.FileRules {
	return operation.FileRules{MediaTypes: rolecall.LogoMediaTypes, SizeMax: rolecall.LogoSizeMax}
}

func (s *Server) setLogo(ctx context.Context, c access.Caller, in *setLogoRequest) (operation.Response[logoBody], error) {
	logo, err := s.directory.SetLogo(ctx, c, rolecall.LogoFile(in.Body), matchLogo(in.IfMatch))
	return operation.Response[logoBody]{Body: *newLogoBody(&logo), Tag: logoTag(&logo)}, err
}

type deleteLogoRequest struct{ operation.IfMatchHeader }

func (s *Server) deleteLogo(ctx context.Context, c access.Caller, in *deleteLogoRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.RemoveLogo(ctx, c, matchLogo(in.IfMatch))
}

// logoBody describes the logo of a tenant.
type logoBody struct {
	MediaType string        `json:"mediaType" doc:"image/png, image/jpeg or image/webp. Later versions may add values."`
	Width     int           `json:"width" doc:"Width in pixels."`
	Height    int           `json:"height" doc:"Height in pixels."`
	Size      int           `json:"size" doc:"Size in bytes."`
	UpdatedAt rolecall.Time `json:"updatedAt" doc:"When the logo was set."`
}

var _ = operation.Component[logoBody]("Logo", "The logo of a tenant, without the image.")

func newLogoBody(l *rolecall.Logo) *logoBody {
	if l == nil {
		return nil
	}
	return &logoBody{l.MediaType, l.Width, l.Height, l.Size, l.UpdatedAt}
}

// logoTag returns the ETag of the image.
func logoTag(l *rolecall.Logo) string { return `"` + l.Hash + `"` }

// matchLogo is like match. Without a logo, no If-Match header matches, also not *.
func matchLogo(m operation.IfMatch) directory.Match[rolecall.Logo] {
	if !m.Given {
		return nil
	}
	return func(l *rolecall.Logo) bool { return l != nil && m.Matches(logoTag(l)) }
}
