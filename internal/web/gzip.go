package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// gzipFrom is the minimum size in bytes of a page that is compressed. For a smaller page,
// compression does not save a network packet.
const gzipFrom = 1400

// gzipWriters is a pool, because each writer takes nearly a megabyte of memory.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // the level is valid
	return w
}}

// GzipPage compresses the page and sets Content-Encoding, if the browser accepts gzip and no other
// site caused the request. The length of a compressed page reveals whether a known text is also on
// the page. For this reason, a page that another site links to is sent uncompressed. The response
// to a form is also sent uncompressed, because it may show secrets.
func GzipPage(w http.ResponseWriter, r *http.Request, page []byte) []byte {
	if len(page) < gzipFrom || r.Method != http.MethodGet || !acceptsGzip(r.Header["Accept-Encoding"]) {
		return page
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "same-origin" && site != "none" {
		return page
	}
	compressor, _ := gzipWriters.Get().(*gzip.Writer)
	compressed := bytes.NewBuffer(make([]byte, 0, len(page)/2))
	compressor.Reset(compressed)
	_, _ = compressor.Write(page) // a write to a bytes.Buffer does not fail
	_ = compressor.Close()
	gzipWriters.Put(compressor)
	w.Header()["Content-Encoding"] = []string{"gzip"}
	return compressed.Bytes()
}

// acceptsGzip reports whether the lines of the Accept-Encoding header name gzip with a weight other
// than zero.
func acceptsGzip(lines []string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			coding, parameters, _ := strings.Cut(element, ";")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				return !IsZeroWeight(parameters)
			}
		}
	}
	return false
}

// IsZeroWeight reports whether the parameters of an element of an Accept header contain the weight
// zero (q=0).
func IsZeroWeight(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, weight, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "q") {
			return strings.Trim(weight, "0.") == ""
		}
	}
	return false
}
