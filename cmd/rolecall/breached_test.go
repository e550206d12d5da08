package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// breachedRun runs rolecall breached-passwords build with the arguments. It returns the output of the
// command and the exit code.
func breachedRun(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = runCommand(t.Context(), append([]string{"breached-passwords", "build"}, arguments...), nil, os.Stdin, &out, &out)
	return out.String(), code
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	firstHash  = "0000000CAEF405439D57847A8657218C618160B2"
	secondHash = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8" // password
	bothHashes = firstHash + ":15\n" + secondHash + ":9545824\n"
)

func TestTheFileOfBreachedPasswordsIsBuilt(t *testing.T) {
	folder := t.TempDir()
	ranges := filepath.Join(folder, "ranges")
	if err := os.Mkdir(ranges, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(ranges, "00000.txt"), firstHash[5:]+":15\r\n"+strings.Repeat("F", 35)+":0\r\n")
	write(t, filepath.Join(ranges, "5BAA6.txt"), secondHash[5:]+":9545824")
	list := write(t, filepath.Join(folder, "list"), strings.ReplaceAll(bothHashes, "\n", "\r\n"))
	target := filepath.Join(folder, "target")
	for what, arguments := range map[string][]string{"a list": {list, target}, "range files": {"--partial", ranges, target}} {
		write(t, target, "an older file")
		output, code := breachedRun(t, arguments...)
		built, err := os.ReadFile(target)
		if code != 0 || err != nil || string(built) != bothHashes || !strings.Contains(output, "2 leaked passwords") {
			t.Errorf("%s: %d %s%v: %s", what, code, output, err, built)
		}
	}
	if output, _ := breachedRun(t, "--partial", ranges, target); !strings.Contains(output, "1048574 of 1048576 range files are missing") {
		t.Errorf("it says %s", output)
	}
	again := filepath.Join(folder, "again")
	if output, code := breachedRun(t, target, again); code != 0 {
		t.Errorf("its own file is refused: %s", output)
	}
}

func TestInvalidListsOfBreachedPasswordsAreRefused(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "folder")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	target := write(t, filepath.Join(folder, "target"), "an older file")
	for source, says := range map[string]string{
		write(t, filepath.Join(folder, "unsorted"), secondHash+":1\n"+firstHash+":1\n"): "unsorted: line 2 is not in order",
		write(t, filepath.Join(folder, "words"), "password\n123456\n"):                  "words: line 1 is not 40 hexadecimal digits",
		write(t, filepath.Join(folder, "nothing"), "\n"):                                "nothing contains no leaked passwords",
		filepath.Join(folder, "absent"):                                                 "no such file",
		empty:                                                                           "range file " + filepath.Join(empty, "00000.txt") + " is missing",
	} {
		if output, code := breachedRun(t, source, target); code != exitFailure || !strings.Contains(output, says) || strings.Contains(output, "closed") {
			t.Errorf("%d %s, want %q alone", code, output, says)
		}
	}
	entries, err := os.ReadDir(folder)
	if old, readErr := os.ReadFile(target); string(old) != "an older file" || readErr != nil || err != nil || len(entries) != 5 {
		t.Errorf("the folder holds %v, and the older file %s", entries, old)
	}
}
