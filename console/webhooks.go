package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/webhooks"
)

func (c *console) webhookPages() []page {
	one := "/{tenant}/webhooks/{id}"
	pages := []page{
		{path: "/{tenant}/webhooks", operation: "WebhooksController_listWebhooks", query: pageParameters, show: c.showWebhooks},
		{path: "/{tenant}/webhooks/create", operation: "WebhooksController_createWebhook", needsKey: true, show: c.showNewWebhook, act: c.createWebhook},
		{path: one, operation: "WebhooksController_getWebhook", show: c.showWebhook},
		{path: one + "/edit", operation: "WebhooksController_updateWebhook", show: c.showWebhookEdit, act: c.editWebhook},
		{path: one + "/preview", operation: "WebhooksController_getWebhook", show: c.showPreview},
		{path: one + "/preview/{eventId}", operation: "WebhooksController_getWebhook", show: c.showPreview},
		{path: one + "/deliveries", operation: "WebhooksController_listDeliveries", query: deliveriesQuery, show: c.showDeliveries},
		{path: one + "/rotate-secret", operation: "WebhooksController_rotateSecret", show: c.askWebhookAction(rotateSecret), act: c.rotateSecret},
		{path: one + "/replay", operation: "WebhooksController_replayWebhook", show: c.showReplay, act: c.replayWebhook},
		{path: one + "/resend/{eventId}", operation: "WebhooksController_replayWebhook", show: c.askResend, act: c.resendItem},
	}
	for i := range webhookActions {
		a := &webhookActions[i]
		pages = append(pages, page{path: one + a.path, operation: a.operation, show: c.askWebhookAction(a), act: func(v *pageContext) error {
			if err := a.do(c, v); err != nil {
				return err
			}
			address := webhookAddress(v, v.webhookID)
			if a.gone {
				address = v.path("/webhooks")
			}
			return v.redirect(address + "?done=" + a.done)
		}})
	}
	return pages
}

var deliveriesQuery = append([]parameter{
	{fieldResult, readChoice([]string{"delivered", "failed"}, "problem.result", func(p *parameters) *string { return &p.result })},
}, pageParameters...)

// fieldResult is the name of the filter for the result of an attempt.
const fieldResult = "result"

// developerLists are the tabs of the section of service accounts.
var developerLists = []section{
	{name: serviceAccountsSection, path: "/service-accounts", policies: []*authz.Policy{authz.ReadServiceAccounts}},
	{name: "nav.webhooks", path: "/webhooks", policies: []*authz.Policy{authz.ReadWebhooks}},
}

// webhookAction is an action on a webhook with a confirmation.
type webhookAction struct {
	path        string
	operation   string
	key         string // the prefix of the message keys: label, title and detail
	done        string // the word of the message after success
	destructive bool
	gone        bool // the action deletes the webhook
	applies     func(w *rolecall.Webhook) bool
	do          func(c *console, v *pageContext) error
}

var rotateSecret = &webhookAction{path: "/rotate-secret", key: "webhook-action.rotate"}

// webhookActions are the actions in the order of the menu.
var webhookActions = []webhookAction{
	{
		path: "/test", operation: "WebhooksController_testWebhook", key: "webhook-action.test", done: "webhook-tested",
		do: func(c *console, v *pageContext) error {
			_, err := c.webhooks.TestWebhook(v.ctx, v.call, v.webhookID)
			return err
		},
	},
	{
		path: "/enable", operation: "WebhooksController_updateWebhook", key: "webhook-action.enable", done: "webhook-enabled",
		applies: func(w *rolecall.Webhook) bool { return !w.Enabled }, do: enabling(true),
	},
	{
		path: "/disable", operation: "WebhooksController_updateWebhook", key: "webhook-action.disable", done: "webhook-disabled",
		applies: func(w *rolecall.Webhook) bool { return w.Enabled }, do: enabling(false),
	},
	{
		path: "/skip", operation: "WebhooksController_skipItems", key: "webhook-action.skip", done: "webhook-skipped", destructive: true,
		do: func(c *console, v *pageContext) error {
			return c.webhooks.SkipItems(v.ctx, v.call, v.webhookID, v.form.Get("all") == "true")
		},
	},
	{
		path: "/delete", operation: "WebhooksController_deleteWebhook", key: "webhook-action.delete", done: "webhook-deleted", destructive: true, gone: true,
		do: func(c *console, v *pageContext) error {
			return c.webhooks.DeleteWebhook(v.ctx, v.call, v.webhookID, nil)
		},
	},
}

