package httpapi

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"
)

// packedFrom is the size from which compressing a page saves a packet.
const packedFrom = 1400

// packers are shared: each holds nearly a megabyte.
var packers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // the level is one
	return w
}}

// pack compresses the page that is to be written, if the browser takes that and
// nobody else has a hand in what is on it: the length of what is compressed tells
// of a text whether it is on the page too. So a page that another site leads to is
// sent as it is, and so is an answer to a form, on which secrets are shown.
func (v *Visit) pack() {
	if len(v.out) < packedFrom || v.request.Method != http.MethodGet || !takesGzip(v.request.Header["Accept-Encoding"]) {
		return
	}
	if site := v.request.Header.Get("Sec-Fetch-Site"); site != "same-origin" && site != "none" {
		return
	}
	w, _ := packers.Get().(*gzip.Writer)
	packed := bytes.NewBuffer(make([]byte, 0, len(v.out)/2))
	w.Reset(packed)
	_, _ = w.Write(v.out) // a buffer takes everything
	_ = w.Close()
	packers.Put(w)
	v.out = packed.Bytes()
	v.header["Content-Encoding"] = []string{"gzip"}
}
