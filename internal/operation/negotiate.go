package operation

import (
	"mime"
	"strings"

	"github.com/rolecall/rolecall/internal/web"
)

// accepts reports whether the lines of the Accept header allow the media type. The most specific
// media range decides (RFC 9110, 12.5.1). Without any range, every media type is allowed.
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

// isJSON reports whether the Content-Type is JSON in UTF-8. For a PATCH, it can also be a merge
// patch.
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
