package httpapi

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
)

// input is what a request says outside of its body.
type input struct {
	typed reflect.Value // pointer to the input of a typed operation

	user    rolecall.UserID // of the path
	role    rolecall.RoleID
	session rolecall.SessionID
	account rolecall.ServiceAccountID
	token   rolecall.APITokenID

	tenant string // name, for an operator

	passkey []byte // of the path

	key         string // idempotency key
	ifMatch     tags
	ifNoneMatch tags

	limit      int
	cursor     string
	after      *rolecall.Position // what the cursor stands for
	sort       order
	email      string
	externalID string
	department string
	status     string
	holds      rolecall.RoleID // filter role
	roleKey    string
	words      []string
	count      bool
	force      bool
	expired    bool // list expired assignments too
	permission rolecall.Permission
	eventType  string
	actor      rolecall.AnyID
	subject    rolecall.AnyID
	from, to   rolecall.Time
	untouched  bool // leave the idle clock alone
}

// order is how a list is sorted.
type order struct {
	by   string // name, email, createdAt; "" for the default
	desc bool
}

// place is where a parameter stands.
type place string

// The places of parameters.
const (
	inPath   place = "path"
	inQuery  place = "query"
	inHeader place = "header"
)

// parameter is one value outside of the body: how it is documented and how it is
// read. Read returns the code and the sentence of a fault, empty if there is
// none.
type parameter struct {
	in       place
	name     string
	about    string
	required bool
	schema   *huma.Schema // nil: one of values
	read     func(in *input, text string) (code, detail string)
	key      string   // of a header: the form in which net/http keeps its name
	values   []string // if only these are known; read is called with one of them
	unknown  string   // the sentence about another value
}

// fault says what is wrong with the parameter.
func (p *parameter) fault(code, detail string) rolecall.Fault {
	f := rolecall.Fault{Code: code, Detail: detail}
	if p.in == inHeader {
		f.Header = p.name
	} else {
		f.Parameter = p.name
	}
	return f
}

// readInput reads path, query and header, and returns everything that is wrong
// with them. Values that are not known where only some are become x.unknown.
func (x *exchange) readInput() rolecall.Faults {
	var faults rolecall.Faults
	x.in.limit = rolecall.DefaultLimit
	if x.route.endpoint != nil {
		x.in.typed = x.route.endpoint.newInput()
	}
	for _, p := range x.route.inPath {
		x.readParameter(&faults, p, x.request.PathValue(p.name))
	}
	for _, p := range x.route.inHeader {
		switch lines := x.request.Header[p.key]; {
		case len(lines) == 1:
			x.readParameter(&faults, p, lines[0])
		case len(lines) > 1:
			faults = append(faults, p.fault("repeated", "must be sent once"))
		case p == requiredIfMatch: // the operation answers 428 (RFC 6585)
		case p.required:
			faults = append(faults, p.fault("required", "must be sent"))
		}
	}
	x.readQuery(&faults, x.request.URL.RawQuery)
	return faults
}

func (x *exchange) readParameter(faults *rolecall.Faults, p *parameter, text string) {
	if p.values != nil && !slices.Contains(p.values, text) {
		x.unknown = append(x.unknown, p.fault("unknown-value", p.unknown))
		return
	}
	if code, detail := p.read(&x.in, text); code != "" {
		*faults = append(*faults, p.fault(code, detail))
	}
}

// readQuery reads a query strictly: each parameter known, given once, and there if
// it is required.
func (x *exchange) readQuery(faults *rolecall.Faults, raw string) {
	var seen uint32
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		text, textErr := url.QueryUnescape(text)
		i, p := x.route.queryParameter(name)
		switch {
		case p == nil:
			*faults = append(*faults, rolecall.Fault{Parameter: bounded(name), Code: "unknown", Detail: "is not a query parameter of this operation"})
		case nameErr != nil || textErr != nil || !utf8.ValidString(text):
			*faults = append(*faults, p.fault("encoding", "must be percent-encoded UTF-8"))
		case seen&(1<<i) != 0:
			*faults = append(*faults, p.fault("repeated", "must be given once"))
		default:
			x.readParameter(faults, p, text)
		}
		if p != nil {
			seen |= 1 << i
		}
	}
	for i, p := range x.route.inQuery {
		if p.required && seen&(1<<i) == 0 {
			*faults = append(*faults, p.fault("required", "must be given"))
		}
	}
}

func (r *route) queryParameter(name string) (int, *parameter) {
	for i, p := range r.inQuery {
		if p.name == name {
			return i, p
		}
	}
	return 0, nil
}

// bounded cuts a name that a client chose to what an answer may repeat.
func bounded(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}