func enabling(enabled bool) func(*console, *pageContext) error {
	return func(c *console, v *pageContext) error {
		_, err := c.webhooks.UpdateWebhook(v.ctx, v.call, v.webhookID, rolecall.WebhookPatch{Enabled: rolecall.Some(enabled)}, nil)
		return err
	}
}

// webhookTest is the type of a test in the list of deliveries.
const webhookTest rolecall.EventType = "webhook.test"

// webhooksView is the data of the list of webhooks.
type webhooksView struct {
	frame
	pageLinks
	page   rolecall.Page[rolecall.Webhook]
	states map[rolecall.WebhookID]webhooks.State
	names  names // names of the service accounts
	feed   feedLag
}

func (c *console) showWebhooks(v *pageContext) (err error) {
	list := webhooksView{}
	if v.faults == nil {
		if list.page, err = c.webhooks.Webhooks(v.ctx, v.call, v.after, v.limit); err != nil {
			return err
		}
	}
	if list.states, err = c.webhooks.States(v.ctx, v.call, list.page.Items); err != nil {
		return err
	}
	if list.names, err = c.namesOf(v, accountsOf(list.page.Items)); err != nil {
		return err
	}
	if list.feed.oldest, err = c.webhooks.FeedLag(v.ctx, v.call); err != nil {
		return err
	}
	return c.show(v, msg("nav.webhooks"), serviceAccountsSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return webhooksPage(list)
	})
}

func accountsOf(list []rolecall.Webhook) (ids []rolecall.AnyID) {
	for i := range list {
		ids = append(ids, rolecall.AnyID(list[i].ServiceAccountID))
	}
	return ids
}

// webhookView is the data of the pages of one webhook.
type webhookView struct {
	frame
	pageLinks
	webhook  rolecall.Webhook
	names    names                                   // the name of the service account
	attempts rolecall.Page[rolecall.WebhookDelivery] // the newest attempts
	accounts []rolecall.ServiceAccount               // the service accounts that the form offers
	made     idempotency.Created[webhooks.Webhook]
	history  *history // nil if the caller may not read events
	lag      webhooks.Lag
	feed     feedLag
	preview  webhooks.Preview
}

// feedLag is when the oldest change occurred that is not in the change feed yet. It is zero if all are.
type feedLag struct{ oldest rolecall.Time }

// feedPatience is how long a change usually waits at most for its place in the feed.
const feedPatience = 5 * time.Second

// isDelayed reports whether changes wait longer than usual.
func (l feedLag) isDelayed(now rolecall.Time) bool {
	return l.oldest != 0 && now.Sub(l.oldest) > feedPatience
}

// webhookShown is the number of attempts on the page of a webhook.
const webhookShown = 20

// webhookView returns the webhook that the path names.
func (c *console) webhookView(v *pageContext) (view webhookView, err error) {
	if view.webhook, err = c.webhooks.Webhook(v.ctx, v.call, v.webhookID); err == nil {
		view.names, err = c.namesOf(v, []rolecall.AnyID{rolecall.AnyID(view.webhook.ServiceAccountID)})
	}
	return view, err
}

func (c *console) showWebhook(v *pageContext) error {
	view, err := c.webhookView(v)
	if err == nil {
		view.attempts, err = c.webhooks.Deliveries(v.ctx, v.call, rolecall.WebhookDeliveryQuery{Webhook: v.webhookID, Limit: webhookShown})
	}
	if err == nil {
		view.history, err = c.historyOf(v, rolecall.AnyID(v.webhookID), "")
	}
	if err == nil {
		view.lag, err = c.webhooks.Lag(v.ctx, v.call, v.webhookID)
	}
	if err == nil {
		view.feed.oldest, err = c.webhooks.FeedLag(v.ctx, v.call)
	}
	if err != nil {
		return err
	}
	return c.showOne(v, view, host(view.webhook.URL), webhookPage)
}

