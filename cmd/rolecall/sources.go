package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// sources are the sources of settings that are not on the command line: the environment and the file
// of --config. The environment has precedence.
type sources struct {
	variables map[string]string // the environment
	isAdded   bool
	warnings  []string // messages about the environment and the file of --config
}

// add adds the sources to the command line. kong calls add before it resolves the flags, once for each
// flag and command of the line.
func (s *sources) add(line *kong.Context) error {
	if s.isAdded {
		return nil
	}
	s.isAdded = true
	s.findMisspelled(line.Model)
	path := s.variables[variable("config")]
	for _, flag := range line.Flags() {
		if given, ok := line.FlagValue(flag).(string); ok && flag.Name == "config" && given != "" {
			path = given
		}
	}
	var values map[string]any
	if path != "" {
		var err error
		if values, err = s.readFile(line.Model, path); err != nil {
			return fmt.Errorf("--config %s: %w", path, err)
		}
	}
	line.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !isSetting(flag) {
			return nil, nil
		}
		if value, name, err := s.variable(flag); err != nil {
			return nil, err
		} else if name != "" {
			return value, checkVariable(flag, value, name)
		}
		return values[flag.Name], nil
	}))
	return nil
}

// checkVariable returns an error with the name of the variable if the flag does not accept its value. kong
// adds the name of the flag.
func checkVariable(flag *kong.Flag, value, name string) error {
	if err := accepts(flag, value); err != nil {
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "--"+flag.Name+": "))
	}
	return nil
}

// accepts returns an error if the flag does not accept the value.
func accepts(flag *kong.Flag, value any) error {
	return flag.Parse(kong.Scan().PushTyped(value, kong.FlagValueToken), reflect.New(flag.Target.Type()).Elem())
}

// variable returns the value that the environment has for the flag, and the name of the variable, or "" if
// none is set. A secret can also be in a file, whose path is in the variable with the suffix _FILE. An empty
// variable is an error, as for flags. But next to the one of the file, it replaces the variable of an image,
// which containers cannot remove.
func (s *sources) variable(flag *kong.Flag) (value, name string, err error) {
	name = variable(flag.Name)
	value, isSet := s.variables[name]
	file, hasFile := "", false
	if isSecret(flag) {
		file, hasFile = s.variables[name+secretFile]
	}
	switch {
	case hasFile && file == "":
		return "", "", emptyVariable(name + secretFile)
	case hasFile && value != "":
		return "", "", fmt.Errorf("%s and %s are both set: remove one of them", name, name+secretFile)
	case !hasFile && !isSet:
		return "", "", nil
	case !hasFile && value == "":
		return "", "", emptyVariable(name)
	case !hasFile:
		return value, name, nil
	}
	name += secretFile
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", name, err)
	}
	if value = strings.TrimSpace(string(content)); value == "" {
		return "", "", fmt.Errorf("%s: %s is empty", name, file)
	}
	if warning := modeWarning(name, file, "the secret"); warning != "" {
		s.warnings = append(s.warnings, warning)
	}
	return value, name, nil
}

func emptyVariable(name string) error {
	return fmt.Errorf("the variable %s is empty: give it a value, or remove it", name)
}

