package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/progress"
	"github.com/rolecall/rolecall/internal/secret"
)

// readPasswordRules sets o.Forbidden and o.Breached from the files that the flags name. The file of
// leaked passwords stays open for later lookups. The caller must close it with closeFile.
func (g *globals) readPasswordRules(o *access.Options) (closeFile func() error, err error) {
	closeFile = func() error { return nil }
	if g.Forbidden != "" {
		if o.Forbidden, err = readWords(g.Forbidden); err != nil {
			return nil, fmt.Errorf("--forbidden-words: %w", err)
		}
	}
	if g.Breached != "" {
		file, err := os.Open(g.Breached)
		if err != nil {
			return nil, fmt.Errorf("--breached-passwords: %w", err)
		}
		closeFile = file.Close
		if o.Breached, err = openBreached(file); err != nil {
			return nil, errors.Join(fmt.Errorf("--breached-passwords: %s: %w; create the file with rolecall breached-passwords build", file.Name(), err), file.Close())
		}
	}
	return closeFile, nil
}

func readWords(path string) (words secret.Words, err error) {
	file, err := os.Open(path)
	if err != nil {
		return words, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if words, err = secret.ReadWords(file); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return words, err
}

func openBreached(file *os.File) (*secret.Breached, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return secret.NewBreached(file, info.Size())
}

type breachedCommands struct {
	Build breachedBuild `cmd:"" help:"Build the file for --breached-passwords from a sorted list or from range files."`
}

type breachedBuild struct {
	Source  string `arg:"" help:"List with one SHA1:COUNT line per leaked password, sorted, or a folder of its range files 00000.txt to FFFFF.txt."`
	File    string `arg:"" help:"File to write. An existing file is replaced at the end."`
	Partial bool   `help:"Accept a folder with missing range files."`
}

// Run builds the file of leaked passwords. It writes a temporary file and renames it at the end, so
// nodes that have the old file open are not affected.
func (c *breachedBuild) Run(ctx context.Context, p *program) (err error) {
	info, err := os.Stat(c.Source)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(file.Close()), os.Remove(file.Name()))
		}
	}()
	w := secret.NewBreachedWriter(file)
	if info.IsDir() {
		err = c.addRanges(ctx, p, w)
	} else {
		err = c.addList(ctx, p, w, info.Size())
	}
	if err == nil && w.Hashes == 0 {
		err = fmt.Errorf("%s contains no leaked passwords", c.Source)
	}
	if err := errors.Join(err, w.Flush(), file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), c.File); err != nil {
		return err
	}
	return p.print(struct {
		Done   string `json:"done"`
		Hashes int64  `json:"hashes"`
	}{"built", w.Hashes}, fmt.Sprintf("Wrote %d leaked passwords to %s. Set --breached-passwords %[2]s on every node.", w.Hashes, c.File))
}

// addList copies the source, a sorted list of leaked passwords, to w.
func (c *breachedBuild) addList(ctx context.Context, p *program, w *secret.BreachedWriter, size int64) (err error) {
	list, err := os.Open(c.Source)
	if err != nil {
		return err
	}
	const mebibyte = 1 << 20
	bar := progress.Start(p.stderr, "MiB", int(size/mebibyte))
	defer func() {
		bar.End()
		err = errors.Join(err, list.Close())
	}()
	waiting := 0
	err = w.Add("", untilDone{ctx, list}, func(bytes int) {
		waiting += bytes
		bar.Add(waiting / mebibyte)
		waiting %= mebibyte
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", c.Source, err)
	}
	return err
}

// addRanges copies the range files of the source folder to w, in ascending order. Each range file
// has the hashes that begin with the same five hexadecimal digits.
func (c *breachedBuild) addRanges(ctx context.Context, p *program, w *secret.BreachedWriter) error {
	there, err := rangeFiles(c.Source)
	if err != nil {
		return err
	}
	missing := 0
	for i, is := range there {
		if is {
			continue
		}
		if missing++; !c.Partial {
			return fmt.Errorf("the range file %s is missing: download it, or run the command again with --partial", c.rangeFile(i))
		}
	}
	bar := progress.Start(p.stderr, "range files", len(there)-missing)
	defer bar.End()
	for i, is := range there {
		if !is {
			continue
		}
		file, err := os.Open(c.rangeFile(i))
		if err != nil {
			return err
		}
		err = w.Add(fmt.Sprintf(rangePrefix, i), untilDone{ctx, file}, func(int) {})
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
		bar.Add(1)
	}
	if missing > 0 {
		fmt.Fprintf(p.stderr, "%d of %d range files are missing\n", missing, len(there))
	}
	return nil
}

// rangePrefix is the format of the five hexadecimal digits in the name of a range file.
const rangePrefix = "%05X"

func (c *breachedBuild) rangeFile(number int) string {
	return filepath.Join(c.Source, fmt.Sprintf(rangePrefix+".txt", number))
}

// rangeFiles reports for each of the 2^20 range numbers whether the folder has a file with that
// number. It does not keep the names of files, because there can be a million.
func rangeFiles(path string) (there []bool, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	there = make([]bool, 1<<20)
	for {
		names, err := folder.Readdirnames(1000)
		for _, name := range names {
			number, parseErr := strconv.ParseUint(strings.TrimSuffix(name, ".txt"), 16, 20)
			if parseErr == nil && name == fmt.Sprintf(rangePrefix+".txt", number) {
				there[number] = true
			}
		}
		if errors.Is(err, io.EOF) {
			return there, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// untilDone reads from r until ctx ends. After that, Read returns the error of ctx.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
