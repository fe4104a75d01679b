package workload

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"tacho"
)

var randomMM = Kind{
	Name: "random_mm", Doc: "random text with images of noise, of sizes drawn from --random-mm-bucket-config, and sound of --random-mm-audio-ms; for backends that take messages",
	Endless: true, New: newRandomMM,
}

// ImageOptions are the pictures of random_mm, and its sound.
type ImageOptions struct {
	Base    int     // images in a request
	Ratio   float64 // how far that varies, up and down
	Limit   int     // most images in a request; 0 is no limit
	Buckets Buckets
	AudioMS Length // milliseconds of a sound in each request; 0 is none
}

// Buckets are sizes of images, each with its share. They are written as vLLM
// writes them, {(256, 256, 1): 0.5, (720, 1280, 1): 0.5}: height, width and
// frames. Only one frame, an image, can be made.
type Buckets struct {
	sizes []image.Point
	sums  []float64
	text  string
}

// MarshalText implements encoding.TextMarshaler.
func (b Buckets) MarshalText() ([]byte, error) { return []byte(b.text), nil }

var bucket = regexp.MustCompile(`^\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)\s*:\s*([0-9.eE+-]+)$`)

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Buckets) UnmarshalText(text []byte) error {
	out := Buckets{text: strings.TrimSpace(string(text))}
	inner := strings.TrimSuffix(strings.TrimPrefix(out.text, "{"), "}")
	sum := 0.0
	for _, part := range splitBuckets(inner) {
		m := bucket.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return fmt.Errorf("%q: write {(HEIGHT,WIDTH,FRAMES): SHARE, ...}", part)
		}
		h, _ := strconv.Atoi(m[1])
		w, _ := strconv.Atoi(m[2])
		share, err := strconv.ParseFloat(m[4], 64)
		switch {
		case err != nil || !(share >= 0) || h < 1 || w < 1 || h > maxSide || w > maxSide:
			return fmt.Errorf("%q: sides are from 1 to %d, and a share is 0 or more", part, maxSide)
		case share == 0:
			continue
		case m[3] != "1":
			return fmt.Errorf("%q: videos cannot be made: give it the share 0", part)
		}
		sum += share
		out.sizes, out.sums = append(out.sizes, image.Pt(w, h)), append(out.sums, sum)
	}
	if len(out.sizes) == 0 {
		return errors.New("no size has a share above 0")
	}
	*b = out
	return nil
}

// maxSide bounds the side of an image.
const maxSide = 16_384

// splitBuckets cuts at the commas outside brackets.
func splitBuckets(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out = append(out, text[from:i])
			from = i + 1
		}
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// randomPictures puts images before the text of a drawn workload.
type randomPictures struct {
	Workload
	Options
}

func newRandomMM(ctx context.Context, o Options) (Workload, error) {
	if !o.Messages {
		return nil, errors.New("random_mm: images need a backend that takes messages, such as openai-chat")
	}
	if len(o.Images.Buckets.sizes) == 0 {
		return nil, errors.New("random_mm: no sizes: give --random-mm-bucket-config")
	}
	if !(o.Images.Ratio >= 0 && o.Images.Ratio <= 1) {
		return nil, fmt.Errorf("random_mm: range ratio %v must be from 0 to 1", o.Images.Ratio)
	}
	o.IDs, o.Batch = false, 0
	text, err := newRandom(ctx, o)
	if err != nil {
		return nil, err
	}
	return &randomPictures{text, o}, nil
}

// Session implements tacho.Source.
func (w *randomPictures) Session(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Session(i)
	if err != nil {
		return s, err
	}
	return s, w.illustrate(&s.Turns[0].Request, i)
}

// Warmup implements Workload.
func (w *randomPictures) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Warmup(i)
	if err != nil {
		return s, err
	}
	return s, w.illustrate(&s.Turns[0].Request, warmupBase+i)
}

func (w *randomPictures) illustrate(q *tacho.Request, i uint64) error {
	rng := rngOf(w.Seed^0x70696374757265, i)
	low := int(math.Floor(float64(w.Images.Base) * (1 - w.Images.Ratio)))
	high := int(math.Ceil(float64(w.Images.Base) * (1 + w.Images.Ratio)))
	n := low + rng.IntN(high-low+1)
	if w.Images.Limit > 0 {
		n = min(n, w.Images.Limit)
	}
	urls := make([]string, n)
	for k := range urls {
		var err error
		if urls[k], err = noise(rng, w.Images.Buckets.sizes[pick(w.Images.Buckets.sums, rng)]); err != nil {
			return err
		}
	}
	m, err := withMedia(q.Input.Text, urls, hiss(rng, w.Images.AudioMS.Draw(rng, 0)))
	q.Input = tacho.Input{Messages: []tacho.Message{m}}
	q.InputTokens = 0 // what an image counts for is the model's affair
	return err
}

// noise is a JPEG of random pixels, as a data URL.
func noise(r *rand.Rand, size image.Point) (string, error) {
	img := image.NewRGBA(image.Rectangle{Max: size})
	for i := 0; i < len(img.Pix); i += 4 {
		v := r.Uint32()
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = byte(v), byte(v>>8), byte(v>>16), 0xff
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		return "", err
	}
	return "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// sampleRate is that of the sounds, as speech models take them.
const sampleRate = 16_000

// hiss is a WAV file of random samples, 16 bits of one channel; nil for no
// time.
func hiss(r *rand.Rand, ms int) []byte {
	if ms <= 0 {
		return nil
	}
	samples := make([]int16, ms*sampleRate/1000)
	for i := range samples {
		samples[i] = int16(r.Uint32()) / 8 // not too loud
	}
	bytesOf := uint32(2 * len(samples))
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{
		36 + bytesOf, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(sampleRate), uint32(2 * sampleRate), uint16(2), uint16(16),
		[]byte("data"), bytesOf, samples,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // to memory, of fixed sizes: it cannot fail
	}
	return b.Bytes()
}

func withImages(text string, images []string) (tacho.Message, error) {
	return withMedia(text, images, nil)
}

// withMedia is a message of the user with pictures and a sound in it: files of
// this machine are sent along, addresses as they are.
func withMedia(text string, images []string, wav []byte) (tacho.Message, error) {
	type imageURL struct {
		URL string `json:"url"`
	}
	type audio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	}
	type part struct {
		Type  string    `json:"type"`
		Text  string    `json:"text,omitempty"`
		Image *imageURL `json:"image_url,omitempty"`
		Audio *audio    `json:"input_audio,omitempty"`
	}
	parts := []part{{Type: "text", Text: text}}
	for _, where := range images {
		url, err := imageAddress(where)
		if err != nil {
			return tacho.Message{}, err
		}
		parts = append(parts, part{Type: "image_url", Image: &imageURL{url}})
	}
	if wav != nil {
		parts = append(parts, part{Type: "input_audio", Audio: &audio{base64.StdEncoding.EncodeToString(wav), "wav"}})
	}
	raw, err := json.Marshal(struct {
		Role    string `json:"role"`
		Content []part `json:"content"`
	}{"user", parts})
	return tacho.Message{Role: "user", Content: text, Raw: raw}, err
}

func imageAddress(where string) (string, error) {
	if strings.HasPrefix(where, "data:") || strings.Contains(where, "://") && !strings.HasPrefix(where, "file://") {
		return where, nil
	}
	path := strings.TrimPrefix(where, "file://")
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("image: %w", err)
	}
	kind := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if kind == "jpg" || kind == "" {
		kind = "jpeg"
	}
	return "data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString(b), nil
}
