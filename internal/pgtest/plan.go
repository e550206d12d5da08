package pgtest

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	nodeOfPlan = regexp.MustCompile(`actual rows=([\d.]+) loops=(\d+)`)
	notTaken   = regexp.MustCompile(`Rows Removed by .*: (\d+)`)
)

// LookedAt returns how many rows one node of a query plan has read in all of its loops. Of
// all nodes, it takes the one with the most rows. The plan is the text of EXPLAIN ANALYZE.
func LookedAt(plan string) (most float64) {
	loops := 1.0
	for line := range strings.Lines(plan) {
		if node := nodeOfPlan.FindStringSubmatch(line); node != nil {
			loops = number(node[2])
			most = max(most, number(node[1])*loops)
		} else if removed := notTaken.FindStringSubmatch(line); removed != nil {
			most = max(most, number(removed[1])*loops)
		}
	}
	return most
}

// number parses a number that the expressions above have matched.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
