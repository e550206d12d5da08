package console

// Developers configure webhooks over the API.
func init() {
	for _, name := range []string{"listWebhooks", "createWebhook", "getWebhook", "updateWebhook", "deleteWebhook", "rotateSecret", "testWebhook", "replayWebhook", "skipItems", "listDeliveries"} {
		elsewhere["WebhooksController_"+name] = "developers configure webhooks over the API"
	}
}
