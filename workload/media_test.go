package workload_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

func buckets(t *testing.T, text string) workload.Buckets {
	t.Helper()
	var b workload.Buckets
	must.Do(t, b.UnmarshalText([]byte(text)))
	return b
}

// urls returns the URLs of the images and videos of a request.
func urls(t *testing.T, q *tacho.Request) (images, videos []string) {
	t.Helper()
	var m struct {
		Content []struct {
			Image struct{ URL string } `json:"image_url"`
			Video struct{ URL string } `json:"video_url"`
		}
	}
	must.Do(t, json.Unmarshal(q.Input.Messages[0].Raw, &m))
	for _, p := range m.Content {
		if p.Image.URL != "" {
			images = append(images, p.Image.URL)
		}
		if p.Video.URL != "" {
			videos = append(videos, p.Video.URL)
		}
	}
	return images, videos
}

// TestRandomLimits checks the rule of the reference: items are drawn by their weights,
// and a type of media at its limit is not drawn again.
func TestRandomLimits(t *testing.T) {
	shapes := buckets(t, "{(16,24,1):0.2, (32,16,3):0.8}")
	draw := func(o workload.ImageOptions) map[[2]int]int {
		o.Buckets = shapes
		w := make1(t, "random_mm", workload.Options{Input: workload.Fixed(4), Output: workload.Fixed(1), Media: true, Messages: true, Images: o})
		counts := map[[2]int]int{}
		for _, q := range requests(t, w, 60) {
			images, videos := urls(t, &q)
			counts[[2]int{len(images), len(videos)}]++
		}
		return counts
	}
	if got := draw(workload.ImageOptions{Base: 3, Images: 255, Videos: 1}); got[[2]int{2, 1}]+got[[2]int{3, 0}] != 60 || got[[2]int{2, 1}] < 50 {
		t.Errorf("at most one film: %v", got)
	}
	got := draw(workload.ImageOptions{Base: 3, Ratio: 1, Images: 1, Videos: 1})
	if none, one, two := got[[2]int{0, 0}], got[[2]int{1, 0}]+got[[2]int{0, 1}], got[[2]int{1, 1}]; min(none, one, two) < 10 || none+one+two != 60 {
		t.Errorf("no more than the limits, each number alike: %v", got)
	}
	k, _ := workload.Find("random_mm")
	_, err := k.New(t.Context(), workload.Options{Media: true, Images: workload.ImageOptions{Base: 3, Images: 1, Videos: 1, Buckets: shapes}})
	if err == nil || !strings.Contains(err.Error(), "at most 2 are allowed") {
		t.Errorf("three items where two are allowed: %v", err)
	}
	if got := draw(workload.ImageOptions{Base: 2, Images: 9}); got[[2]int{2, 0}] != 60 {
		t.Errorf("no films: %v", got)
	}
}

