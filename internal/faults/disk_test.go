package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/process"
)

// TestWritesFail makes the disk reject writes or syncs of SQLite, again and again. Then
// it kills the program, so that only the files show which changes were made.
func TestWritesFail(t *testing.T) {
	alongside(t)
	needTool(t, "strace")
	for _, fault := range []struct{ name, calls, effect string }{
		{"a sync fails", "fsync,fdatasync", "error=EIO:when=2+3"},
		{"each sync fails", "fsync,fdatasync", "error=EIO"},
		{"a write fails", "pwrite64", "error=EIO:when=5+17"},
		{"a write finds no space", "pwrite64", "error=ENOSPC:when=3+29"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			alongside(t)
			s := serve(t, filepath.Join(t.TempDir(), "rolecall.db"))
			l := newLoad(t, s)
			for range times(1, 25) {
				l.start()
				l.await(100)
				failed := l.unknown.Load()
				heal := tamper(t, s.PID(), fault.calls, fault.effect)
				await(t, "no request failed", func() bool { return l.unknown.Load() > failed+10 })
				heal()
				l.await(100) // without a restart
				kill(t, s)
				start(t, s)
				l.await(50)
				l.finish()
			}
			l.report(fault.name)
		})
	}
}

// TestDiskFull fills the disk that has the SQLite file. Writes, including sign-outs, are rejected,
// and reads continue. When space is free again, everything works without a restart.
func TestDiskFull(t *testing.T) {
	alongside(t)
	disk := smallDisk(t, 24<<20)
	s := serve(t, filepath.Join(disk, "rolecall.db"))
	l := newLoad(t, s)
	for range times(2, 30) {
		l.start()
		l.await(100)
		tn := l.tenants[0]
		free := fill(t, disk)
		var refused result
		await(t, "the full disk takes everything", func() bool {
			c := tn.newCreation("")
			refused = tn.tryCreate(c)
			if refused.status == http.StatusCreated {
				tn.make(c, refused)
			} else {
				tn.leave(c)
			}
			return refused.status == http.StatusServiceUnavailable
		})
		if refused.header.Get("Retry-After") == "" {
			t.Error("the refusal does not say when to try again")
		}
		for _, read := range []string{"GET /users", "GET /auths/session", "GET /events", "GET /readyz"} {
			if of := tn.request(read, ""); of.status != http.StatusOK {
				t.Errorf("%s answered %d on a full disk: %s", read, of.status, of.body)
			}
		}
		await(t, "the probe of writes fails", func() bool { return tn.request("GET /readyz?for=writes", "").status == http.StatusServiceUnavailable })
		free()
		await(t, "the probe of writes works again", func() bool { return tn.request("GET /readyz?for=writes", "").status == http.StatusOK })
		l.await(200)
		l.finish()
	}
	l.report("disk full")
}

// smallDisk mounts a file system in memory, and returns its folder. size is in bytes. If the mount
// fails, smallDisk skips the test, except with -full or in CI.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		if *full || os.Getenv("CI") != "" {
			t.Fatalf("no disk can be made: %v", err)
		}
		t.Skipf("NOT TESTED: no disk can be made: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// fill uses all free space of the disk until free is called.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	path := filepath.Join(disk, "rest")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<12); err == nil; {
		_, err = file.Write(block)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// TestBackup makes backups of a SQLite file in use, as the operations guide says. Each backup is
// consistent and can be served.
func TestBackup(t *testing.T) {
	alongside(t)
	needTool(t, "sqlite3")
	s := serve(t, filepath.Join(t.TempDir(), "rolecall.db"))
	l := newLoad(t, s)
	l.start()
	for range times(2, 20) {
		l.await(150)
		copied := filepath.Join(t.TempDir(), "backup.db")
		command := exec.CommandContext(t.Context(), "sqlite3", s.Database, ".timeout 10000", ".backup "+copied)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		restored := newServer(t, copied)
		start(t, restored)
		if err := restored.Stop(); err != nil {
			t.Error(err)
		}
		newLoad(t, &process.Server{Database: copied}).checkDatabase()
		if list, err := restored.Run(context.WithoutCancel(t.Context()), "", "tenant", "list"); err != nil || !strings.Contains(list, l.tenants[0].name) {
			t.Errorf("the restored tenants are %q: %v", list, err)
		}
	}
	l.finish()
	l.report("back-ups")
}
