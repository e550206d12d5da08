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

// checkSyntax adds what is wrong with body as one JSON document (RFC 8259): invalid
// UTF-8, a member given twice, trailing data and deep nesting included. Whether the
// document is an object is for the decoder to say.
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
			faults.Add(string(syntax.JSONPointer), "syntax", "must be JSON in UTF-8; the fault is near byte "+strconv.FormatInt(syntax.ByteOffset, 10))
			return
		case err != nil:
			faults.Add("", "syntax", incomplete)
			return
		case d.StackDepth() > maxDepth:
			faults.Add("", "depth", "must not be nested deeper than 32")
			return
		case d.StackDepth() == 0 && len(bytes.TrimLeft(body[d.InputOffset():], blanks)) > 0:
			faults.Add("", "syntax", "must be one JSON document with nothing after it")
			return
		}
	}
}

// maxDepth limits how deeply JSON may be nested.
const maxDepth = 32

// blanks are the characters that mean nothing between the tokens of JSON.
const blanks = " \t\r\n"

// canonicalJSON returns the body in the form in which equal documents are equal
// bytes (RFC 8785).
func canonicalJSON(body []byte) []byte {
	canonical := jsontext.Value(slices.Clone(body))
	if err := canonical.Canonicalize(); err != nil {
		return body
	}
	return canonical
}
