//go:build real

package chrome

import (
	"context"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestRealProblemsAreSeen checks that all kinds of problems are recorded, because other
// tests depend on it.
func TestRealProblemsAreSeen(t *testing.T) {
	b := must.Get(Start(context.Background()))(t)
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := must.Get(b.Open("data:text/html,<script>console.log('a line');fetch('http://127.0.0.1:1/asked').catch(() => { window.asked = true });setTimeout(() => { throw new Error('thrown') })</script>", View{Width: 400, Height: 400}))(t)
	must.Do(t, p.Wait("window.asked"))
	if all := strings.Join(p.Problems(), "\n"); !strings.Contains(all, "a line") || !strings.Contains(all, "thrown") {
		t.Errorf("problems: %s", all)
	}
	if all := strings.Join(p.Requests(), "\n"); !strings.Contains(all, "http://127.0.0.1:1/asked") {
		t.Errorf("requests: %s", all)
	}
}
