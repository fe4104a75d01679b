package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"
)

var randomMM = Kind{
	Name: "random_mm", Doc: "random text with random images and videos, of sizes drawn from --random-mm-bucket-config, and audio of --random-mm-audio-ms; a backend for audio only gets only the audio",
	Endless: true, Scenarios: true, New: newRandomMM,
	options: func(d *Dataset, o *Options) {
		d.randomFlags.options(o)
		o.Images = ImageOptions{
			Base: d.MMItems, Ratio: d.MMItemsRatio, Buckets: d.MMBuckets, AudioMS: d.MMAudioMS, Images: d.MMLimit.Images, Videos: d.MMLimit.Videos,
		}
	},
}

// mediaFlags are the options of random_mm besides the options of random.
type mediaFlags struct {
	MMItems      int         `flag:"random-mm-base-items-per-request" default:"1" most:"1000" help:"random_mm: images and videos in a request"`
	MMItemsRatio float64     `flag:"random-mm-num-mm-items-range-ratio" help:"random_mm: relative variation of that number, up and down"`
	MMLimit      MediaLimits `flag:"random-mm-limit-mm-per-prompt" default:"{}" help:"random_mm: maximum images and videos in a request; a missing limit keeps its default"`
	MMBuckets    Buckets     `flag:"random-mm-bucket-config" default:"{(256,256,1):0.5,(720,1280,1):0.5,(720,1280,16):0.0}" help:"random_mm: sizes and their shares, as {(HEIGHT,WIDTH,FRAMES):SHARE,...}; one frame is an image, several are a video at 30 frames/s"`
	MMAudioMS    Length      `flag:"random-mm-audio-ms" help:"+ random_mm: milliseconds of audio in each request; openai-audio sends only this"`
	MMChat       bool        `flag:"enable-multimodal-chat" help:"accepted for compatibility; images and audio are sent in messages if the backend supports it"`
}

// MediaLimits are the maximum numbers of images and videos in a request, written as
// {"image": 255, "video": 1}. A missing limit keeps the default of the reference.
type MediaLimits struct{ Images, Videos int }

// maxItems limits the images and videos in one request.
const maxItems = 1000

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MediaLimits) UnmarshalText(b []byte) error {
	var given map[string]float64
	if err := json.Unmarshal(b, &given); err != nil {
		return fmt.Errorf(`not a JSON object like {"image": 3, "video": 1}: %w`, err)
	}
	out := MediaLimits{255, 1}
	for name, most := range given {
		limit := map[string]*int{"image": &out.Images, "video": &out.Videos}[name]
		if limit == nil || !(most >= 0 && most <= maxItems) || most != math.Trunc(most) {
			return fmt.Errorf("%s %v: set only image and video, to an integer of at most %d", name, most, maxItems)
		}
		*limit = int(most)
	}
	*m = out
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (m MediaLimits) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, `{"image":%d,"video":%d}`, m.Images, m.Videos), nil
}

// ImageOptions are the options for images, videos and audio of random_mm.
type ImageOptions struct {
	Base    int     // images and videos in a request
	Ratio   float64 // relative variation of Base, up and down
	Images  int     // maximum images in a request
	Videos  int     // maximum videos in a request
	Buckets Buckets
	AudioMS Length // milliseconds of audio in each request; 0 means none
}

// Buckets are sizes of images and videos with their weights, in vLLM's format {(256, 256,
// 1): 0.5, (720, 1280, 16): 0.5}: height, width and frames. An image has one frame.
type Buckets struct {
	shapes []shape
	text   string
}

// shape is one size and its weight.
type shape struct {
	size   image.Point
	frames int
	share  float64
}

func (s shape) isVideo() bool { return s.frames > 1 }

// MarshalText implements encoding.TextMarshaler.
func (b Buckets) MarshalText() ([]byte, error) { return []byte(b.text), nil }

var bucket = regexp.MustCompile(`^\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)\s*:\s*([0-9.eE+-]+)$`)

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Buckets) UnmarshalText(text []byte) error {
	out := Buckets{text: strings.TrimSpace(string(text))}
	inner := strings.TrimSuffix(strings.TrimPrefix(out.text, "{"), "}")
	for _, part := range splitBuckets(inner) {
		m := bucket.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return fmt.Errorf("%q: write {(HEIGHT,WIDTH,FRAMES): SHARE, ...}", part)
		}
		h, _ := strconv.Atoi(m[1])
		w, _ := strconv.Atoi(m[2])
		frames, _ := strconv.Atoi(m[3])
		share, err := strconv.ParseFloat(m[4], 64)
		switch {
		case err != nil || !(share >= 0) || h < 1 || w < 1 || h > maxSide || w > maxSide:
			return fmt.Errorf("%q: height and width must be from 1 to %d, and the share at least 0", part, maxSide)
		case frames < 1 || frames > maxFrames:
			return fmt.Errorf("%q: frames must be from 1 (an image) to %d", part, maxFrames)
		case share > 0:
			out.shapes = append(out.shapes, shape{image.Pt(w, h), frames, share})
		}
	}
	if len(out.shapes) == 0 {
		return errors.New("no size with a share above 0")
	}
	*b = out
	return nil
}

