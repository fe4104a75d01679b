package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// The prompt is 100 tokens for each second of audio plus the words of the prompt
// field.
func TestTranscriptionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		for _, tc := range []struct {
			body string
			want int
		}{
			{soundForm("max_completion_tokens", "1"), 3},
			{soundForm("max_completion_tokens", "1", "prompt", "one two"), 5},
			{strings.Replace(soundForm("max_completion_tokens", "1"), "RIFF", "FFIR", 1), 4}, // 1,004 bytes, by their number
		} {
			res := post(t, client, "/v1/audio/transcriptions", tc.body, "Content-Type", formType)
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("status %d, %v", res.StatusCode, err)
			}
			truths := s.Truth()
			if got := truths[len(truths)-1].Input; got != tc.want {
				t.Errorf("%d tokens, want %d", got, tc.want)
			}
		}
	})
}

// Audio in a chat counts the same, a picture or a video 256 tokens. The answer
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
			if err := json.Unmarshal(body, &v); err != nil {
				t.Fatal(err)
			}
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

func TestTranscriptionRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := start(t, Options{MaxModelLen: 300})
		long := bytes.Clone(testSound)
		binary.LittleEndian.PutUint32(long[28:], 1) // one byte per second
		for name, tc := range map[string]struct{ contentType, body, says string }{
			"JSON":      {"application/json", `{"model":"m"}`, "multipart/form-data"},
			"no file":   {formType, "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n", "file"},
			"cut":       {formType, soundForm()[:200], "EOF"},
			"no number": {formType, soundForm("max_completion_tokens", "many"), "many"},
			"too long":  {formType, strings.Replace(soundForm(), string(testSound), string(long), 1), "shorten"},
		} {
			res := post(t, client, "/v1/audio/transcriptions", tc.body, "Content-Type", tc.contentType)
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusBadRequest || !json.Valid(body) || !strings.Contains(string(body), tc.says) {
				t.Errorf("%s: status %d, %s, %v", name, res.StatusCode, body, err)
			}
		}
	})
}
