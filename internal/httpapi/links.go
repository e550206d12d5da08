package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

// deliveryBody selects how a link reaches the user.
type deliveryBody struct {
	Delivery linkDelivery `json:"delivery" enum:"mail,return" default:"mail" doc:"How the link reaches the user. With mail, Rolecall mails it. With return, the response has it once, and no mail is sent."`
}

var _ = operation.Component[deliveryBody]("LinkDelivery", "How a link reaches the user. Without a body, Rolecall mails it.")

// linkDelivery is a delivery by mail or in the response.
type linkDelivery rolecall.Delivery

// UnmarshalWire reads the delivery.
func (l *linkDelivery) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if eitherOf(d, pointer, value, "mail", string(rolecall.DeliverInResponse)) == string(rolecall.DeliverInResponse) {
		*l = linkDelivery(rolecall.DeliverInResponse)
	}
}

// returnedLink has the members of a response to a request with the delivery return.
type returnedLink struct {
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the token and the link are therefore not shown again. To replace a lost link, send the request with a new idempotency key. Absent otherwise."`
	Token          string `json:"token,omitzero" doc:"The token in the link. Only with the delivery return."`
	Link           string `json:"link,omitzero" doc:"The link that the user opens to set a password. Only with the delivery return."`
}

// returnedLink returns the members for a token that was issued. They are empty if the link is mailed.
func (s *Server) returnedLink(kind rolecall.MailKind, c access.Caller, by rolecall.Delivery, token secret.Token, replayed bool) (link returnedLink) {
	switch {
	case by == rolecall.DeliverByMail:
	case replayed:
		link.SecretWithheld = true
	default:
		link.Token, link.Link = string(token), s.site.Links.Link(kind, c.Tenant.Name, string(token))
	}
	return link
}

// parseToken returns the token in a link. If the text is not well-formed, parseToken returns the
// error invalid. Callers pass the error that an unknown token also gets.
func parseToken(text string, invalid error) (secret.Token, error) {
	token, ok := secret.ParseToken(text)
	if !ok {
		return "", invalid
	}
	return token, nil
}