// Maximum side of an image in pixels, and maximum frames of a video.
const (
	maxSide   = 16_384
	maxFrames = 10_000
)

// splitBuckets splits at the commas outside parentheses.
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

// randomMedia adds images, videos and audio to the text of a drawn workload.
type randomMedia struct {
	Workload
	Options
}

func newRandomMM(ctx context.Context, o Options) (Workload, error) {
	i := &o.Images
	switch {
	case !o.Media && !o.Audio:
		return nil, errors.New("random_mm needs a backend that accepts images in messages, such as openai-chat")
	case !o.Media && silent(i.AudioMS):
		return nil, errors.New("random_mm: this backend accepts only audio; set its length with --random-mm-audio-ms 10000")
	case len(i.Buckets.shapes) == 0:
		return nil, errors.New("random_mm: no sizes; set --random-mm-bucket-config")
	case !(i.Ratio >= 0 && i.Ratio <= 1):
		return nil, fmt.Errorf("random_mm: range ratio %v must be from 0 to 1", i.Ratio)
	case i.Base < 0 || i.Images < 0 || i.Videos < 0:
		return nil, fmt.Errorf("random_mm: %d items, at most %d images and %d videos: none may be negative", i.Base, i.Images, i.Videos)
	}
	if low, high := i.items(); low > high {
		return nil, fmt.Errorf("random_mm: a request has at least %d items, but at most %d are allowed (--random-mm-limit-mm-per-prompt)", low, high)
	}
	o.IDs, o.Batch = !o.Media, 0 // the text is not sent, so ids are enough
	text, err := newRandom(ctx, o)
	if err != nil {
		return nil, err
	}
	return &randomMedia{text, o}, nil
}

func silent(ms Length) bool {
	n, constant := ms.Constant()
	return constant && n < 1
}

// Session implements tacho.Source.
func (w *randomMedia) Session(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Session(i)
	if err != nil {
		return s, err
	}
	return s, w.addMedia(&s.Turns[0].Request, i)
}

// Warmup implements Workload.
func (w *randomMedia) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Warmup(i)
	if err != nil {
		return s, err
	}
	return s, w.addMedia(&s.Turns[0].Request, warmupBase+i)
}

func (w *randomMedia) addMedia(q *tacho.Request, i uint64) error {
	rng := rngOf(w.Seed^0x70696374757265, i)
	q.InputTokens = 0 // token counts of images and audio come from the server
	if !w.Media {
		return setAudio(q, "", noiseWAV(rng, w.Images.AudioMS.Draw(rng, 1)), w.Options)
	}
	parts := []part{textPart(q.Input.Text)}
	for _, s := range w.Images.draw(rng) {
		var data []byte
		var err error
		if s.isVideo() {
			data, err = noiseVideo(rng, s.size, s.frames)
			parts = append(parts, part{Type: "video_url", Video: map[string]any{"url": dataURL("video/mp4", data)}})
		} else {
			data, err = noiseJPEG(rng, s.size)
			parts = append(parts, imagePart(dataURL("image/jpeg", data)))
		}
		if err != nil {
			return err
		}
	}
	if audio := noiseWAV(rng, w.Images.AudioMS.Draw(rng, 0)); audio != nil {
		parts, q.AudioS = append(parts, audioPart(audio)), audioSeconds(audio.Data)
	}
	m, err := userMessage(parts)
	q.Input = tacho.Input{Messages: []tacho.Message{m}}
	return err
}

// items returns the minimum and maximum number of items in a request. The maximum
// respects the limits of the media types that have a bucket.
func (o *ImageOptions) items() (low, high int) {
	allowed := 0
	if slices.ContainsFunc(o.Buckets.shapes, shape.isVideo) {
		allowed += o.Videos
	}
	if slices.ContainsFunc(o.Buckets.shapes, func(s shape) bool { return !s.isVideo() }) {
		allowed += o.Images
	}
	low = int(math.Floor(float64(o.Base) * (1 - o.Ratio)))
	return low, min(int(math.Ceil(float64(o.Base)*(1+o.Ratio))), allowed)
}

// draw returns the items of one request. It draws shapes by weight, skipping media types
// at their limit.
func (o *ImageOptions) draw(rng *rand.Rand) []shape {
	low, high := o.items()
	n := low + rng.IntN(high-low+1)
	left := map[bool]int{false: o.Images, true: o.Videos} // key: is a video
	var out []shape
	for range n {
		var open []shape
		var sums []float64
		sum := 0.0
		for _, s := range o.Buckets.shapes {
			if left[s.isVideo()] > 0 {
				sum += s.share
				open, sums = append(open, s), append(sums, sum)
			}
		}
		if len(open) == 0 {
			break
		}
		s := open[pick(sums, rng)]
		left[s.isVideo()]--
		out = append(out, s)
	}
	return out
}

// noiseJPEG returns a JPEG of random pixels.
func noiseJPEG(r *rand.Rand, size image.Point) ([]byte, error) {
	img := image.NewRGBA(image.Rectangle{Max: size})
	for i := 0; i < len(img.Pix); i += 4 {
		v := r.Uint32()
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = byte(v), byte(v>>8), byte(v>>16), 0xff
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, nil)
	return b.Bytes(), err
}
