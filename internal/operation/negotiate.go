package operation

import (
	"mime"
	"strings"

	"github.com/rolecall/rolecall/internal/web"
)

// accepts reports whether a request with these lines of the Accept header accepts the media type.
// If several media ranges match, the most specific one decides (RFC 9110, 12.5.1). If the header
// has no media range, every media type is accepted.
func accepts(lines []string, mediaType string) bool {
	group, _, _ := strings.Cut(mediaType, "/")
	specificity, accepted, ranges := 0, false, 0
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if strings.Trim(element, " \t") == "" { // empty elements are ignored (RFC 9110, 5.6.1)
				continue
			}
			ranges++
			mediaRange, parameters, _ := strings.Cut(element, ";")
			rank := 0
			switch strings.ToLower(strings.TrimSpace(mediaRange)) {
			case mediaType:
				rank = 3
			case group + "/*":
				rank = 2
			case "*/*":
				rank = 1
			}
			if rank > specificity || rank == specificity && rank > 0 && !accepted {
				specificity, accepted = rank, !web.IsZeroWeight(parameters)
			}
		}
	}
	return accepted || ranges == 0
}

// isJSON reports whether the Content-Type is application/json in UTF-8. If patch is true,
// application/merge-patch+json is allowed too.
func isJSON(contentType string, patch bool) bool {
	if contentType == "application/json" { // fast path: nearly every client sends this value
		return true
	}
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" && !(patch && mediaType == "application/merge-patch+json") {
		return false
	}
	for name, value := range parameters {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// mediaTypeOf returns the media type of a Content-Type without parameters, in lower case. It
// returns an empty string if the header is malformed.
func mediaTypeOf(contentType string) string {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return mediaType
}
