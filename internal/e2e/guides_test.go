package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

var (
	shellBlock   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	demoPassword = regexp.MustCompile(`(?m)^  password  (\S+)`)
)

// guidePrograms maps the language of a code block to the file in which the guide saves the
// code.
var guidePrograms = map[string]string{"ts": "server.ts", "go": "main.go"}

// TestGuidesRunAsTheyAreWritten runs the commands of each guide as one shell script. Most
// scripts use a program with the demo data. A guide that starts Rolecall itself shows its
// example in two languages, and the test runs the guide once for each language.
func TestGuidesRunAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(guides) < 6 {
		t.Fatalf("found %d guides: %v", len(guides), err)
	}
	binary := build(t)
	p := serve(t, binary, filepath.Join(t.TempDir(), "demo.db"), "--demo")
	password, err := p.AwaitLog(t.Context(), demoPassword)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range guides {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		g := guide{text: string(text), rolecall: p.Address, environment: append(os.Environ(), "PASSWORD="+password[1])}
		if !strings.Contains(g.text, "./rolecall serve --listen") {
			t.Run(name, func(t *testing.T) {
				if name == "proxy-hook" {
					tool(t, "nginx")
				}
				g.run(t, demoFolder(t, binary, p.Database))
			})
			continue
		}
		for language := range guidePrograms {
			t.Run(name+"/"+language, func(t *testing.T) {
				g := g
				folder := t.TempDir()
				if err := os.Symlink(binary, filepath.Join(folder, "rolecall")); err != nil {
					t.Fatal(err)
				}
				g.choose(t, language, folder)
				g.run(t, folder)
			})
		}
	}
}

// demoFolder returns a folder with the program and the database of the demo, as after make run.
func demoFolder(t *testing.T, binary, database string) string {
	t.Helper()
	folder := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(folder, "rolecall-data"), 0o700), os.Symlink(binary, filepath.Join(folder, "rolecall")),
		os.Symlink(database, filepath.Join(folder, "rolecall-data", "demo.db")))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// guide is the text of a guide, and the addresses that replace the addresses in the text.
type guide struct {
	text        string
	rolecall    string // the address of Rolecall
	application string // the address of the application, or of a proxy
	environment []string
}

// choose saves the guide's code in the language to a file in the folder, and chooses the
// addresses. It removes the shell blocks that name the file of another language from the text.
func (g *guide) choose(t *testing.T, language, folder string) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(g.text)
	if block == nil {
		t.Fatalf("no code in %s", language)
	}
	program := filepath.Join(folder, guidePrograms[language])
	if err := os.WriteFile(program, []byte(block[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	// The program is built before the addresses are chosen, because another process can use a
	// free address during a long build. The guide's own build then takes little time.
	started := program
	if language == "ts" {
		started = buildTypeScript(t, program)
		g.environment = append(g.environment, "PATH="+nodeForTypeScript(t)+":"+os.Getenv("PATH"))
	} else if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	g.rolecall, g.application = freeAddress(t), freeAddress(t)
	if err := os.WriteFile(started, []byte(g.here(t, string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	g.text = shellBlock.ReplaceAllStringFunc(g.text, func(block string) string {
		for other, file := range guidePrograms {
			if other != language && strings.Contains(block, file) {
				return ""
			}
		}
		return block
	})
}

// buildTypeScript converts the TypeScript program to JavaScript, and returns the path of the result.
func buildTypeScript(t *testing.T, program string) string {
	t.Helper()
	built := program + ".mjs"
	esbuild := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "esbuild", program, "--format=esm", "--log-level=error", "--outfile="+built)
	esbuild.Dir = filepath.Join("..", "..")
	if output, err := esbuild.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return built
}

// nodeForTypeScript returns a folder with a command named node that runs the result of
// buildTypeScript, because Node.js runs TypeScript files only since version 22.18.
func nodeForTypeScript(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$1.mjs\"\n", tool(t, "node"))
	if err := os.WriteFile(filepath.Join(folder, "node"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// here replaces the guide's addresses in the text with unused addresses of this machine.
func (g *guide) here(t *testing.T, text string) string {
	t.Helper()
	if g.application == "" {
		g.application = freeAddress(t)
	}
	return strings.NewReplacer(
		"127.0.0.1:8080", g.rolecall, "127.0.0.1:8090", g.application, "127.0.0.1:8091", freeAddress(t),
	).Replace(text)
}

// run runs the shell blocks of the guide in the folder, as one script.
func (g *guide) run(t *testing.T, folder string) {
	t.Helper()
	// When the script ends, the trap stops the processes that the guide has started. Errors of
	// kill are ignored, because the guide may have stopped a process itself.
	script := "trap 'kill $(cat nginx.pid 2>/dev/null) $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
	for _, block := range shellBlock.FindAllStringSubmatch(g.text, -1) {
		script += block[1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience.Limit) // a guide has many commands, and some compile a program
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", g.here(t, script))
	command.Dir, command.Env, command.WaitDelay = folder, g.environment, time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		t.Errorf("%v after:\n%s", err, output.String())
	}
}
