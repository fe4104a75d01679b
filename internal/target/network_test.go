package target

import (
	"strings"
	"testing"

	"tacho/transport/tap"
)

// What the network did in this level, and not in those before it, is told.
func TestNetworkReasons(t *testing.T) {
	then := tap.Stats{Segments: 100, Lost: 1, Repeated: 7, Reordered: 8}
	if r := networkReasons("http://a", tap.Stats{Segments: 200, Lost: 9, Repeated: 7, Reordered: 8}.Since(then)); r != nil {
		t.Errorf("a network that did nothing is blamed: %v", r)
	}
	r := networkReasons("http://a", tap.Stats{Segments: 300, Repeated: 9, Reordered: 8}.Since(then))
	if len(r) != 1 || !strings.Contains(r[0].Text, "of 200 segments to http://a and back, 2 were sent again and 0 came out of order") {
		t.Errorf("%v", r)
	}
}