// showPreview shows the request that the webhook would send now, for the event in the path or for the newest
// one.
func (c *console) showPreview(v *pageContext) error {
	view, err := c.webhookView(v)
	if err == nil {
		view.preview, err = c.webhooks.Preview(v.ctx, v.call, v.webhookID, v.eventID)
	}
	if err != nil {
		return err
	}
	return c.showOne(v, view, msg("webhooks.preview"), previewPage)
}

// showOne writes a page of a webhook.
func (c *console) showOne(v *pageContext, view webhookView, title string, content func(webhookView) templ.Component) error {
	return c.show(v, title, serviceAccountsSection, func(f frame) templ.Component {
		view.frame = f
		view.pageLinks = f.pagesOf([]string{fieldResult}, view.attempts.Next)
		return content(view)
	})
}

func (c *console) showDeliveries(v *pageContext) error {
	view, err := c.webhookView(v)
	if err == nil && v.faults == nil {
		view.attempts, err = c.webhooks.Deliveries(v.ctx, v.call, rolecall.WebhookDeliveryQuery{Webhook: v.webhookID, Result: v.result, After: v.after, Limit: v.limit})
	}
	if err != nil {
		return err
	}
	return c.showOne(v, view, msg("webhooks.attempts"), deliveriesPage)
}

// webhookDots are the dots of the states of webhooks, by the states of users that have them.
var webhookDots = map[webhooks.State]string{webhooks.StateEnabled: "active", webhooks.StateFailing: "pending", webhooks.StateBlocked: "suspended", webhooks.StateDisabled: "suspended"}

// offerAccounts reads the service accounts that a webhook can have, at most MaxLimit: the active ones, and its
// present one.
func (c *console) offerAccounts(v *pageContext, view *webhookView) error {
	if authz.ReadServiceAccounts.Authorize(v.call.Principal) != nil {
		return nil
	}
	page, err := c.directory.ServiceAccounts(v.ctx, v.call, rolecall.ServiceAccountQuery{ByName: true, Limit: rolecall.MaxLimit})
	view.accounts = slices.DeleteFunc(page.Items, func(a rolecall.ServiceAccount) bool {
		return a.Status != rolecall.ServiceAccountActive && a.ID != view.webhook.ServiceAccountID
	})
	return err
}

// accountWords returns the name of a service account, and whether it is suspended.
func accountWords(a *rolecall.ServiceAccount) string {
	if a.Status != rolecall.ServiceAccountActive {
		return msg("webhooks.suspended-account", "Name", a.Name)
	}
	return a.Name
}

func (c *console) showNewWebhook(v *pageContext) error {
	view := webhookView{}
	if err := c.offerAccounts(v, &view); err != nil {
		return err
	}
	return c.showOne(v, view, msg("webhooks.new"), newWebhookPage)
}

// createWebhook creates a webhook and shows its secret once. If the same form is sent again, the
// response does not contain the secret.
func (c *console) createWebhook(v *pageContext) error {
	draft := rolecall.WebhookDraft{URL: v.form.Get("url"), Types: typesIn(v.form["types"])}
	var faults rolecall.FieldErrors
	draft.ServiceAccountID = accountIn(v.form.Get("serviceAccountId"), &faults)
	draft.IgnoreActors = idsIn(v.form["ignoreActors"], &faults)
	if err := faults.Err(); err != nil {
		return err
	}
	made, err := c.webhooks.CreateWebhook(v.ctx, v.call, v.key(), draft)
	if err != nil {
		return err
	}
	return c.showOne(v, webhookView{webhook: made.Value.Webhook, made: made}, msg("webhooks.secret"), webhookSecretPage)
}

func (c *console) rotateSecret(v *pageContext) error {
	rotated, err := c.webhooks.RotateSecret(v.ctx, v.call, v.webhookID, nil)
	if err != nil {
		return err
	}
	made := idempotency.Created[webhooks.Webhook]{Value: rotated}
	return c.showOne(v, webhookView{webhook: rotated.Webhook, made: made}, msg("webhooks.secret"), rotatedSecretPage)
}

