package operation

import (
	"context"
	"net/http"
	"reflect"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/web"
)

const (
	jsonType = "application/json"
	csvType  = "text/csv"
)

// RawQuery is the parameter of an export for programs, which need the text of each cell.
type RawQuery struct {
	Raw bool `query:"raw" doc:"Whether cells have exactly the text that the API has. Without it, some parts of a cell get an apostrophe before them, which cannot be undone. Do not open such a file in a spreadsheet."`
}

func (q *RawQuery) isRaw() bool { return q.Raw }

type rawable interface{ isRaw() bool }

// csvEndpoint is the endpoint of a handler that returns a table. The response is the table as a CSV
// file.
type csvEndpoint[API, In any] struct {
	handler func(api API, ctx context.Context, c access.Caller, in *In) (*rolecall.Table, error)
	input   *Input
}

// CSV returns the endpoint of a handler whose table is sent as a CSV file.
func CSV[API, In any](handler func(api API, ctx context.Context, c access.Caller, in *In) (*rolecall.Table, error)) Endpoint {
	return &csvEndpoint[API, In]{handler, inputOf(reflect.TypeFor[In]())}
}

func (e *csvEndpoint[API, In]) takes() *Input { return e.input }

func (e *csvEndpoint[API, In]) answer() reflect.Type { return reflect.TypeFor[string]() }

func (e *csvEndpoint[API, In]) mediaTypes() []string { return []string{csvType} }

func (e *csvEndpoint[API, In]) serve(s *Runner, _ *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error) {
	format := web.CSV{Tenant: c.Tenant.Name}
	if raw, ok := in.Addr().Interface().(rawable); ok {
		format.Raw = raw.isRaw()
	}
	return buffer, s.Site.ServeCSV(w, r, format, func() (*rolecall.Table, error) {
		return e.handler(s.API.(API), r.Context(), c, in.Addr().Interface().(*In))
	})
}
