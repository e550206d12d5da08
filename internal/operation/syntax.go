package operation

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// checkSyntax adds a field error to faults unless the body is one JSON document (RFC 8259). It
// rejects invalid UTF-8, duplicate members, data after the document, and nesting deeper than
// maxDepth. The decoder checks later that the document is an object.
func checkSyntax(faults *rolecall.FieldErrors, body []byte) {
	const incomplete = "must be one complete JSON document in UTF-8"
	if len(bytes.TrimLeft(body, blanks)) == 0 {
		faults.Add("", "syntax", incomplete)
		return
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for {
		_, err := d.ReadToken()
		syntax, isSyntax := errors.AsType[*jsontext.SyntacticError](err)
		switch {
		case err == io.EOF:
			return
		case errors.Is(err, jsontext.ErrDuplicateName):
			faults.Add(string(syntax.JSONPointer), "duplicate", "must be given once")
			return
		case isSyntax:
			faults.Add(string(syntax.JSONPointer), "syntax", "must be valid JSON in UTF-8; the error is near byte "+strconv.FormatInt(syntax.ByteOffset, 10))
			return
		case err != nil:
			faults.Add("", "syntax", incomplete)
			return
		case d.StackDepth() > maxDepth:
			faults.Add("", "depth", "must not be nested deeper than 32 levels")
			return
		case d.StackDepth() == 0 && len(bytes.TrimLeft(body[d.InputOffset():], blanks)) > 0:
			faults.Add("", "syntax", "must be one JSON document with nothing after it")
			return
		}
	}
}

// maxDepth is the maximum nesting depth of a request body in JSON.
const maxDepth = 32

// blanks are the whitespace characters of JSON.
const blanks = " \t\r\n"

// canonicalJSON returns the canonical form of the body (RFC 8785), so that equal documents have
// equal bytes. If the body is not valid JSON, canonicalJSON returns it unchanged.
func canonicalJSON(body []byte) []byte {
	canonical := jsontext.Value(slices.Clone(body))
	if err := canonical.Canonicalize(); err != nil {
		return body
	}
	return canonical
}