func (c *console) showWebhookEdit(v *pageContext) error {
	view, err := c.webhookView(v)
	if err == nil {
		err = c.offerAccounts(v, &view)
	}
	if err != nil {
		return err
	}
	return c.showOne(v, view, msg("form.edit"), webhookEditPage)
}

func (c *console) editWebhook(v *pageContext) error {
	var patch rolecall.WebhookPatch
	var faults rolecall.FieldErrors
	if text, changed := typed(v, "url"); changed {
		patch.URL = rolecall.Some(text)
	}
	if text, changed := typed(v, "serviceAccountId"); changed {
		patch.ServiceAccountID = rolecall.Some(accountIn(text, &faults))
	}
	if now := lines(v.form["types"]); !slices.Equal(now, lines(v.form["was-types"])) {
		patch.Types = rolecall.Some(typesIn(now))
	}
	if now := lines(v.form["ignoreActors"]); !slices.Equal(now, lines(v.form["was-ignoreActors"])) {
		patch.IgnoreActors = rolecall.Some(idsIn(now, &faults))
	}
	if err := faults.Err(); err != nil {
		return err
	}
	if _, err := c.webhooks.UpdateWebhook(v.ctx, v.call, v.webhookID, patch, match(v, v.webhookTag)); err != nil {
		return err
	}
	return v.redirect(webhookAddress(v, v.webhookID) + "?done=saved")
}

// typesIn returns the types in the form. It never returns nil, because a new webhook without a list
// of types sends all events.
func typesIn(texts []string) []rolecall.EventType {
	types := []rolecall.EventType{}
	for _, text := range lines(texts) {
		types = append(types, rolecall.EventType(text))
	}
	return types
}

func accountIn(text string, faults *rolecall.FieldErrors) rolecall.ServiceAccountID {
	id, err := rolecall.ParseID[rolecall.ServiceAccount](text)
	if err != nil {
		faults.Add("/serviceAccountId", "required", msg("webhooks.choose-account"))
	}
	return id
}

func idsIn(texts []string, faults *rolecall.FieldErrors) (ids []rolecall.AnyID) {
	for i, text := range lines(texts) {
		id, err := rolecall.ParseID[any](text)
		if err != nil {
			faults.Add("/ignoreActors/"+strconv.Itoa(i), "format", msg("webhooks.bad-id"))
		}
		ids = append(ids, rolecall.AnyID(id))
	}
	return ids
}

// askWebhookAction returns the function that shows the confirmation of the action.
func (c *console) askWebhookAction(a *webhookAction) func(*pageContext) error {
	return func(v *pageContext) error {
		view, err := c.webhookView(v)
		if err != nil {
			return err
		}
		return c.showOne(v, view, msg(a.key+".label"), func(view webhookView) templ.Component { return webhookDialog(view, a) })
	}
}

func (c *console) showReplay(v *pageContext) error {
	view, err := c.webhookView(v)
	if err != nil {
		return err
	}
	return c.showOne(v, view, msg("webhook-action.replay.label"), replayDialog)
}

func (c *console) replayWebhook(v *pageContext) error {
	var faults rolecall.FieldErrors
	replay := webhooks.Replay{From: v.readDate("from", &faults), To: v.readDate("to", &faults)}
	if err := faults.Err(); err != nil {
		return err
	}
	if err := c.webhooks.ReplayWebhook(v.ctx, v.call, v.webhookID, replay); err != nil {
		return err
	}
	return v.redirect(webhookAddress(v, v.webhookID) + "?done=webhook-replayed")
}

func (c *console) askResend(v *pageContext) error {
	view, err := c.webhookView(v)
	if err != nil {
		return err
	}
	return c.showOne(v, view, msg("webhook-action.resend.label"), resendDialog)
}

// resendItem sends the item that the path names again. The id of an event has the millisecond in which
// the event was created.
func (c *console) resendItem(v *pageContext) error {
	from := v.eventID.CreatedAt()
	if err := c.webhooks.ReplayWebhook(v.ctx, v.call, v.webhookID, webhooks.Replay{From: from, To: from.Add(time.Millisecond)}); err != nil {
		return err
	}
	return v.redirect(webhookAddress(v, v.webhookID) + "?done=webhook-replayed")
}

