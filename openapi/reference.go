package openapi

import "embed"

// Pages holds the templates of the pages for people: the reference, the
// permissions and the problems.
//
//go:embed reference/*.html
var Pages embed.FS

// Asset is a file that the pages load.
type Asset struct {
	Name    string // as the pages call it
	Type    string // media type
	Content []byte
	Gzipped bool // the content is compressed with gzip
}

// Assets are the files that the pages load. Those of the viewer of the document
// are another project's; reference/elements says where they come from.
var Assets = []Asset{
	{Name: "elements.js", Type: "text/javascript; charset=utf-8", Content: elementsScript, Gzipped: true},
	{Name: "elements.css", Type: "text/css; charset=utf-8", Content: elementsStyle, Gzipped: true},
	{Name: "elements-license.txt", Type: "text/plain; charset=utf-8", Content: elementsLicense},
	{Name: "elements-notices.txt", Type: "text/plain; charset=utf-8", Content: elementsNotices},
	{Name: "reference.js", Type: "text/javascript; charset=utf-8", Content: referenceScript},
	{Name: "page.css", Type: "text/css; charset=utf-8", Content: pageStyle},
	{Name: "icon.svg", Type: "image/svg+xml", Content: icon},
}

var (
	//go:embed reference/elements/web-components.min.js.gz
	elementsScript []byte
	//go:embed reference/elements/styles.min.css.gz
	elementsStyle []byte
	//go:embed reference/elements/LICENSE.txt
	elementsLicense []byte
	//go:embed reference/elements/web-components.min.js.LICENSE.txt
	elementsNotices []byte
	//go:embed reference/reference.js
	referenceScript []byte
	//go:embed reference/page.css
	pageStyle []byte
	//go:embed reference/icon.svg
	icon []byte
)
