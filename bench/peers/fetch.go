package peers

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// inCache returns the path of the folder with this name in the cache. If the folder does not exist,
// inCache creates it, and make writes the files. If make fails, inCache removes the folder.
func inCache(cache, name string, make func(folder string) error) (_ string, err error) {
	folder := filepath.Join(cache, name)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	partial, err := os.MkdirTemp(cache, "partial-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	if err := make(partial); err != nil {
		return "", err
	}
	return folder, os.Rename(partial, folder)
}

// unpack downloads a .tar.gz file and extracts it into the folder, without the folder at the top of
// the archive. It returns an error if the SHA-256 of the file is not sum. The extracted files then
// remain in the folder.
func unpack(ctx context.Context, address, sum, folder string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	hash := sha256.New()
	archive := io.TeeReader(response.Body, hash)
	if err := extract(archive, folder); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if _, err := io.Copy(io.Discard, archive); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s has the SHA-256 %s, not %s", address, got, sum)
	}
	return nil
}

// extract writes the folders and files of a .tar.gz archive into the folder, without the folder at
// the top of the archive.
func extract(archive io.Reader, folder string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(header.Name, "/"), "/")
		if name == "" {
			continue
		}
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the archive has a file outside of its folder: %s", header.Name)
		}
		path := filepath.Join(folder, name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFile(path, files, header.FileInfo().Mode().Perm())
		default:
			err = fmt.Errorf("the archive has a file of type %q: %s", header.Typeflag, header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(path string, content io.Reader, mode fs.FileMode) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, content)
	return err
}
