package operation

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// File is a body that is not JSON.
type File struct {
	MediaType string
	Content   []byte
}

// FileRules are the limits of a File in a request.
type FileRules struct {
	MediaTypes []string
	SizeMax    int64 // bytes
}

// fileInput is an input type whose body is a File.
type fileInput interface{ FileRules() FileRules }

// fileRulesOf returns the rules of the input type t, or nil if its body is not a File.
func fileRulesOf(t reflect.Type) *FileRules {
	input, ok := reflect.Zero(t).Interface().(fileInput)
	if !ok {
		return nil
	}
	rules := input.FileRules()
	return &rules
}

// maxBody returns the maximum size of the body in bytes.
func (in *Input) maxBody() int64 {
	if in.file != nil {
		return in.file.SizeMax
	}
	return web.MaxBody
}

// tooLarge returns the error for a body that is larger than maxBody.
func (in *Input) tooLarge() error {
	if in.file != nil {
		return web.ErrContentTooLarge.With(fmt.Sprintf("The body is larger than %d KiB. Send a smaller one.", in.file.SizeMax>>10))
	}
	return web.ErrContentTooLarge
}

// Download returns the handler that calls the method do. Its file is sent as it is. The media type of the file
// is one of types.
func Download[In any](types []string, do func(ctx context.Context, c access.Caller, in *In) (File, error)) Handler {
	serve := func(_ *Runner, op *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error) {
		file, err := do(r.Context(), c, in.Addr().Interface().(*In))
		if err != nil {
			return buffer, err
		}
		if !accepts(r.Header["Accept"], file.MediaType) {
			return buffer, notAcceptable(file.MediaType)
		}
		tag := secret.ETag(file.Content)
		h := w.Header()
		h["Etag"] = []string{tag}
		if index := op.Handler.input.ifNoneMatch; index != nil && fieldOf[IfNoneMatch](in, index).matchesWeakly(tag) {
			web.Respond(w, r, http.StatusNotModified, nil)
			return buffer, nil
		}
		h["Content-Type"] = []string{file.MediaType}
		web.Respond(w, r, op.Answers[0].Status, file.Content)
		return buffer, nil
	}
	return Handler{inputOf(reflect.TypeFor[In]()), reflect.TypeFor[File](), types, serve}
}
