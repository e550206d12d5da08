package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/internal/progress"
)

const (
	consoleUsers  = 100_000
	consoleRounds = 200 // number of requests for each page
	answeredIn    = 100 * time.Millisecond
	largestPage   = 60 << 10 // bytes of the compressed response
)

// consolePage is a list of users in the console. query returns the query parameters of the list for
// a sampled user.
type consolePage struct {
	name  string
	query func(*survey, user) string
}

var consolePages = []consolePage{
	{"users", func(*survey, user) string { return "" }},
	{"by name, from the end", func(*survey, user) string { return "sort=-name" }},
	{"search: a common word", func(_ *survey, u user) string { return "q=" + url.QueryEscape(firstOf(u)) }},
	{"search: a rare word", func(_ *survey, u user) string { return "q=" + url.QueryEscape(lastOf(u)) }},
	{"search: two words", func(_ *survey, u user) string { return "q=" + url.QueryEscape(firstOf(u)+" "+lastOf(u)[:2]) }},
	{"search: everybody's word", func(*survey, user) string { return "q=example" }},
	{"of a common status", func(*survey, user) string { return "status=active" }},
	{"of a rare status", func(*survey, user) string { return "status=suspended" }},
	{"of a department", func(*survey, user) string { return "department=Department+7" }},
	{"holders of a role", func(s *survey, _ user) string { return "role=" + s.first }},
	{"all filters at once", func(s *survey, u user) string {
		return "department=Department+7&status=active&role=" + s.first + "&q=" + url.QueryEscape(firstOf(u))
	}},
}

// manyPages measures pages of users in the console, and their counts, which are separate
// requests.
func (b *bench) manyPages(ctx context.Context) (err error) {
	users := min(b.users, consoleUsers)
	n, err := b.filled(ctx, "console", "--users", strconv.Itoa(users), "--departments", "20", "--passwords", "1",
		"--roles", "200", "--holders", strconv.Itoa(users/10), "--assignments", "10")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	s, err := n.survey(ctx, users)
	if err != nil {
		return err
	}
	answers := table{title: fmt.Sprintf("pages of %d users", users), columns: [2]string{"median", "p99"}}
	bar := progress.Start(os.Stderr, "pages", len(consolePages))
	most := 0
	for _, p := range consolePages {
		for _, part := range []string{"", "count"} {
			var took []time.Duration
			for i := range consoleRounds {
				begun := time.Now()
				size, err := s.getPage(ctx, "/users?"+p.query(s, s.users[i%len(s.users)]), part)
				if err != nil {
					return err
				}
				took, most = append(took, time.Since(begun)), max(most, size)
			}
			slices.Sort(took)
			p99 := took[len(took)*99/100]
			answers.rows = append(answers.rows, row{
				name: p.name + map[string]string{"count": ", its count"}[part], small: inMilliseconds(took[len(took)/2]), large: inMilliseconds(p99),
				goal: "<= " + answeredIn.String(), missed: p99 > answeredIn,
			})
		}
		bar.Add(1)
	}
	bar.End()
	answers.rows = append(answers.rows, row{
		name: "the largest, as sent", large: fmt.Sprintf("%.1f KiB", float64(most)/1024),
		goal: fmt.Sprintf("<= %d KiB", largestPage>>10), missed: most > largestPage,
	})
	return answers.print(os.Stdout)
}

// getPage requests a page of the console, or a part of it, as a browser does. It returns the
// number of received bytes.
func (s *survey) getPage(ctx context.Context, path, part string) (int, error) {
	owner := s.owner()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/console/"+owner.tenant+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header = http.Header{"Cookie": {"session=" + owner.token}, "Accept-Encoding": {"gzip"}, "Sec-Fetch-Site": {"same-origin"}}
	if part != "" {
		request.Header["Hx-Request"], request.Header["Hx-Target"] = []string{"true"}, []string{part}
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d", path, answer.StatusCode)
	}
	return int(size), errors.Join(err, answer.Body.Close())
}