// findMisspelled adds a warning for each variable whose name is almost the name of a setting.
func (s *sources) findMisspelled(app *kong.Application) {
	flags, known := map[string]*kong.Flag{}, map[string]bool{variable("config"): true}
	collectSettings(app.Node, flags)
	for _, flag := range flags {
		known[variable(flag.Name)] = true
		if isSecret(flag) {
			known[variable(flag.Name)+secretFile] = true
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range slices.Sorted(maps.Keys(s.variables)) {
		if !strings.HasPrefix(name, "ROLECALL_") || known[name] || s.variables[name] == "" {
			continue
		}
		if i := slices.IndexFunc(names, func(setting string) bool { return distance(name, setting) <= maxMisspelled }); i >= 0 {
			s.warnings = append(s.warnings, fmt.Sprintf("the variable %s is not a setting and has no effect: did you mean %s?", name, names[i]))
		}
	}
}

// maxMisspelled is the maximum distance of a variable from the setting that was meant. Two swapped
// characters have a distance of two.
const maxMisspelled = 2

// distance returns how many characters must be inserted, removed or replaced to change a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// secretFile is the suffix of a variable that has the path of a file with the value.
const secretFile = "_FILE"

// isSecret reports whether the value of the flag can contain a password.
func isSecret(flag *kong.Flag) bool { return flag.Tag.Has("secret") }

// readFile returns the settings in the YAML file, by the name of the flag. Settings of other commands
// than the one on the command line are accepted, so that all commands can use the same file.
func (s *sources) readFile(app *kong.Application, path string) (map[string]any, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Unwrap(err) // without the path, which the caller adds
	}
	values := map[string]any{}
	var document, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(content))
	if err := documents.Decode(&document); errors.Is(err, io.EOF) {
		return values, nil
	} else if err != nil {
		return nil, err
	}
	if err := documents.Decode(&second); err == nil {
		return nil, fmt.Errorf("line %d: write all settings in one YAML document, without ---", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	settings := document.Content[0]
	if settings.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: write one setting per line, such as public-url: https://id.example.com", settings.Line)
	}
	flags := map[string]*kong.Flag{}
	collectSettings(app.Node, flags)
	hasPassword := false
	for i := 0; i < len(settings.Content); i += 2 {
		key, node := settings.Content[i], settings.Content[i+1]
		flag := flags[key.Value]
		if flag == nil {
			return nil, fmt.Errorf("line %d: %q is not a setting: use the name of a flag of rolecall serve --help without --, such as public-url", key.Line, key.Value)
		}
		if _, found := values[key.Value]; found {
			return nil, fmt.Errorf("line %d: %s is set twice", key.Line, key.Value)
		}
		if values[key.Value], err = valueOf(flag, node); err != nil {
			return nil, fmt.Errorf("line %d: %w", node.Line, err)
		}
		hasPassword = hasPassword || isSecret(flag) && urlHasPassword(node.Value)
	}
	s.checkFile(path, hasPassword)
	return values, nil
}

// collectSettings adds the flags of the command and its subcommands that the file of --config can set.
func collectSettings(node *kong.Node, to map[string]*kong.Flag) {
	for _, flag := range node.Flags {
		if isSetting(flag) && flag.Name != "config" && flag.Name != "version" {
			to[flag.Name] = flag
		}
	}
	for _, child := range node.Children {
		collectSettings(child, to)
	}
}

// valueOf returns the value of the flag in the node in the form that kong parses. It returns an error if
// the flag does not accept the value.
func valueOf(flag *kong.Flag, node *yaml.Node) (any, error) {
	var value any = node.Value
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return nil, fmt.Errorf("%s has no value: remove the line to use the default", flag.Name)
	case node.Kind == yaml.SequenceNode && flag.IsSlice():
		list := []any{}
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("%s must be a list of texts", flag.Name)
			}
			list = append(list, item.Value)
		}
		value = list
	case node.Kind == yaml.SequenceNode:
		return nil, fmt.Errorf("%s must be one value, not a list", flag.Name)
	case node.Kind != yaml.ScalarNode:
		return nil, fmt.Errorf("%s must be a value or a list", flag.Name)
	}
	return value, accepts(flag, value)
}

func urlHasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return true
	}
	_, hasPassword := u.User.Password()
	return hasPassword
}

// checkFile adds a warning if all users of the machine can change the file, or read a password in it.
func (s *sources) checkFile(path string, hasPassword bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.Mode().Perm()&0o002 != 0:
		s.warnings = append(s.warnings, "--config "+path+": every user of this machine can change the settings: run chmod 644 on the file")
	case info.Mode().Perm()&0o004 != 0 && hasPassword:
		s.warnings = append(s.warnings, "--config "+path+": every user of this machine can read the password in it: run chmod 600 on the file, or put the URL in a file that "+variable("database")+secretFile+" or "+variable("smtp")+secretFile+" names")
	}
}
