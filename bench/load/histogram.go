package load

import (
	"math/bits"
	"time"
)

// The width of a bucket is 1/64 of a power of two, so the error of a quantile is less than
// 1.6 %.
const (
	precision = 6
	buckets   = (40 - precision) << precision // up to 2^39 ns, nine minutes
)

// Histogram counts durations in buckets. Its size does not depend on the number of durations.
type Histogram struct {
	Buckets []uint32      // number of durations in each bucket; nil if no duration was recorded
	Max     time.Duration // the longest duration
}

// Record counts one duration.
func (h *Histogram) Record(d time.Duration) {
	if h.Buckets == nil {
		h.Buckets = make([]uint32, buckets)
	}
	h.Buckets[min(bucket(d), buckets-1)]++
	h.Max = max(h.Max, d)
}

// Add adds the counts of the other histogram.
func (h *Histogram) Add(other *Histogram) {
	if h.Buckets == nil {
		h.Buckets = make([]uint32, buckets)
	}
	for i, n := range other.Buckets {
		h.Buckets[i] += n
	}
	h.Max = max(h.Max, other.Max)
}

// Count returns the number of durations.
func (h *Histogram) Count() (n int) {
	for _, in := range h.Buckets {
		n += int(in)
	}
	return n
}

// Quantile returns the duration that the given share of the recorded durations does not
// exceed: a share of 0.5 gives the median. It returns zero if no duration was recorded.
func (h *Histogram) Quantile(share float64) time.Duration {
	rank := share * float64(h.Count())
	seen := 0.0
	for i, in := range h.Buckets {
		seen += float64(in)
		if in > 0 && seen >= rank && i < buckets-1 { // the last bucket has no upper bound
			return min(ceiling(i), h.Max)
		}
	}
	return h.Max
}

// bucket returns the number of the bucket for d. The first buckets are one nanosecond wide.
// Later, each power of two has 64 equal buckets.
func bucket(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < 1<<precision {
		return int(n)
	}
	shift := bits.Len64(n) - precision - 1
	return shift<<precision + int(n>>shift)
}

// ceiling returns the longest duration in the bucket.
func ceiling(bucket int) time.Duration {
	if bucket < 1<<precision {
		return time.Duration(bucket)
	}
	shift := bucket>>precision - 1
	part := bucket - shift<<precision
	return time.Duration((part+1)<<shift - 1)
}
