package limit

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, s := range []string{"", "stop", strings.Repeat("x", Text), strings.Repeat("x", Text+1), strings.Repeat("é", Text), strings.Repeat("\x80", 2*Text)} {
		got := Clip(s)
		switch {
		case len(s) <= Text && got != s:
			t.Errorf("%d bytes became %d", len(s), len(got))
		case len(s) > Text && (len(got) > Text+len("…") || !strings.HasSuffix(got, "…")):
			t.Errorf("%d bytes became %d, want at most %d and a mark", len(s), len(got), Text)
		case utf8.ValidString(s) && !utf8.ValidString(got):
			t.Errorf("%d bytes were cut inside a character", len(s))
		}
	}
}

func TestErrorNamesTheBound(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{Bytes("a line", Event), "a line of more than 32 MiB"},
		{Bytes("a header", Header), "a header of more than 256 KiB"},
		{Count("events", Events), "more than 1048576 events"},
	} {
		if got := tt.err.Error(); !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q in it", got, tt.want)
		}
	}
}
