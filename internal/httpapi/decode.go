package httpapi

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// checkSyntax adds what is wrong with body as one JSON document (RFC 8259): invalid
// UTF-8, a member given twice, trailing data and deep nesting included. Whether the
// document is an object is for the decoder to say.
func checkSyntax(faults *rolecall.Faults, body []byte) {
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

// wholeNumber returns the whole number that a JSON number stands for. Its spelling does
// not matter: 10, 10.0 and 1e1 are equal. A number that does not fit is the nearest one
// that does. The work is bounded by the length of the text, not by the exponent.
func wholeNumber(text string) (n int64, ok bool) {
	if jsontext.Value(text).Kind() != jsontext.KindNumber {
		return 0, false
	}
	const huge = 1 << 32 // more digits than any text has
	digits, isNegative := strings.CutPrefix(text, "-")
	digits, exponent, hasExponent := strings.Cut(strings.ToLower(digits), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	significant := strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) - len(significant) // that follow the significant digits
	if hasExponent {
		power, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		zeros += int(min(max(power, -huge), huge))
	}
	significant = strings.TrimLeft(significant, "0")
	switch {
	case significant == "":
		return 0, true
	case zeros < 0:
		return 0, false
	}
	const most = 19 // digits of an int64
	if isNegative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", min(zeros, most)), 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}
