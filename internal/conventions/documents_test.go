package conventions

import (
	"cmp"
	"go/ast"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// documents returns the texts of the module's Markdown files, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := walk(".md", func(path string) error {
		content, err := fs.ReadFile(root, path)
		texts[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts["README.md"]) == 0 || len(texts) < 15 {
		t.Fatalf("%d documents found, want all of them", len(texts))
	}
	return texts
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestLinksAreValid(t *testing.T) {
	for document, text := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := fs.Stat(root, path.Join(path.Dir(document), match[1])); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}

// largestPicture is the maximum size of a picture in bytes. It is small, because every clone of the
// repository has all pictures.
const largestPicture = 150_000

func TestPicturesAreSmallAndShown(t *testing.T) {
	all := documents(t)
	shown := 0
	for _, suffix := range []string{".png", ".jpg", ".jpeg", ".webp", ".gif"} {
		err := walk(suffix, func(name string) error {
			info, err := fs.Stat(root, name)
			switch {
			case err != nil || strings.HasPrefix(name, "console/e2e/results/"): // not part of the repository
				return err
			case path.Dir(name) != "docs/pictures":
				t.Errorf("%s: pictures are in docs/pictures", name)
			case !strings.Contains(all["README.md"], "("+name+")"):
				t.Errorf("README.md does not show %s", name)
			case info.Size() > largestPicture:
				t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), largestPicture)
			}
			shown++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if shown == 0 {
		t.Error("there is no picture")
	}
}

func TestDecisionsAreListed(t *testing.T) {
	texts := documents(t)
	for document := range texts {
		if name := path.Base(document); path.Dir(document) == "docs/adr" && name != "README.md" && !strings.Contains(texts["docs/adr/README.md"], "("+name+")") {
			t.Errorf("docs/adr/README.md does not list %s", name)
		}
	}
}

// The patterns of the code in a document, and of the names in this code.
var (
	code       = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	makeTarget = regexp.MustCompile(`(?m)\bmake ([a-z]+(?:-[a-z]+)*)\b`)
	command    = regexp.MustCompile(`\brolecall (?:serve|migrate|config|tenant|user|openapi|version)\b`)
	flag       = regexp.MustCompile(`\s--([a-z][a-z-]+)`)
	variable   = regexp.MustCompile(`\bROLECALL_[A-Z_]+\b`)
	metric     = regexp.MustCompile(`\brolecall_http_[a-z_]+|\brolecall_[a-z_]+_total\b`)
)

func TestDocumentedMakeTargetsExist(t *testing.T) {
	makefile, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for document, text := range documents(t) {
		for _, match := range makeTarget.FindAllStringSubmatch(strings.Join(code.FindAllString(text, -1), "\n"), -1) {
			if !strings.Contains(string(makefile), "\n"+match[1]+":") {
				t.Errorf("%s: make %s is not there", document, match[1])
			}
		}
	}
}

func TestDocumentedFlagsAndVariablesExist(t *testing.T) {
	known := commandLineFlags(t)
	variables := map[string]bool{}
	for _, name := range variable.FindAllString(program(t), -1) {
		variables[name] = true
	}
	for name := range known {
		variables[variableOf(name)] = true
	}
	for _, name := range secretFlags(t) {
		variables[variableOf(name)+"_FILE"] = true
	}
	found := 0
	for document, text := range documents(t) {
		for _, line := range commands(text) {
			for _, match := range flag.FindAllStringSubmatch(line, -1) {
				found++
				if !known[match[1]] {
					t.Errorf("%s: there is no flag --%s", document, match[1])
				}
			}
		}
		for _, name := range variable.FindAllString(text, -1) {
			if !variables[name] {
				t.Errorf("%s: nothing reads %s", document, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d flags found in the documents, want all of them", found)
	}
}

// variableOf returns the name of the environment variable that sets the flag.
func variableOf(flag string) string {
	return "ROLECALL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// secretFlags returns the flags whose value can contain a password.
func secretFlags(t *testing.T) (names []string) {
	t.Helper()
	structs, _ := commandLineTypes(t)
	for _, fields := range structs {
		for _, field := range fields.List {
			if tag := tagOf(field); len(field.Names) > 0 {
				if _, isSecret := tag.Lookup("secret"); isSecret {
					names = append(names, cmp.Or(tag.Get("name"), hyphenated(field.Names[0].Name)))
				}
			}
		}
	}
	return names
}

// commands returns the parts of a document that contain flags: lines of code that run the program,
// and inline code that begins with a flag.
func commands(text string) []string {
	var ours []string
	for _, shown := range code.FindAllString(text, -1) {
		for line := range strings.SplitSeq(strings.ReplaceAll(shown, "\\\n", " "), "\n") {
			if strings.HasPrefix(line, "`--") || command.MatchString(line) {
				ours = append(ours, strings.ReplaceAll(line, "`", " "))
			}
		}
	}
	return ours
}

func TestFlagsOfServeAreDocumented(t *testing.T) {
	text := documents(t)["docs/operations.md"]
	for name := range flagsOf(t, "serveCommand") {
		if !strings.Contains(text, "`--"+name) {
			t.Errorf("docs/operations.md says nothing of --%s", name)
		}
	}
}

// commandLineFlags returns the flags of all commands.
func commandLineFlags(t *testing.T) map[string]bool {
	t.Helper()
	all := flagsOf(t, "")
	all["help"] = true
	return all
}

// flagsOf returns the flags that kong derives from the fields of a type of the command
// line. If typeName is empty, it returns the flags of all types.
func flagsOf(t *testing.T, typeName string) map[string]bool {
	t.Helper()
	structs, isEmbedded := commandLineTypes(t)
	flags := map[string]bool{}
	for name, fields := range structs {
		if name == typeName || typeName == "" && !isEmbedded[name] {
			addFlags(flags, structs, fields, "")
		}
	}
	if len(flags) == 0 {
		t.Fatalf("no flags found in %q", typeName)
	}
	return flags
}

// commandLineTypes returns the fields of each struct type of the command line, by the name of the
// type. isEmbedded has the types that another type embeds with a prefix.
func commandLineTypes(t *testing.T) (structs map[string]*ast.FieldList, isEmbedded map[string]bool) {
	t.Helper()
	structs, isEmbedded = map[string]*ast.FieldList{}, map[string]bool{}
	for _, f := range sources(t) {
		if folder := f.folder(); folder != "cmd/rolecall" && folder != "internal/seed" || f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = structure.Fields
				for _, field := range structure.Fields.List {
					if embedded, ok := field.Type.(*ast.Ident); ok && tagOf(field).Get("prefix") != "" {
						isEmbedded[embedded.Name] = true
					}
				}
			}
			return false
		})
	}
	return structs, isEmbedded
}

// addFlags adds the flags of the fields to flags. For a struct that is embedded with a prefix, it
// adds the flags of the struct with this prefix.
func addFlags(flags map[string]bool, structs map[string]*ast.FieldList, fields *ast.FieldList, prefix string) {
	for _, field := range fields.List {
		tag := tagOf(field)
		if embedded, ok := field.Type.(*ast.Ident); ok && tag.Get("prefix") != "" {
			addFlags(flags, structs, structs[embedded.Name], prefix+tag.Get("prefix"))
			continue
		}
		_, isHelped := tag.Lookup("help")
		_, isCommand := tag.Lookup("cmd")
		_, isArgument := tag.Lookup("arg")
		if !isHelped || isCommand || isArgument || len(field.Names) == 0 {
			continue
		}
		name := prefix + cmp.Or(tag.Get("name"), hyphenated(field.Names[0].Name))
		if _, negatable := tag.Lookup("negatable"); negatable {
			name = "no-" + name
		}
		flags[name] = true
	}
}

func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	return reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
}

// hyphenated returns the name of the flag that kong derives from the name of a field. For example,
// PublicName becomes public-name.
func hyphenated(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func TestDocumentedMetricsExist(t *testing.T) {
	program := program(t)
	documented := metric.FindAllString(documents(t)["docs/operations.md"], -1)
	if len(documented) == 0 {
		t.Fatal("docs/operations.md names no metric")
	}
	for _, name := range documented {
		if !strings.Contains(program, `"`+name+`"`) {
			t.Errorf("docs/operations.md: there is no metric %s", name)
		}
	}
	for _, name := range metric.FindAllString(program, -1) {
		if !strings.Contains(strings.Join(documented, " "), name) {
			t.Errorf("docs/operations.md says nothing of the metric %s", name)
		}
	}
}

// program returns the source of the module without tests, without the client, and without bench/peers,
// which measures other services.
func program(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, f := range sources(t) {
		if f.isTest() || strings.HasPrefix(f.path, "bench/peers/") || strings.HasPrefix(f.path, "client/") {
			continue
		}
		content, err := fs.ReadFile(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	return text.String()
}
