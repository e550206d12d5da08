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

// Asset is a static file that every client gets with the same content. It is an http.Handler.
type Asset struct {
	// Path is the URL path of the asset, relative to the base of the site.
	Path string

	contentType string
	caching     string
	plain       representation
	gzipped     func() representation // nil if the asset is too small to compress
}

// representation is the content in the form that is sent, plain or compressed, with its entity tag.
type representation struct {
	content []byte
	tag     string
}

func newRepresentation(content []byte) representation {
	return representation{content, secret.ETag(content)}
}

// NewAsset returns an asset with the file name in the folder. The path of the asset contains a hash
// of the content, so browsers may cache the asset without a time limit. An asset of at least
// gzipFrom bytes, except a font, is compressed when the first client that accepts compression
// requests it.
func NewAsset(folder, name, contentType string, content []byte) *Asset {
	stored := newRepresentation(content)
	suffix := path.Ext(name)
	a := &Asset{
		Path:        folder + strings.TrimSuffix(name, suffix) + "." + strings.Trim(stored.tag, `"`) + suffix,
		contentType: contentType,
		caching:     "public, max-age=31536000, immutable",
		plain:       stored,
	}
	if len(content) >= gzipFrom && suffix != ".woff2" { // woff2 files are already compressed
		a.gzipped = compressLater(content)
	}
	return a
}

// NewDocument returns an asset with a fixed path, which browsers may cache for five minutes. It is
// compressed when the first client that accepts compression requests it.
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

// ServeHTTP sends the content. The content is compressed if the client accepts compression.
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

// RespondTagged sends the content with its entity tag. If the client already has this version, it
// sends 304 without content.
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

// isKnown reports whether the If-None-Match header contains the entity tag. The entity tag must not
// contain a comma.
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

// compress returns the content as gzip with the best compression level.
func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                               // a write to a bytes.Buffer does not fail
	_ = w.Close()
	return b.Bytes()
}
