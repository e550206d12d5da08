package mail

import (
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMailboxKeepsAndPrints(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "mailbox")
	var printed strings.Builder
	box, err := NewMailbox(folder, "rolecall@example.org", &printed)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a repeated message replaces its file
		if err := box.Send(t.Context(), aMessage()); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 || files[0].Name() != "20261121T083000-0193.eml" {
		t.Fatalf("the folder holds %v, %v", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	file, err := os.Open(filepath.Join(folder, files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if m, err := netmail.ReadMessage(file); err != nil || m.Header.Get("To") != "<hedy@example.com>" {
		t.Errorf("the file holds %v, %v", m, err)
	}
	for _, want := range []string{"Mail to hedy@example.com: Grüße\n", "\n    A text: ü\n", files[0].Name()} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q was not printed: %s", want, printed.String())
		}
	}
}

func TestMailboxFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMailbox(file, "rolecall@example.org", os.Stdout); err == nil {
		t.Error("a file is a folder")
	}
	box, err := NewMailbox(t.TempDir(), "rolecall@example.org", os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(box.folder); err != nil {
		t.Fatal(err)
	}
	if err := box.Send(t.Context(), aMessage()); err == nil {
		t.Error("a message was kept in no folder")
	}
}
