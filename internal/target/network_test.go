package target

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/transport/socket"
)

// Reasons count network events of this level only, not of earlier levels.
func TestNetworkReasons(t *testing.T) {
	then := socket.Stats{Segments: 100, Lost: 1, Repeated: 7, Reordered: 8}
	if r := networkReasons("http://a", socket.Stats{Segments: 200, Lost: 9, Repeated: 7, Reordered: 8}.Since(then)); r != nil {
		t.Errorf("a network that did nothing is blamed: %v", r)
	}
	r := networkReasons("http://a", socket.Stats{Segments: 300, Repeated: 9, Reordered: 8}.Since(then))
	if len(r) != 1 || !strings.Contains(r[0].Text, "of 200 segments to and from http://a, 2 were retransmitted and 0 arrived out of order") {
		t.Errorf("%v", r)
	}
}
