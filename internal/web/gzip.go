package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// gzipFrom is the size from which compression saves a packet.
const gzipFrom = 1400

// gzipWriters are shared: each holds nearly a megabyte.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // the level is valid
	return w
}}

// GzipPage returns the page compressed, and sets Content-Encoding, if the browser accepts
// gzip and no other site had an influence on the page. The compressed length reveals
// whether a known text is on the page too. For this reason, a page that another site links
// to is sent as it is, and so is the response to a form, which may show secrets.
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
	_, _ = compressor.Write(page) // a buffer takes everything
	_ = compressor.Close()
	gzipWriters.Put(compressor)
	w.Header()["Content-Encoding"] = []string{"gzip"}
	return compressed.Bytes()
}

// acceptsGzip reports whether the Accept-Encoding lines name gzip, and not with a
// weight of zero.
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

// IsZeroWeight reports whether the parameters of a range hold a weight of zero.
func IsZeroWeight(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, weight, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "q") {
			return strings.Trim(weight, "0.") == ""
		}
	}
	return false
}
