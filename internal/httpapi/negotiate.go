package httpapi

import (
	"strings"

	"github.com/rolecall/rolecall/internal/web"
)

// accepts reports whether the Accept lines allow JSON; no range allows
// everything. The most specific one decides (RFC 9110, 12.5.1).
func accepts(lines []string) bool {
	specificity, accepted, ranges := 0, false, 0
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if strings.Trim(element, " \t") == "" { // is nothing (RFC 9110, 5.6.1)
				continue
			}
			ranges++
			mediaRange, parameters, _ := strings.Cut(element, ";")
			rank := 0
			switch strings.ToLower(strings.TrimSpace(mediaRange)) {
			case "application/json":
				rank = 3
			case "application/*":
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

// isJSON reports whether the Content-Type is JSON in UTF-8, or for a PATCH a
// merge patch.
func isJSON(contentType string, patch bool) bool {
	mediaType, parameters, found := strings.Cut(contentType, ";")
	mediaType = strings.TrimSpace(mediaType)
	if !strings.EqualFold(mediaType, "application/json") && !(patch && strings.EqualFold(mediaType, "application/merge-patch+json")) {
		return false
	}
	if !found {
		return true
	}
	name, value, _ := strings.Cut(strings.TrimSpace(parameters), "=")
	return name == "" || strings.EqualFold(name, "charset") && strings.EqualFold(strings.Trim(value, `"`), "utf-8")
}
