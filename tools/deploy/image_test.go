package deploy

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	maxImage = 25_000_000 // bytes of the compressed layers
	imageID  = 65532      // user and group of the image
)

// TestImage builds the last stage of the Dockerfile with buildah. The stage with the Go compiler cannot be
// built, because its base image is on a registry. The test uses a program that it has compiled in the
// same way.
func TestImage(t *testing.T) {
	buildah := need(t, "buildah")
	if os.Getuid() != 0 {
		notTested(t, "the image is built and run as root")
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		notTested(t, "this machine does not allow a mount namespace: "+string(out))
	}
	t.Log("NOT TESTED: the stage build of the Dockerfile, because its base image is on a registry")
	layout := buildImage(t, buildah)
	config, size := unpackImage(t, layout, filepath.Join(layout, "tree"))
	t.Logf("the image has %.1f MB compressed", float64(size)/1e6)
	if size > maxImage {
		t.Errorf("the image has %d bytes, want at most %d", size, maxImage)
	}
	if config.User != "65532:65532" || strings.Join(config.Entrypoint, " ") != "/rolecall" || strings.Join(config.Cmd, " ") != "serve" {
		t.Errorf("the configuration of the image is %+v", config)
	}
	runImage(t, filepath.Join(layout, "tree"), config.Env)
}

// buildImage builds the image and returns a folder in the layout of OCI images.
func buildImage(t *testing.T, buildah string) (layout string) {
	t.Helper()
	context, layout, storage := t.TempDir(), t.TempDir(), t.TempDir()
	out := filepath.Join(context, "out")
	for _, folder := range []string{"data", "etc/ssl/certs"} {
		if err := os.MkdirAll(filepath.Join(out, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "cp", program, filepath.Join(out, "rolecall"))
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		notTested(t, "the package ca-certificates is not installed")
	}
	output(t, "cp", "/etc/ssl/certs/ca-certificates.crt", filepath.Join(out, "etc/ssl/certs"))
	options := []string{"--storage-driver", "vfs", "--root", filepath.Join(storage, "root"), "--runroot", filepath.Join(storage, "run")}
	output(t, buildah, append(options, "build", "--isolation", "chroot", "--build-context", "build="+context,
		"--file", filepath.Join(root, "deploy/Dockerfile"), "--tag", "rolecall:test", context)...)
	output(t, buildah, append(options, "push", "rolecall:test", "oci:"+layout+":test")...)
	return layout
}

// imageConfig has the members of the configuration of an image that the test checks.
type imageConfig struct {
	User            string
	Env             []string
	Entrypoint, Cmd []string
}

type descriptor struct {
	Digest string
	Size   int64
}

// unpackImage unpacks the layers of the image into the folder. It returns the configuration and the size
// of the compressed layers.
func unpackImage(t *testing.T, layout, folder string) (config imageConfig, size int64) {
	t.Helper()
	blob := func(d descriptor) string {
		return filepath.Join(layout, "blobs", strings.Replace(d.Digest, ":", "/", 1))
	}
	var index struct{ Manifests []descriptor }
	decode(t, filepath.Join(layout, "index.json"), &index)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blob(index.Manifests[0]), &manifest)
	var image struct{ Config imageConfig }
	decode(t, blob(manifest.Config), &image)
	for _, layer := range manifest.Layers {
		size += layer.Size
		if err := unpackLayer(blob(layer), folder); err != nil {
			t.Fatal(err)
		}
	}
	return image.Config, size
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func unpackLayer(file, folder string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(folder, filepath.Clean("/"+header.Name))
		if err := unpackFile(path, header, files); err != nil {
			return err
		}
	}
}

func unpackFile(path string, header *tar.Header, content io.Reader) error {
	mode := header.FileInfo().Mode().Perm()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(path, mode); err != nil {
			return err
		}
	case tar.TypeReg:
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, content); err != nil {
			return errors.Join(err, file.Close())
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return os.Chown(path, header.Uid, header.Gid)
}

// runImage runs the tree of the image read-only as its user, with a writable folder for /data, and sends
// requests to it.
func runImage(t *testing.T, tree string, env []string) {
	t.Helper()
	for _, path := range []string{"rolecall", "etc/ssl/certs/ca-certificates.crt", "data"} {
		if _, err := os.Stat(filepath.Join(tree, path)); err != nil {
			t.Error(err)
		}
	}
	for folder := tree; folder != "/"; folder = filepath.Dir(folder) { // the user of the image must reach the tree
		if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(folder, info.Mode().Perm()|0o055); err != nil {
				t.Fatal(err)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(tree, "data")); err == nil && info.Sys().(*syscall.Stat_t).Uid != imageID {
		t.Error("/data does not belong to the user of the image, so a new volume there cannot be written")
	}
	data := t.TempDir()
	if err := errors.Join(os.Chown(data, imageID, imageID), os.Chmod(data, 0o700)); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	const inside = `mount --bind "$1" "$1" && mount --bind "$2" "$1/data" && mount -o remount,ro,bind "$1" &&
		! touch "$1/file" 2>/dev/null && shift 2 && exec chroot --userspec=65532:65532 "$@"`
	command, _ := start(t, append(env, "ROLECALL_LISTEN=127.0.0.1:"+port), "unshare", "--mount", "sh", "-c", inside, "sh", tree, data, tree, "/rolecall", "serve")
	awaitOK(t, http.DefaultClient, "http://127.0.0.1:"+port+"/readyz")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil || !strings.Contains(string(status), "Uid:\t65532\t65532\t65532\t65532") {
		t.Errorf("the process does not run as the user of the image: %v\n%s", err, status)
	}
	if info, err := os.Stat(filepath.Join(data, "rolecall.db")); errors.Is(err, fs.ErrNotExist) || info.Size() == 0 {
		t.Errorf("the database is not in /data: %v", err)
	}
}
