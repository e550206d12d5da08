package console

import (
	"net/url"
	"slices"

	"github.com/rolecall/rolecall"
)

// listAddress returns the address of the list with those of its parameters that are
// set, and with the changes: name, value, name, value.
func (f frame) listAddress(parameters []string, changes ...string) string {
	asked, query := f.request.URL.Query(), url.Values{}
	for _, name := range parameters {
		if text := asked.Get(name); text != "" {
			query.Set(name, text)
		}
	}
	for i := 0; i < len(changes); i += 2 {
		if query.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			query.Del(changes[i])
		}
	}
	if len(query) == 0 {
		return f.request.URL.Path
	}
	return f.request.URL.Path + "?" + query.Encode()
}

// asked returns what the address says of the parameter.
func (f frame) asked(name string) string { return f.request.URL.Query().Get(name) }

// pageLinks are the addresses of the first and the next page of a list; the first is
// empty on itself, the next after the last.
type pageLinks struct{ first, next string }

// pagesOf returns those of a list with these parameters. Where only the results are
// asked for, the browser is told the address of the list that they are.
func (f frame) pagesOf(parameters []string, next *rolecall.Position) (links pageLinks) {
	if f.asked("cursor") != "" {
		links.first = f.listAddress(parameters)
	}
	if f.fragment() == "results" {
		f.replaceURL(f.listAddress(append(slices.Clone(parameters), "cursor")))
	}
	if next != nil {
		links.next = f.listAddress(parameters, "cursor", f.sealCursor(next))
	}
	return links
}

// sortOf returns the address that sorts the list by the member, or the other way round, and
// the value of aria-sort.
func (f frame) sortOf(parameters []string, by string) (address, direction string) {
	to, direction := by, "none"
	switch f.asked("sort") {
	case by:
		to, direction = "-"+by, "ascending"
	case "-" + by:
		to, direction = "", "descending"
	}
	return f.listAddress(parameters, "sort", to), direction
}

// parameterName returns what people call the parameter.
func parameterName(parameter string) string {
	switch parameter {
	case "q":
		return "The search"
	case "cursor":
		return "The page"
	}
	return sentence("the " + parameter)[:len("the "+parameter)]
}

// suggestedBytes bounds what is suggested: the list is not to outweigh the page.
const suggestedBytes = 2 << 10

// suggested returns as many of the words, from the first on, as a field may suggest.
func suggested(words []string) []string {
	size := 0
	for i, word := range words {
		if size += len(word); size > suggestedBytes {
			return words[:i]
		}
	}
	return words
}
