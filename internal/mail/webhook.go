package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/secret"
)

// Webhook passes mails to an application over HTTPS, which sends them in its own words. Requests have
// the headers and the signature of Standard Webhooks 1.0.
type Webhook struct {
	url    string
	secret string
	links  rolecall.MailLinks
	client *outbound.Client
}

// CheckWebhook returns an error unless the URL is an https URL. Without allowed networks, its host must be
// on the internet.
func CheckWebhook(address string, allowed []netip.Prefix) error {
	if len(allowed) == 0 {
		return outbound.CheckURL(address)
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("must be an https URL without a user name and a fragment")
	}
	return nil
}

// NewWebhook returns a mailer that posts to the URL, and signs with the secret (whsec_ and base64). It
// returns an error if the secret does not have this form.
func NewWebhook(address, key string, links rolecall.MailLinks, client *outbound.Client) (*Webhook, error) {
	if _, err := secret.SignWebhook(key, "", 0, nil); err != nil {
		return nil, errors.New("must be whsec_ and at least 24 bytes in base64") // without the secret
	}
	return &Webhook{address, key, links, client}, nil
}

// webhookMail is the body of a request.
type webhookMail struct {
	Type      string          `json:"type"` // "mail." and the kind
	Timestamp rolecall.Time   `json:"timestamp"`
	Data      webhookMailData `json:"data"`
}

// webhookMailData are the values of a mail. Members that do not apply to its kind are absent.
type webhookMailData struct {
	Kind            rolecall.MailKind `json:"kind"`
	To              string            `json:"to"`
	Name            string            `json:"name"`
	UserID          rolecall.UserID   `json:"userId"`
	Tenant          webhookTenant     `json:"tenant"`
	Locale          *string           `json:"locale"` // null: Rolecall does not know the language of a user
	Token           string            `json:"token,omitempty"`
	Link            string            `json:"link,omitempty"`
	ExpiresAt       rolecall.Time     `json:"expiresAt"`
	What            string            `json:"what,omitempty"`
	NewEmail        string            `json:"newEmail,omitempty"`
	ByAdministrator bool              `json:"byAdministrator,omitempty"`
	Client          string            `json:"client,omitempty"`
	Source          string            `json:"source,omitempty"`
}

type webhookTenant struct {
	ID          rolecall.TenantID `json:"id"`
	Name        string            `json:"name"`
	DisplayName string            `json:"displayName"`
}

// Send posts the mail once. It returns nil if the application answers with a status from 200 to 299. It
// returns ErrNoMailbox for the status 410: the mail is then not sent again.
func (w *Webhook) Send(ctx context.Context, tenant rolecall.Tenant, m rolecall.Mail) error {
	data := webhookMailData{
		Kind: m.Kind, To: m.To, Name: m.Name, UserID: m.UserID, Tenant: webhookTenant{tenant.ID, tenant.Name, tenant.DisplayName},
		Token: m.Token, ExpiresAt: m.ExpiresAt, What: m.What, NewEmail: m.NewEmail, ByAdministrator: m.ByAdministrator, Client: m.Client, Source: m.Source,
	}
	if m.Token != "" {
		data.Link = w.links.Link(m.Kind, tenant.Name, m.Token)
	}
	body, err := json.Marshal(webhookMail{"mail." + strings.ReplaceAll(string(m.Kind), "-", "_"), m.CreatedAt, data})
	if err != nil {
		return err
	}
	header, err := secret.WebhookHeader([]string{w.secret}, m.ID.String(), time.Now().Unix(), "application/json", body)
	if err != nil {
		return err
	}
	result := w.client.Post(ctx, w.url, header, body)
	switch {
	case result.Error == "":
		return nil
	case result.Status == http.StatusGone:
		return rolecall.ErrNoMailbox
	case result.Status != 0:
		return fmt.Errorf("the mail webhook answered with the status %d", result.Status)
	}
	return fmt.Errorf("the mail webhook could not be reached: %s", result.Error)
}
