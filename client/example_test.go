package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/rolecall/rolecall/client"
)

// copied is a copy of the users of a tenant, with the cursor of the changes that it contains.
type copied struct {
	cursor string
	names  map[string]string
}

// walk reads the list of users. The cursor is from before.
func (c *copied) walk(ctx context.Context, service *client.Client) (err error) {
	if c.cursor, err = service.ChangesNow(ctx, client.ChangeFilter{}); err != nil {
		return err
	}
	c.names = map[string]string{}
	for user, err := range service.Users(ctx, client.UserFilter{}) {
		if err != nil {
			return err
		}
		c.names[user.ID] = user.Name
	}
	return nil
}

// apply reads the users of the changes again. In a database, apply and the cursor are one transaction.
func (c *copied) apply(ctx context.Context, service *client.Client, page client.ChangePage) error {
	for _, change := range page.Items {
		if change.Data.Subject.Type != "user" {
			continue
		}
		user, err := service.User(ctx, change.Data.Subject.ID)
		if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Code == "not-found" {
			delete(c.names, change.Data.Subject.ID)
		} else if err != nil {
			return err
		} else {
			c.names[user.ID] = user.Name
		}
	}
	c.cursor = page.Cursor
	return nil
}

// follow keeps the copy up to date until ctx ends.
func (c *copied) follow(ctx context.Context, service *client.Client) error {
	for {
		if c.cursor == "" {
			if err := c.walk(ctx, service); err != nil {
				return err
			}
		}
		for page, err := range service.FollowChanges(ctx, c.cursor, client.ChangeFilter{}) {
			if errors.Is(err, client.ErrChangesExpired) {
				c.cursor = "" // walk again
				break
			}
			if err != nil {
				return err
			}
			if err := c.apply(ctx, service, page); err != nil {
				return err
			}
		}
	}
}

// A program that keeps a copy of the users up to date.
func ExampleClient_FollowChanges() {
	service := client.NewWithToken("https://id.example.com", "acme", "rc_…", nil)
	copied := copied{} // from the database of the program
	if err := copied.follow(context.Background(), service); err != nil {
		fmt.Println(err)
	}
}

// An application that checks permissions in memory.
func ExamplePrincipals() {
	principals := client.NewPrincipals(client.PrincipalsConfig{Base: "https://id.example.com", Tenant: "acme", FeedToken: os.Getenv("FEED_TOKEN")})
	defer principals.Close()
	invoices := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := client.FromContext(r.Context())
		if !client.Can(caller, "shop/invoices:approve", "Sales") {
			http.Error(w, "You may not approve invoices of Sales.", http.StatusForbidden)
			return
		}
		fmt.Fprintln(w, "approved by", caller.Caller.Name)
	})
	http.Handle("/invoices", principals.Middleware(client.Require("shop/invoices:read", nil, invoices)))
	if err := http.ListenAndServe("127.0.0.1:8090", nil); err != nil {
		fmt.Println(err)
	}
}
