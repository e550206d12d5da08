package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The patterns of the code in a document, of the flags in this code, and of variables.
var (
	codePattern     = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	flagPattern     = regexp.MustCompile(`\s--([a-z][a-z-]+)`)
	variablePattern = regexp.MustCompile(`\bROLECALL_[A-Z_]+\b`)
)

func TestDocumentedFlagsAndVariablesExist(t *testing.T) {
	flags, variables := map[string]bool{}, map[string]bool{}
	for _, flag := range flagsOf(t, "") {
		flags[flag.Name], variables[variable(flag.Name)] = true, true
		if isSecret(flag) {
			variables[variable(flag.Name)+secretFile] = true
		}
	}
	for name, text := range texts(t, ".go") {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "client/") && !strings.HasPrefix(name, "bench/peers/") {
			for _, name := range variablePattern.FindAllString(text, -1) {
				variables[name] = true
			}
		}
	}
	found := 0
	for document, text := range texts(t, ".md") {
		for _, line := range commandsIn(t, text) {
			for _, match := range flagPattern.FindAllStringSubmatch(line, -1) {
				if found++; !flags[match[1]] {
					t.Errorf("%s: there is no flag --%s", document, match[1])
				}
			}
		}
		for _, name := range variablePattern.FindAllString(text, -1) {
			if !variables[name] {
				t.Errorf("%s: nothing reads %s", document, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d flags found in the documents, want all of them", found)
	}
}

func TestFlagsOfServeAreDocumented(t *testing.T) {
	text := texts(t, ".md")["docs/operations.md"]
	for _, flag := range flagsOf(t, "serve") {
		if !strings.Contains(text, "`--"+flag.Name) {
			t.Errorf("docs/operations.md says nothing of --%s", flag.Name)
		}
	}
}

// flagsOf returns the flags of the command without those of its parents. If the command is empty, it returns
// the flags of all commands.
func flagsOf(t *testing.T, command string) (flags []*kong.Flag) {
	t.Helper()
	for _, node := range model(t).Leaves(false) {
		if command == "" {
			for _, group := range node.AllFlags(false) {
				flags = append(flags, group...)
			}
		} else if node.Name == command {
			flags = append(flags, node.Flags...)
		}
	}
	if len(flags) == 0 {
		t.Fatalf("the command %q has no flags", command)
	}
	return flags
}

// model returns the commands and flags as kong derives them.
func model(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(new(commandLine), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

// commandsIn returns the parts of a document that contain flags: lines of code that run the program, and
// inline code that begins with a flag.
func commandsIn(t *testing.T, text string) (lines []string) {
	t.Helper()
	var names []string
	for _, command := range model(t).Children {
		names = append(names, regexp.QuoteMeta(command.Name))
	}
	commands := regexp.MustCompile(`\brolecall (?:` + strings.Join(names, "|") + `)\b`)
	for _, shown := range codePattern.FindAllString(text, -1) {
		for line := range strings.SplitSeq(strings.ReplaceAll(shown, "\\\n", " "), "\n") {
			if strings.HasPrefix(line, "`--") || commands.MatchString(line) {
				lines = append(lines, strings.ReplaceAll(line, "`", " "))
			}
		}
	}
	return lines
}

// skipped are the folders that have no files of the module.
var skipped = []string{"node_modules", "testdata", "dist", "rolecall-data"}

// texts returns the contents of the files of the module whose names have the suffix, by path.
func texts(t *testing.T, suffix string) map[string]string {
	t.Helper()
	root, found := os.DirFS("../.."), map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(skipped, entry.Name())):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != suffix:
			return nil
		}
		content, err := fs.ReadFile(root, name)
		found[name] = string(content)
		return err
	})
	if err != nil || len(found) < 15 {
		t.Fatalf("%d files with the suffix %s found, %v", len(found), suffix, err)
	}
	return found
}
