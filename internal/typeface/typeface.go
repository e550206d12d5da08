// Package typeface contains the typeface of the console and of the documentation pages.
package typeface

import _ "embed"

// Name is the file name of the typeface. Style sheets contain it.
const Name = "inter.woff2"

var (
	// Font is the typeface as WOFF2.
	//go:embed inter.woff2
	Font []byte

	// License is the text of its license, the SIL Open Font License 1.1.
	//go:embed inter-license.txt
	License []byte
)
