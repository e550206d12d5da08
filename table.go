package rolecall

import "context"

// Table is a list for an export. It is read in parts, so that a list of any length needs
// little memory.
type Table struct {
	Name    string   // users or events; part of the file name
	Columns []string // the names of the columns
	// Record stores the event of the export. It must be called before the first row is
	// sent. It must not be called for a HEAD request, whose response has no rows.
	Record func() error
	// Next returns the next part of the rows. Each row has one cell for each column. A part
	// can have no rows. The result more is false for the last part.
	Next func(ctx context.Context) (rows [][]string, more bool, err error)
}
