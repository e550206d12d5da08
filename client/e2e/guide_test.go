package e2e

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// TestTheGuideRunsAsItIsWritten builds both versions of the program in docs/guides/go.md, and runs the commands
// of the guide.
func TestTheGuideRunsAsItIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out the build of two programs")
	}
	guide, err := os.ReadFile("../../docs/guides/go.md")
	if err != nil {
		t.Fatal(err)
	}
	d := newDemo(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	own := listener.Addr().String()
	here := strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(d.Address, "http://"), "127.0.0.1:8090", own, "5EQW54C-VOG2KQE-JJXKSBE-IVDAI", d.Password)
	blocks := func(language string) (texts []string) {
		for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1) {
			texts = append(texts, here.Replace(block[1]))
		}
		return texts
	}
	programs := blocks("go")
	if len(programs) != 2 {
		t.Fatalf("the guide has %d programs", len(programs))
	}
	folder := application(t)
	for name, text := range map[string]string{"shop": programs[0], "shop-with-cookie": replaceFunctions(t, programs[0], programs[1])} {
		file := filepath.Join(folder, name+".go")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(folder, name), file)
		build.Dir = folder
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	script := "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + strings.Join(blocks("bash"), "") // the guide can have ended the program
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	var output bytes.Buffer
	if err := listener.Close(); err != nil { // after the build, so that no other program takes the port
		t.Fatal(err)
	}
	command.Dir, command.Stdout, command.Stderr, command.WaitDelay = folder, &output, &output, patience.Limit
	if err := command.Run(); err != nil {
		t.Errorf("%v after:\n%s", err, output.String())
	}
}

// application returns a new folder with the module of an application, which requires only the client.
func application(t *testing.T) (folder string) {
	t.Helper()
	client, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	const path = "github.com/rolecall/rolecall/client"
	text := "module shop\n\ngo 1.26.0\n\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + client + "\n"
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// An application that uses the client does not inherit the versions of the server's drivers and exporters.
func TestAnApplicationRequiresNoOtherModule(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}}", "all")
	list.Dir = application(t)
	output, err := list.CombinedOutput()
	if err != nil || string(output) != "shop\ngithub.com/rolecall/rolecall/client\n" {
		t.Errorf("the modules are %s (%v)", output, err)
	}
}

// replaceFunctions returns the program with the functions of replacements, instead of those with the same
// names.
func replaceFunctions(t *testing.T, program, replacements string) string {
	t.Helper()
	const header = "package main\n"
	news := functions(t, header+replacements)
	if len(news) == 0 {
		t.Fatal("the guide replaces no function")
	}
	olds := functions(t, program)
	for name, text := range news {
		if olds[name] == "" {
			t.Fatalf("the program has no function %s", name)
		}
		program = strings.Replace(program, olds[name], text, 1)
	}
	return program
}

// functions returns the text of each function of the program by its name.
func functions(t *testing.T, program string) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "main.go", program, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			texts[function.Name.Name] = program[set.Position(function.Pos()).Offset:set.Position(function.End()).Offset]
		}
	}
	return texts
}
