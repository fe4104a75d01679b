package sim

import "testing"

// The tokens of a text are contiguous.
func FuzzTGITokens(f *testing.F) {
	f.Add("one two\tthree\u00a0four \xff\xfe five")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, tok := range tgiTokens(text) {
			if tok.Start != end || text[tok.Start:tok.Stop] != tok.Text {
				t.Fatalf("token %+v after %d", tok, end)
			}
			end = tok.Stop
		}
	})
}
