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

// CSV returns the handler that calls the method do. Its table is sent as a CSV file.
func CSV[In any](do func(ctx context.Context, c access.Caller, in *In) (*rolecall.Table, error)) Handler {
	serve := func(run *Runner, _ *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error) {
		input := in.Addr().Interface().(*In)
		format := web.CSV{Tenant: c.Tenant.Name}
		if raw, ok := any(input).(rawable); ok {
			format.Raw = raw.isRaw()
		}
		return buffer, run.Site.ServeCSV(w, r, format, func() (*rolecall.Table, error) { return do(r.Context(), c, input) })
	}
	return Handler{inputOf(reflect.TypeFor[In]()), reflect.TypeFor[string](), []string{csvType}, serve}
}
