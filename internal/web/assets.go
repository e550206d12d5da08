package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/internal/secret"
)

// Asset is a file that is the same for all clients. It is an http.Handler.
type Asset struct {
	// Path is where the asset is served, below the base.
	Path string

	contentType string
	caching     string
	plain       representation
	gzipped     func() representation // nil if the asset is too small to compress
}

// representation is content as it is sent, with its entity tag.
type representation struct {
	content []byte
	tag     string
}

func newRepresentation(content []byte) representation {
	return representation{content, secret.ETag(content)}
}

// NewAsset returns the file with the name below the folder. Its path changes with its
// content, so that browsers may keep it forever. If it is large enough, it is compressed when
// the first client accepts that.
func NewAsset(folder, name, contentType string, content []byte) *Asset {
	stored := newRepresentation(content)
	suffix := path.Ext(name)
	a := &Asset{
		Path:        folder + strings.TrimSuffix(name, suffix) + "." + strings.Trim(stored.tag, `"`) + suffix,
		contentType: contentType,
		caching:     "public, max-age=31536000, immutable",
		plain:       stored,
	}
	if len(content) >= gzipFrom && suffix != ".woff2" { // which is compressed already
		a.gzipped = compressLater(content)
	}
	return a
}

// NewDocument returns a file at a path that does not change. It is compressed when the
// first client accepts that.
func NewDocument(path, contentType string, content []byte) *Asset {
	plain := newRepresentation(content)
	return &Asset{
		Path: path, contentType: contentType, caching: "public, max-age=300",
		plain:   plain,
		gzipped: compressLater(content),
	}
}

func compressLater(content []byte) func() representation {
	return sync.OnceValue(func() representation { return newRepresentation(compress(content)) })
}

// ServeHTTP answers with the content, compressed if the client accepts that.
func (a *Asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent := a.plain
	if a.gzipped != nil {
		h := w.Header()
		h["Vary"] = append(h["Vary"], "Accept-Encoding")
		if acceptsGzip(r.Header["Accept-Encoding"]) {
			h["Content-Encoding"] = []string{"gzip"}
			sent = a.gzipped()
		}
	}
	RespondTagged(w, r, sent.content, a.contentType, a.caching, sent.tag)
}

// RespondTagged answers with the content under its entity tag, or with 304 if the client
// has it.
func RespondTagged(w http.ResponseWriter, r *http.Request, content []byte, contentType, caching, tag string) {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Cache-Control"] = []string{caching}
	h["Etag"] = []string{tag}
	if isKnown(tag, r.Header.Get("If-None-Match")) {
		delete(h, "Content-Encoding")
		Respond(w, r, http.StatusNotModified, nil)
		return
	}
	Respond(w, r, http.StatusOK, content)
}

// isKnown reports whether If-None-Match has the entity tag, which has no comma in it.
func isKnown(tag, ifNoneMatch string) bool {
	if strings.Trim(ifNoneMatch, " \t") == "*" {
		return true
	}
	for element := range strings.SplitSeq(ifNoneMatch, ",") {
		if strings.TrimPrefix(strings.Trim(element, " \t"), "W/") == tag {
			return true
		}
	}
	return false
}

// compress returns the content compressed as well as possible.
func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                               // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
