package sim

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/must"
)

// A second of audio in a chat counts 100 tokens, a picture or a video 256. The answer
// depends on the media.
func TestChatMedia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		chat := func(part string) (tokens int, answer string) {
			res := post(t, client, "/v1/chat/completions", `{"max_tokens":4,"messages":[{"role":"user","content":[{"type":"text","text":"one two"},`+part+`]}]}`)
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("status %d, %v: %s", res.StatusCode, err, body)
			}
			var v any
			must.Do(t, json.Unmarshal(body, &v))
			truths := s.Truth()
			return truths[len(truths)-1].Input, textOf(v)
		}
		if n, _ := chat(`{"type":"input_audio","input_audio":{"format":"wav","data":"` + base64.StdEncoding.EncodeToString(testSound) + `"}}`); n != 5 {
			t.Errorf("a sound: %d tokens, want 5", n)
		}
		n, one := chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)
		m, other := chat(`{"type":"video_url","video_url":{"url":"data:video/mp4;base64,BBBB"}}`)
		if n != 258 || m != 258 || one == other || one == "" {
			t.Errorf("a picture: %d tokens, %q; a film: %d, %q", n, one, m, other)
		}
	})
}