// TestMediaLimits checks that a missing limit keeps its default and that an invalid one
// changes nothing.
func TestMediaLimits(t *testing.T) {
	for text, want := range map[string]workload.MediaLimits{
		`{}`: {Images: 255, Videos: 1}, `{"image":3}`: {Images: 3, Videos: 1}, `{"video":0,"image":1e2}`: {Images: 100},
	} {
		var got workload.MediaLimits
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{"smell":1}`: "set only image and video", `{"image":1.5}`: "to an integer", `{"video":1001}`: "at most 1000", `{"image":-1}`: "integer", `3`: "JSON object", `{"image":"x"}`: "JSON object",
	} {
		got := workload.MediaLimits{Images: 7}
		if err := got.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || got.Images != 7 {
			t.Errorf("%s: %+v, %v, want %s", text, got, err, want)
		}
	}
}

// TestVideo checks that a video contains the requested number of frames, each an image of the
// requested size at the offset given by the file's tables.
func TestVideo(t *testing.T) {
	w := make1(t, "random_mm", workload.Options{
		Input: workload.Fixed(4), Output: workload.Fixed(1), Media: true,
		Images: workload.ImageOptions{Base: 1, Videos: 1, Buckets: buckets(t, "{(30,46,5):1}")},
	})
	q := requests(t, w, 1)[0]
	_, videos := urls(t, &q)
	data := must.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(videos[0], "data:video/mp4;base64,")))(t)
	if head := atom(t, data, "moov", "trak", "tkhd"); binary.BigEndian.Uint32(head[76:]) != 46<<16 || binary.BigEndian.Uint32(head[80:]) != 30<<16 {
		t.Errorf("shown as % x", head[76:])
	}
	sizes := atom(t, data, "moov", "trak", "mdia", "minf", "stbl", "stsz")
	at := binary.BigEndian.Uint32(atom(t, data, "moov", "trak", "mdia", "minf", "stbl", "stco")[8:])
	if n := binary.BigEndian.Uint32(sizes[8:]); n != 5 {
		t.Fatalf("%d frames", n)
	}
	for i := range 5 {
		size := binary.BigEndian.Uint32(sizes[12+4*i:])
		c, err := jpeg.DecodeConfig(bytes.NewReader(data[at : at+size]))
		if err != nil || c.Width != 46 || c.Height != 30 {
			t.Errorf("frame %d: %dx%d, %v", i, c.Width, c.Height, err)
		}
		at += size
	}
	if int(at) != len(data) {
		t.Errorf("%d bytes are no frame", len(data)-int(at))
	}
	if q.InputTokens != 0 {
		t.Errorf("a film is counted as %d tokens", q.InputTokens)
	}
}

// atom finds a box in an MP4 file.
func atom(t *testing.T, data []byte, path ...string) []byte {
	t.Helper()
	for _, name := range path {
		found := false
		for !found {
			if len(data) < 8 {
				t.Fatalf("no %s", name)
			}
			size := binary.BigEndian.Uint32(data)
			if found = string(data[4:8]) == name; found {
				data = data[8:size]
			} else {
				data = data[size:]
			}
		}
	}
	return data
}

// TestRandomAudio checks that a backend for audio gets only the noise.
func TestRandomAudio(t *testing.T) {
	o := workload.Options{Input: workload.Fixed(12), Output: workload.Fixed(9), Audio: true, Images: workload.ImageOptions{Base: 1, Images: 1, Buckets: buckets(t, "{(8,8,1):1}"), AudioMS: workload.Fixed(1500)}}
	qs := requests(t, make1(t, "random-mm", o), 2)
	a, b := qs[0].Input.Audio, qs[1].Input.Audio
	if a == nil || qs[0].AudioS != 1.5 || qs[0].MaxTokens != 9 || qs[0].Input.IDs != nil || a.Name != "audio.wav" || bytes.Equal(a.Data, b.Data) {
		t.Errorf("%+v", qs[0])
	}
	o.Images.AudioMS = workload.Fixed(0)
	k, _ := workload.Find("random_mm")
	o.Counter = token.Estimate{}
	if _, err := k.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--random-mm-audio-ms") {
		t.Errorf("no sound: %v", err)
	}
	o.Audio = false
	if _, err := k.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "openai-chat") {
		t.Errorf("a backend for neither: %v", err)
	}
}

// TestCustomAudio reads files of 0.75 s written by other programs.
func TestCustomAudio(t *testing.T) {
	file := func(name string) string { return filepath.Join("testdata", name) }
	lines := fmt.Sprintf("{\"prompt\":\"say it\",\"audio\":%q}\n{\"audio\":%q}\n{\"audio\":%q}\n{\"audio\":%q}\n", file("tone.wav"), file("tone.flac"), file("tone.mp3"), file("tone.ogg"))
	path := write(t, "a.jsonl", lines)
	w := make1(t, "custom_audio", workload.Options{Path: path, Output: workload.Fixed(7), Audio: true})
	requests(t, w, 4)
	qs := requests(t, w, 4)
	for i, want := range []struct {
		name    string
		seconds float64
		off     float64
	}{{"tone.wav", 0.75, 0}, {"tone.flac", 0.75, 0}, {"tone.mp3", 0.75, 0.001}, {"tone.ogg", 0, 0}} {
		data := must.Get(os.ReadFile(file(want.name)))(t)
		q := qs[i]
		if math.Abs(q.AudioS-want.seconds) > want.off || q.Input.Audio == nil || q.Input.Audio.Name != want.name || !bytes.Equal(q.Input.Audio.Data, data) || q.Input.Text != "" || q.MaxTokens != 7 {
			t.Errorf("%s: %v s, %+v", want.name, q.AudioS, q.Input)
		}
	}
	if notes := strings.Join(w.Notes(), " "); !strings.Contains(notes, "the length of 1 audio inputs is unknown") || !strings.Contains(notes, "WAV, FLAC and MP3") {
		t.Errorf("notes %q", notes)
	}
	chat := requests(t, make1(t, "custom-audio", workload.Options{Path: path, Output: workload.Fixed(7), Media: true, Messages: true}), 4)
	wav, _ := os.ReadFile(file("tone.wav"))
	want := `{"role":"user","content":[{"type":"text","text":"say it"},{"type":"input_audio","input_audio":{"data":"` + base64.StdEncoding.EncodeToString(wav) + `","format":"wav"}}]}`
	if got := string(chat[0].Input.Messages[0].Raw); got != want || chat[0].AudioS != 0.75 || chat[0].InputTokens != 0 {
		t.Errorf("in a message: %v s, %.200s", chat[0].AudioS, got)
	}
	for i, format := range []string{"wav", "flac", "mp3", "ogg"} {
		if raw := string(chat[i].Input.Messages[0].Raw); !strings.Contains(raw, `"format":"`+format+`"`) {
			t.Errorf("%s: %.100s", format, raw[len(raw)-100:])
		}
	}
}

func TestMediaErrors(t *testing.T) {
	picture := write(t, "p.png", "x")
	for want, c := range map[string]struct {
		kind string
		o    workload.Options
	}{
		"a.jsonl:1: no \"audio\"":             {"custom_audio", workload.Options{Audio: true, Path: write(t, "a.jsonl", `{"prompt":"x"}`)}},
		"b.jsonl:1: stat /none.wav":           {"custom_audio", workload.Options{Audio: true, Path: write(t, "b.jsonl", `{"audio":"/none.wav"}`)}},
		"such as openai-audio":                {"custom_audio", workload.Options{Messages: true, Path: write(t, "c.jsonl", `{"audio":"/none.wav"}`)}},
		"neither \"image_files\"":             {"custom_image", workload.Options{Media: true, Path: write(t, "d.jsonl", `{"prompt":"x"}`)}},
		"e.jsonl:1: stat /none.png":           {"custom_image", workload.Options{Media: true, Path: write(t, "e.jsonl", `{"prompt":"x","image_files":["/none.png"]}`)}},
		`part 0 has the unknown type "smell"`: {"custom_image", workload.Options{Media: true, Path: write(t, "f.jsonl", `{"content":[{"type":"smell"}]}`)}},
		"such as openai-chat":                 {"custom_image", workload.Options{Messages: true, Path: write(t, "g.jsonl", fmt.Sprintf(`{"prompt":"x","image_files":[%q]}`, picture))}},
		"part 0 has no image":                 {"custom_image", workload.Options{Media: true, Path: write(t, "h.jsonl", `{"content":[{"type":"image"}]}`)}},
		"accepts them in messages":            {"custom", workload.Options{Messages: true, Path: write(t, "i.jsonl", fmt.Sprintf(`{"prompt":"x","images":[%q]}`, picture))}},
		"messages with images need":           {"custom", workload.Options{Path: write(t, "j.jsonl", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`)}},
		"audio: \"data:image/png;base64,":     {"custom_audio", workload.Options{Audio: true, Path: write(t, "k.jsonl", `{"audio":"data:image/png;base64,AAAA"}`)}},
		"is on another machine":               {"custom_image", workload.Options{Media: true, SendFiles: true, Path: write(t, "l.jsonl", `{"prompt":"x","image_files":["http://127.0.0.1/x.png"]}`)}},
	} {
		k := must.Get(workload.Find(c.kind))(t)
		c.o.Counter = token.Estimate{}
		w, err := k.New(t.Context(), c.o)
		if err == nil {
			_, err = w.Session(0)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestCustomImage checks the line format of the reference: files are named to the server
// unless they should be sent, and parts keep their order and their other fields.
func TestCustomImage(t *testing.T) {
	var png bytes.Buffer
	must.Do(t, jpeg.Encode(&png, image.NewGray(image.Rect(0, 0, 2, 2)), nil))
	picture := write(t, "p.dat", png.String())
	path := write(t, "i.jsonl", fmt.Sprintf(`{"prompt":"compare","image_files":[%q,"file://%s","http://127.0.0.1/x.png","data:image/png;base64,AAAA"]}
{"content":[{"type":"text","text":"see "},{"type":"image","image":%q},{"type":"text","text":"and"},{"type":"image_url","image_url":{"url":%q,"detail":"low"}},{"type":"image_url","image_url":"http://127.0.0.1/y.png"}]}
`, picture, picture, picture, picture))
	o := workload.Options{Path: path, Output: workload.Fixed(3), Media: true, Messages: true}
	qs := requests(t, make1(t, "custom_image", o), 2)
	images, _ := urls(t, &qs[0])
	if diff := cmp.Diff([]string{"file://" + picture, "file://" + picture, "http://127.0.0.1/x.png", "data:image/png;base64,AAAA"}, images); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"see "},{"type":"image_url","image_url":{"url":"file://%s"}},{"type":"text","text":"and"},{"type":"image_url","image_url":{"detail":"low","url":"file://%s"}},{"type":"image_url","image_url":{"url":"http://127.0.0.1/y.png"}}]}`, picture, picture)
	if diff := cmp.Diff(want, string(qs[1].Input.Messages[0].Raw)); diff != "" || qs[1].Input.Messages[0].Content != "see and" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.SendFiles, o.Path = true, write(t, "s.jsonl", fmt.Sprintf(`{"prompt":"x","image_files":[%q]}`, picture))
	sent := requests(t, make1(t, "custom_image", o), 1)
	images, _ = urls(t, &sent[0])
	if want := "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(png.Bytes()); len(images) != 1 || images[0] != want {
		t.Errorf("sent as %v", images)
	}
}

// TestHuggingFaceAudio reads rows of speech datasets: the bytes of the file, its path,
// and the transcript, which is not sent.
func TestHuggingFaceAudio(t *testing.T) {
	type file struct {
		Bytes []byte `parquet:"bytes,optional"`
		Path  string `parquet:"path,optional"`
	}
	type row struct {
		Audio *file  `parquet:"audio,optional"`
		Text  string `parquet:"text"`
	}
	read := func(name string) []byte {
		return must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	}
	flac, ogg := read("tone.flac"), read("tone.ogg")
	short := slices.Concat(read("tone.wav")[:40], []byte{0xa0, 0x0f, 0, 0}, make([]byte, 4000)) // 0.25 s
	path := filepath.Join(t.TempDir(), "test-00000.parquet")
	must.Do(t, parquet.WriteFile(path, []row{{&file{flac, "1.flac"}, "one"}, {&file{short, ""}, "two"}, {&file{ogg, "3.ogg"}, "three"}}))
	seconds := func(w workload.Workload) (out []float64) {
		for i := uint64(0); ; i++ {
			s, err := w.Session(i)
			if errors.Is(err, io.EOF) {
				return out
			} else if err != nil {
				t.Fatal(err)
			}
			out = append(out, s.Turns[0].Request.AudioS)
		}
	}
	o := workload.Options{Path: path, Audio: true}
	w := make1(t, "hf", o)
	if got := seconds(w); !slices.Equal(got, []float64{0.75, 0.25, 0}) {
		t.Errorf("%v", got)
	}
	q := requests(t, w, 2)
	if a := q[0].Input.Audio; a == nil || a.Name != "1.flac" || !bytes.Equal(a.Data, flac) || q[0].MaxTokens != 1024 || q[1].Input.Audio.Name != "audio.wav" {
		t.Errorf("%+v", q[0])
	}
	o.AudioLimits = workload.AudioLimits{MinS: 0.1, MaxS: 0.5}
	w = make1(t, "hf", o)
	if got, notes := seconds(w), strings.Join(w.Notes(), " "); !slices.Equal(got, []float64{0.25}) || !strings.Contains(notes, "1 audio inputs not between 0.1 and 0.5 s were left out") || !strings.Contains(notes, "1 audio inputs of unknown length were left out") {
		t.Errorf("%v, %q", got, notes)
	}
	o.AudioLimits = workload.AudioLimits{MinS: 0.5}
	if got := seconds(make1(t, "hf", o)); !slices.Equal(got, []float64{0.75}) {
		t.Errorf("%v", got)
	}
	o = workload.Options{Path: path, Media: true, Messages: true, Output: workload.Fixed(5)}
	if q := requests(t, make1(t, "hf", o), 1)[0]; !strings.Contains(string(q.Input.Messages[0].Raw), `"format":"flac"`) || q.MaxTokens != 5 || q.AudioS != 0.75 {
		t.Errorf("%+v", q)
	}
	// A text backend gets the text, as with any other dataset.
	if q := requests(t, make1(t, "hf", workload.Options{Path: path, Output: workload.Fixed(5)}), 1)[0]; q.Input.Text != "one" {
		t.Errorf("%+v", q)
	}
}

func TestHuggingFaceImages(t *testing.T) {
	type file struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	}
	type row struct {
		Images   []file `parquet:"images"`
		Question string `parquet:"question"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	must.Do(t, parquet.WriteFile(path, []row{{[]file{{[]byte("\x89PNG\r\n\x1a\n"), "a"}, {[]byte("\xff\xd8\xff"), "b"}}, "what?"}}))
	q := requests(t, make1(t, "hf", workload.Options{Path: path, Media: true, Messages: true}), 1)[0]
	images, _ := urls(t, &q)
	if diff := cmp.Diff([]string{"data:image/png;base64,iVBORw0KGgo=", "data:image/jpeg;base64,/9j/"}, images); diff != "" || q.Input.Messages[0].Content != "what?" || q.MaxTokens != 256 {
		t.Errorf("%+v %s", q, diff)
	}
}

// TestMediaIsReadBack checks that the custom dataset reads back the audio and images
// written by data --write.
func TestMediaIsReadBack(t *testing.T) {
	images := workload.ImageOptions{Base: 1, Images: 1, Buckets: buckets(t, "{(8,8,1):1}"), AudioMS: workload.Fixed(100)}
	for name, o := range map[string]workload.Options{
		"sound":   {Audio: true},
		"message": {Media: true, Messages: true},
	} {
		o.Input, o.Output, o.Images = workload.Fixed(5), workload.Fixed(3), images
		w := make1(t, "random_mm", o)
		var lines bytes.Buffer
		var want []tacho.Request
		for i := range uint64(3) {
			s := must.Get(w.Session(i))(t)
			must.Do(t, workload.WriteLine(&lines, &s))
			want = append(want, s.Turns[0].Request)
		}
		back := o
		back.Path, back.Output = write(t, "w.jsonl", lines.String()), workload.Fixed(-1)
		if diff := cmp.Diff(want, requests(t, make1(t, "custom", back), 3)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
