//go:build real

package chrome

import (
	"context"
	"strings"
	"testing"
)

// TestRealProblemsAreSeen checks that all kinds of problems are recorded, because other
// tests depend on it.
func TestRealProblemsAreSeen(t *testing.T) {
	b, err := Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := b.Open("data:text/html,<script>console.log('a line');fetch('http://127.0.0.1:1/asked').catch(() => { window.asked = true });setTimeout(() => { throw new Error('thrown') })</script>", View{Width: 400, Height: 400})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait("window.asked"); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(p.Problems(), "\n"); !strings.Contains(all, "a line") || !strings.Contains(all, "thrown") {
		t.Errorf("problems: %s", all)
	}
	if all := strings.Join(p.Requests(), "\n"); !strings.Contains(all, "http://127.0.0.1:1/asked") {
		t.Errorf("requests: %s", all)
	}
}
