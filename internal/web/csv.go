package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/limiter"
)

const (
	exportsAtOnce  = 8                // exports that one process runs at a time, with shares between tenants
	exportsOfOne   = 2                // exports that one process runs at a time for one tenant
	exportPageTime = 15 * time.Second // for reading one part of an export
	exportSendTime = 30 * time.Second // for sending one part to the client
	exportTime     = 15 * time.Minute // for a whole export
	byteOrderMark  = "\ufeff"
)

// errManyExports refuses an export while too many are running.
var errManyExports = rolecall.ErrUnavailable.With("Too many exports are running. Nothing was exported. Repeat the request shortly.")

// CSV is the format of a table that ServeCSV sends.
type CSV struct {
	Tenant string // name
	// Mark adds a byte order mark at the beginning of the file. Without this mark, some
	// spreadsheets do not read the file as UTF-8.
	Mark bool
	// Raw leaves cells unchanged that a spreadsheet could calculate.
	Raw bool
}

// ServeCSV sends a table as a CSV file (RFC 4180). The function open returns the table. ServeCSV holds only a few
// rows in memory. While the client reads, it extends the deadline for writes. An export ends after 15 minutes. If a
// row cannot be read or sent, ServeCSV aborts the connection, so that the client does not consider the file
// complete. A HEAD request gets only the headers, and does not record the export. ServeCSV returns the errors of
// open and of Table.Record. If too many exports are running, ServeCSV aborts the newest one of the tenant with most
// of them. If that is this tenant, it returns ErrUnavailable instead.
func (s *Site) ServeCSV(w http.ResponseWriter, r *http.Request, format CSV, open func() (*rolecall.Table, error)) error {
	q := RequestOf(r)
	running, end, ok := s.exports.begin(q.Context, format.Tenant)
	if !ok {
		return errManyExports
	}
	defer end()
	table, err := open()
	if err != nil {
		return err
	}
	if r.Method != http.MethodHead {
		if err := table.Record(); err != nil {
			return err
		}
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/csv; charset=utf-8"}
	h["Content-Disposition"] = []string{fmt.Sprintf(`attachment; filename="%s-%s-%s.csv"`, format.Tenant, table.Name, q.Started.UTC().Format(time.DateOnly))}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	var first []byte
	if format.Mark {
		first = append(first, byteOrderMark...)
	}
	if err := q.sendTable(running, w, format.append(first, table.Columns), format, table); err != nil {
		q.Cause = err
		if !q.hasClientLeft() && !isTimeout(err) {
			s.logger.ErrorContext(q.Context, "export ended early", "request_id", q.ID, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

// exports limits how many exports run.
type exports struct {
	ofProcess *limiter.Shares[string]
	ofOne     quota // by tenant
}

func newExports() exports {
	return exports{limiter.NewShares[string](exportsAtOnce), quota{limit: math.MaxInt, limitOfOne: exportsOfOne}}
}

// begin begins an export of the tenant. The export must stop when the returned context ends.
func (e *exports) begin(ctx context.Context, tenant string) (running context.Context, end func(), ok bool) {
	if ok, _ := e.ofOne.begin(tenant); !ok {
		return nil, nil, false
	}
	running, endShare, ok := e.ofProcess.Begin(ctx, tenant)
	if !ok {
		e.ofOne.end(tenant)
		return nil, nil, false
	}
	return running, func() {
		endShare()
		e.ofOne.end(tenant)
	}, true
}

// isTimeout reports whether err means that the client read too slowly.
func isTimeout(err error) bool {
	slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && slow.Timeout()
}

// sendTable sends the text and then the rows of the table, until running ends. It does not use the
// deadline of the request, because an export may take longer.
func (q *Request) sendTable(running context.Context, w http.ResponseWriter, text []byte, format CSV, table *rolecall.Table) error {
	whole, cancel := context.WithTimeout(running, exportTime)
	defer cancel()
	control := http.NewResponseController(w)
	// A write to a slow client must not outlive the export. The error is ignored: it occurs only if the writer does not
	// support deadlines, and then SetWriteDeadline in the loop returns it.
	defer context.AfterFunc(whole, func() { _ = control.SetWriteDeadline(time.Now()) })()
	if err := control.SetReadDeadline(time.Time{}); err != nil { // an expired read deadline would end the context of the connection
		return err
	}
	for more := true; more; {
		var rows [][]string
		var err error
		if rows, more, err = nextPart(whole, table); err != nil {
			return err
		}
		for _, row := range rows {
			text = format.append(text, row)
		}
		if err := control.SetWriteDeadline(time.Now().Add(exportSendTime)); err != nil {
			return err
		}
		if whole.Err() != nil { // since before the deadline was set
			return context.Cause(whole)
		}
		if err := send(w, control, text); err != nil {
			return cmp.Or(context.Cause(whole), err)
		}
		text = text[:0]
	}
	return nil
}

func nextPart(ctx context.Context, table *rolecall.Table) (rows [][]string, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, exportPageTime)
	defer cancel()
	return table.Next(ctx)
}

// send sends the text immediately, so that the client sees progress.
func send(w http.ResponseWriter, control *http.ResponseController, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return control.Flush()
}

// append appends one row of the file.
func (f CSV) append(b []byte, cells []string) []byte {
	for i, cell := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		if !f.Raw {
			cell = neutralized(cell)
		}
		b = appendCell(b, cell)
	}
	return append(b, "\r\n"...)
}

const (
	// formulaStarts are the characters with which a formula begins. Some spreadsheets also accept the
	// full-width forms.
	formulaStarts = "=+-@\uff1d\uff0b\uff0d\uff20"
	// cellBreaks begin a new cell or row in some reader. A spreadsheet in a language with a decimal comma
	// splits at semicolons. It then ignores the quotes of the other cells, because they are not at the
	// beginning of a cell.
	cellBreaks = ";\t\n\v\f\r\u0085\u2028\u2029"
	// skippedStarts can precede the formula in a cell: readers remove blanks and quotes.
	skippedStarts = " \"'\u00a0\u3000\ufeff"
)

// neutralized returns the text with an apostrophe before each part that a spreadsheet could calculate. A
// part begins at the beginning of the text and after each of the cellBreaks.
func neutralized(text string) string {
	if !strings.ContainsAny(text, formulaStarts+"\t\r") {
		return text
	}
	var b strings.Builder
	for text != "" {
		part := text
		if end := strings.IndexAny(text, cellBreaks); end >= 0 {
			_, size := utf8.DecodeRuneInString(text[end:])
			part = text[:end+size]
		}
		start := strings.TrimLeft(part, skippedStarts)
		first, _ := utf8.DecodeRuneInString(start)
		isBlank := b.Len() == 0 && (part[0] == '\t' || part[0] == '\r') // readers skip it, and the text continues
		if start != "" && strings.ContainsRune(formulaStarts, first) && part[0] != '\'' || isBlank {
			b.WriteByte('\'')
		}
		b.WriteString(part)
		text = text[len(part):]
	}
	return b.String()
}

// appendCell appends one cell of a row.
func appendCell(b []byte, cell string) []byte {
	if !strings.ContainsAny(cell, "\",\r\n") {
		return append(b, cell...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(cell, `"`, `""`)...)
	return append(b, '"')
}
