package console

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	"github.com/a-h/templ"
	"github.com/nicksnyder/go-i18n/v2/i18n"
	"github.com/nicksnyder/go-i18n/v2/i18n/template"
	"golang.org/x/text/language"
)

//go:embed messages/en.toml
var englishMessages []byte

// catalog has the messages of one language.
type catalog struct {
	texts     map[string]string // messages without plural forms, by key
	localizer *i18n.Localizer   // chooses the plural form of the other messages
	script    string            // the messages for the scripts, in JSON
}

// messages returns the catalog. The first call loads it.
var messages = sync.OnceValue(func() *catalog {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	file, err := bundle.ParseMessageFileBytes(englishMessages, "en.toml")
	if err != nil {
		panic(err) // cannot happen: the file is embedded, and a test reads it
	}
	c := &catalog{texts: make(map[string]string, len(file.Messages)), localizer: i18n.NewLocalizer(bundle, "en")}
	script := map[string]any{}
	for _, m := range file.Messages {
		name, isScript := strings.CutPrefix(m.ID, scriptPrefix)
		switch forms := formsOf(m); {
		case isScript && len(forms) > 1:
			script[name] = forms
		case isScript:
			script[name] = m.Other
		case len(forms) == 1:
			c.texts[m.ID] = m.Other
		}
	}
	text, err := json.Marshal(script)
	if err != nil {
		panic(err) // cannot happen: the messages are texts
	}
	c.script = string(text)
	return c
})

// scriptPrefix begins the keys of messages for the scripts. Every page contains these
// messages.
const scriptPrefix = "script."

// formsOf returns the plural forms that the message has, by category, such as "one" and
// "other".
func formsOf(m *i18n.Message) map[string]string {
	forms := map[string]string{"zero": m.Zero, "one": m.One, "two": m.Two, "few": m.Few, "many": m.Many, "other": m.Other}
	maps.DeleteFunc(forms, func(_, text string) bool { return text == "" })
	return forms
}

// scriptMessages returns the messages for the scripts, in JSON.
func scriptMessages() string { return messages().script }

// countPlaceholder is the placeholder whose value chooses the plural form.
const countPlaceholder = "Count"

// msg returns the message with the key. values are the names and values of the placeholders
// in turn, such as "Name", name. The value of the placeholder Count chooses the plural
// form.
func msg(key string, values ...any) string {
	text := messages().text(key, values)
	if len(values) == 0 {
		return text
	}
	var b strings.Builder
	_ = eachPiece(text, values, func(piece string, value any) error {
		if value != nil {
			piece = valueWords(value)
		}
		b.WriteString(piece)
		return nil
	})
	return b.String()
}

// say renders the message with the key. The values of placeholders can also be components,
// such as a name or a link.
func say(key string, values ...any) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return eachPiece(messages().text(key, values), values, func(piece string, value any) error {
			if component, ok := value.(templ.Component); ok {
				return component.Render(ctx, w)
			}
			if value != nil {
				piece = valueWords(value)
			}
			_, err := io.WriteString(w, templ.EscapeString(piece))
			return err
		})
	})
}

// hasMessage reports whether the catalog has a message with the key.
func hasMessage(key string) bool {
	_, ok := messages().texts[key]
	return ok
}

// text returns the message with the key, with its placeholders. The value of Count chooses
// the plural form. If the catalog does not have the message, text returns the key.
func (c *catalog) text(key string, values []any) string {
	if text, ok := c.texts[key]; ok {
		return text
	}
	count := valueOf(countPlaceholder, values)
	text, err := c.localizer.Localize(&i18n.LocalizeConfig{MessageID: key, PluralCount: count, TemplateParser: template.IdentityParser{}})
	if err != nil {
		return key
	}
	return text
}

// eachPiece splits the text at its placeholders and calls do for each piece in order. The
// value is nil for a piece of text, and the value of the placeholder otherwise.
func eachPiece(text string, values []any, do func(piece string, value any) error) error {
	for text != "" {
		before, rest, isPlaceholder := strings.Cut(text, "{")
		if before != "" {
			if err := do(before, nil); err != nil {
				return err
			}
		}
		if !isPlaceholder {
			return nil
		}
		var name string
		name, text, _ = strings.Cut(rest, "}")
		if value := valueOf(name, values); value != nil {
			if err := do("", value); err != nil {
				return err
			}
		}
	}
	return nil
}

// valueOf returns the value of the placeholder with the name. It returns nil if values does
// not contain the name.
func valueOf(name string, values []any) any {
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == name {
			return values[i+1]
		}
	}
	return nil
}

// valueWords returns the value of a placeholder as text.
func valueWords(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case int:
		return thousands(value)
	default:
		return fmt.Sprint(value)
	}
}
