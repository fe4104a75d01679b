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

	"tacho"
)

var randomMM = Kind{
	Name: "random_mm", Doc: "random text with images and videos of noise, of sizes drawn from --random-mm-bucket-config, and audio of --random-mm-audio-ms; a backend that takes only audio gets only that",
	Endless: true, Scenarios: true, New: newRandomMM,
	options: func(d *Dataset, o *Options) {
		d.randomFlags.options(o)
		o.Images = ImageOptions{
			Base: d.MMItems, Ratio: d.MMItemsRatio, Buckets: d.MMBuckets, AudioMS: d.MMAudioMS, Images: d.MMLimit.Images, Videos: d.MMLimit.Videos,
		}
	},
}

// mediaFlags are the options of random_mm besides those of random.
type mediaFlags struct {
	MMItems      int         `flag:"random-mm-base-items-per-request" default:"1" most:"1000" help:"random_mm: images and videos in a request"`
	MMItemsRatio float64     `flag:"random-mm-num-mm-items-range-ratio" help:"random_mm: their number varies by this share up and down"`
	MMLimit      MediaLimits `flag:"random-mm-limit-mm-per-prompt" default:"{}" help:"random_mm: most images and most videos in a request; a kind not named keeps its default"`
	MMBuckets    Buckets     `flag:"random-mm-bucket-config" default:"{(256,256,1):0.5,(720,1280,1):0.5,(720,1280,16):0.0}" help:"random_mm: sizes and their shares, as {(HEIGHT,WIDTH,FRAMES):SHARE,...}; one frame is an image, more are a video of 30 a second"`
	MMAudioMS    Length      `flag:"random-mm-audio-ms" help:"+ random_mm: milliseconds of audio in each request; openai-audio sends only this"`
	MMChat       bool        `flag:"enable-multimodal-chat" help:"accepted for compatibility; images and audio go into messages if the backend supports it"`
}

// MediaLimits are the most images and the most videos in a request, written as
// {"image": 255, "video": 1}. What is not named keeps its default, which is the
// reference's.
type MediaLimits struct{ Images, Videos int }

// mostItems bounds the images and videos in one request.
const mostItems = 1000

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MediaLimits) UnmarshalText(b []byte) error {
	var given map[string]float64
	if err := json.Unmarshal(b, &given); err != nil {
		return fmt.Errorf(`not a JSON object like {"image": 3, "video": 1}: %w`, err)
	}
	out := MediaLimits{255, 1}
	for name, most := range given {
		limit := map[string]*int{"image": &out.Images, "video": &out.Videos}[name]
		if limit == nil || !(most >= 0 && most <= mostItems) || most != math.Trunc(most) {
			return fmt.Errorf("%s: %v: image and video can be limited, to a whole number of at most %d", name, most, mostItems)
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

// ImageOptions are the images, videos and audio of random_mm.
type ImageOptions struct {
	Base    int     // images and videos in a request
	Ratio   float64 // how far that varies, up and down
	Images  int     // most images in a request
	Videos  int     // most videos in a request
	Buckets Buckets
	AudioMS Length // milliseconds of a sound in each request; 0 is none
}

// Buckets are sizes of images and videos, each with its share. They are written
// as vLLM writes them, {(256, 256, 1): 0.5, (720, 1280, 16): 0.5}: height, width
// and frames, of which an image has one.
type Buckets struct {
	shapes []shape
	text   string
}

// A shape is one size and its share.
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
			return fmt.Errorf("%q: sides are from 1 to %d, and a share is 0 or more", part, maxSide)
		case frames < 1 || frames > maxFrames:
			return fmt.Errorf("%q: frames are from 1, an image, to %d", part, maxFrames)
		case share > 0:
			out.shapes = append(out.shapes, shape{image.Pt(w, h), frames, share})
		}
	}
	if len(out.shapes) == 0 {
		return errors.New("no size has a share above 0")
	}
	*b = out
	return nil
}

// What bounds the side of an image and the length of a video.
const (
	maxSide   = 16_384
	maxFrames = 10_000
)

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

// randomPictures adds images, videos and audio to the text of a drawn
// workload.
type randomPictures struct {
	Workload
	Options
}

func newRandomMM(ctx context.Context, o Options) (Workload, error) {
	i := &o.Images
	switch {
	case !o.Media && !o.Audio:
		return nil, errors.New("random_mm: images need a backend that takes messages with images in them, such as openai-chat")
	case !o.Media && silent(i.AudioMS):
		return nil, errors.New("random_mm: this backend takes sound alone: say how much with --random-mm-audio-ms 10000")
	case len(i.Buckets.shapes) == 0:
		return nil, errors.New("random_mm: no sizes: give --random-mm-bucket-config")
	case !(i.Ratio >= 0 && i.Ratio <= 1):
		return nil, fmt.Errorf("random_mm: range ratio %v must be from 0 to 1", i.Ratio)
	case i.Base < 0 || i.Images < 0 || i.Videos < 0:
		return nil, fmt.Errorf("random_mm: %d items, at most %d images and %d videos: none may be negative", i.Base, i.Images, i.Videos)
	}
	if low, high := i.items(); low > high {
		return nil, fmt.Errorf("random_mm: at least %d items in a request, and at most %d are allowed (--random-mm-limit-mm-per-prompt)", low, high)
	}
	o.IDs, o.Batch = !o.Media, 0 // a text that is not sent need not be made
	text, err := newRandom(ctx, o)
	if err != nil {
		return nil, err
	}
	return &randomPictures{text, o}, nil
}

func silent(ms Length) bool {
	n, constant := ms.Constant()
	return constant && n < 1
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
	q.InputTokens = 0 // token counts of images and audio come from the server
	if !w.Media {
		return setSound(q, "", hiss(rng, w.Images.AudioMS.Draw(rng, 1)), w.Options)
	}
	parts := []part{textPart(q.Input.Text)}
	for _, s := range w.Images.draw(rng) {
		var data []byte
		var err error
		if s.isVideo() {
			data, err = noiseVideo(rng, s.size, s.frames)
			parts = append(parts, videoPart(dataURL("video/mp4", data)))
		} else {
			data, err = noise(rng, s.size)
			parts = append(parts, imagePart(dataURL("image/jpeg", data)))
		}
		if err != nil {
			return err
		}
	}
	if sound := hiss(rng, w.Images.AudioMS.Draw(rng, 0)); sound != nil {
		parts, q.AudioS = append(parts, soundPart(sound)), soundSeconds(sound.Data)
	}
	m, err := userMessage(parts)
	q.Input = tacho.Input{Messages: []tacho.Message{m}}
	return err
}

// items are how many there may be in a request, at least and at most: no more
// than are allowed of the sorts that there are sizes for.
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

// draw is what one request has: so many items, of shapes by their shares as
// long as there may be more of their sort.
func (o *ImageOptions) draw(rng *rand.Rand) []shape {
	low, high := o.items()
	n := low + rng.IntN(high-low+1)
	left := map[bool]int{false: o.Images, true: o.Videos} // by whether it is a video
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

// noise is a JPEG of random pixels.
func noise(r *rand.Rand, size image.Point) ([]byte, error) {
	img := image.NewRGBA(image.Rectangle{Max: size})
	for i := 0; i < len(img.Pix); i += 4 {
		v := r.Uint32()
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = byte(v), byte(v>>8), byte(v>>16), 0xff
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, nil)
	return b.Bytes(), err
}
