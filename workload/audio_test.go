package workload

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestAudioSeconds checks headers that are truncated or announce missing data.
func TestAudioSeconds(t *testing.T) {
	wav := must.Get(os.ReadFile(filepath.Join("testdata", "tone.wav")))(t)
	endless := append([]byte{}, wav...)
	copy(endless[40:], "\xff\xff\xff\xff") // written to a pipe
	for name, tc := range map[string]struct {
		data []byte
		want float64
	}{
		"whole": {wav, 0.75}, "cut": {wav[:44+8000], 0.5}, "endless": {endless, 0.75}, "head alone": {wav[:44], 0}, "half a head": {wav[:30], 0},
		"nothing": {nil, 0}, "text": {[]byte("hello"), 0}, "flac without a head": {[]byte("fLaC\x00\x00\x00\x22"), 0}, "ID3 alone": {[]byte("ID3\x04\x00\x00\x00\x00\x00\x00\x00"), 0},
	} {
		if got := audioSeconds(tc.data); got != tc.want {
			t.Errorf("%s: %v s, want %v", name, got, tc.want)
		}
	}
}

func FuzzSoundSeconds(f *testing.F) {
	for _, name := range []string{"tone.wav", "tone.flac", "tone.mp3", "tone.ogg"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 2000)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := audioSeconds(data); !(s >= 0) || math.IsInf(s, 0) {
			t.Errorf("%v s", s)
		}
	})
}

// FuzzCustomLine checks that a custom line becomes a request or an error.
func FuzzCustomLine(f *testing.F) {
	f.Add(`{"prompt":"x","images":["data:image/png;base64,AAAA"]}`)
	f.Add(`{"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,","detail":"low"}},{"type":"image","image":"data:,"}]}`)
	f.Add(`{"audio":"data:audio/wav;base64,UklGRg=="}`)
	f.Add(`{"turns":[{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}]},{"prompt":"y","think_s":1}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		var e entry
		if json.Unmarshal([]byte(line), &e) != nil || e.check(false) != nil {
			return
		}
		for _, o := range []Options{{}, {Audio: true}, {Media: true}, {Media: true, Messages: true, SendFiles: true}} {
			w := &pool{Options: o, entries: []entry{e}}
			s, err := w.session(0, &e, "(opening) ")
			if err == nil && len(s.Turns) == 0 {
				t.Errorf("%s is a session without turns", line)
			}
		}
	})
}