// webhookAddress returns the address of the page of the webhook.
func webhookAddress(v *pageContext, id rolecall.WebhookID) string {
	return v.path("/webhooks/" + id.String())
}

func (w webhookView) address(below string) string {
	return webhookAddress(w.pageContext, w.webhook.ID) + below
}

// webhookTag returns the tag of the webhook.
func (v *pageContext) webhookTag(w *rolecall.Webhook) string {
	return tagOf(w.ID.String(), strconv.FormatInt(w.Version, 10))
}

// host returns the host of the URL, which is the name of a webhook in titles.
func host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// actions returns the actions in the menu.
func (w webhookView) actions() (list []*webhookAction) {
	for i := range webhookActions {
		a := &webhookActions[i]
		policy := w.console.policies[a.operation].Policy
		if a.path != "/test" && (a.applies == nil || a.applies(&w.webhook)) && policy.Authorize(w.call.Principal) == nil {
			list = append(list, a)
		}
	}
	return list
}

// mayUpdate reports whether the caller can probably change the webhook. The service decides.
func (w webhookView) mayUpdate() bool { return authz.UpdateWebhook.Authorize(w.call.Principal) == nil }

// mayOperate reports whether the caller may test the webhook and send items again.
func (w webhookView) mayOperate() bool {
	return authz.OperateWebhook.Authorize(w.call.Principal) == nil
}

// mayPreview reports whether the caller may read what the webhook would send.
func (w webhookView) mayPreview() bool { return authz.ReadChanges.Authorize(w.call.Principal) == nil }

// previewHeader returns the request line and the headers of the preview.
func (w webhookView) previewHeader() string {
	var b strings.Builder
	b.WriteString("POST " + w.webhook.URL + "\n")
	for _, name := range slices.Sorted(maps.Keys(w.preview.Header)) {
		b.WriteString(strings.ToLower(name) + ": " + w.preview.Header.Get(name) + "\n")
	}
	b.WriteString("webhook-signature: " + msg("webhooks.preview-signature"))
	return b.String()
}

// previewBody returns the body of the preview with indentation.
func (w webhookView) previewBody() string {
	var b bytes.Buffer
	if err := json.Indent(&b, w.preview.Body, "", "  "); err != nil {
		return string(w.preview.Body)
	}
	return b.String()
}

// field returns the value of a field of the form: the submitted one, or the one of the webhook.
func (w webhookView) field(name, saved string) string {
	if w.form[name] != nil {
		return w.form.Get(name)
	}
	return saved
}

// ticked reports whether the form selects the type. The form of a new webhook selects all.
func (w webhookView) ticked(t rolecall.EventType) bool {
	switch {
	case w.form.Has("url"):
		return slices.Contains(w.form["types"], string(t))
	case t == rolecall.AllEventTypes:
		return w.webhook.SendsAllTypes()
	}
	return slices.Contains(w.webhook.Types, t)
}

// typesOf returns the types of the webhook as words.
func typesOf(w *rolecall.Webhook) string {
	if w.SendsAllTypes() {
		return msg("webhooks.all-types")
	}
	return msg("webhooks.type-count", "Count", len(w.Types))
}

// reasonOf returns why Rolecall disabled the webhook, or an empty text.
func reasonOf(w *rolecall.Webhook) string {
	if w.DisabledReason == nil {
		return ""
	}
	if key := "webhooks.reason-" + *w.DisabledReason; hasMessage(key) {
		return msg(key)
	}
	return *w.DisabledReason
}

// resultOf returns the result of an attempt as words.
func resultOf(d *rolecall.WebhookDelivery) string {
	switch key := "webhooks.error-" + d.Error; {
	case d.Error == "":
		return msg("webhooks.delivered", "Status", strconv.Itoa(d.Status))
	case d.Status != 0 && d.Error == "status":
		return msg("webhooks.refused", "Status", strconv.Itoa(d.Status))
	case hasMessage(key):
		return msg(key)
	}
	return d.Error
}

// joined returns the values as lines.
func joined[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, "\n")
}

// idLines returns the ids as lines.
func idLines(ids []rolecall.AnyID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, "\n")
}
