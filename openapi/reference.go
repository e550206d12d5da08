package openapi

import "embed"

// Pages holds the templates of the pages for people: the reference, the
// permissions and the problems.
//
//go:embed reference/*.html
var Pages embed.FS

// Asset is a file that the pages load.
type Asset struct {
	Name    string // name in the links of the pages
	Type    string // media type
	Content []byte
}

// Assets are the files that the pages load.
var Assets = []Asset{
	{Name: "reference.js", Type: "text/javascript; charset=utf-8", Content: referenceScript},
	{Name: "page.css", Type: "text/css; charset=utf-8", Content: pageStyle},
	{Name: "icon.svg", Type: "image/svg+xml", Content: icon},
}

var (
	//go:embed reference/reference.js
	referenceScript []byte
	//go:embed reference/page.css
	pageStyle []byte
	//go:embed reference/icon.svg
	icon []byte
)
