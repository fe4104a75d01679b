// Package picture draws the summary of runs as a PNG for chats and slides: the
// conclusion, its three numbers and one chart. It needs no browser, and draws the same
// bytes for the same runs.
package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// The size of a picture fits a slide of 16:9.
const (
	width  = 1600
	height = 900
	margin = 56
)

// mostRuns is the maximum number of runs with a sentence and a line of their own.
const mostRuns = 4

// The colours are the light theme of the page.
var (
	paper = rgb(0xfdfdfb)
	ink   = rgb(0x1a1d21)
	soft  = rgb(0x5a626b)
	faint = rgb(0xe3e4e0)
	limit = rgb(0xb3123f)
	runs  = [mostRuns]color.RGBA{rgb(0x1c5d9f), rgb(0x96660f), rgb(0x8a2f6d), rgb(0x3f7130)}

	tail = rgb(0x8a2f6d) // p99 in the chart of one run

	verdicts = map[metric.Severity]color.RGBA{metric.Valid: rgb(0x0a6b5d), metric.Degraded: rgb(0x8a5a00), metric.Invalid: limit}
)

func rgb(v uint32) color.RGBA {
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}
}

// Write writes the picture of runs.
func Write(w io.Writer, all []outcome.Run) error {
	c, err := newCanvas(width, height)
	if err != nil {
		return err
	}
	p := painter{canvas: c, y: margin}
	for i := range all[:min(len(all), mostRuns)] {
		p.runs = append(p.runs, summary{run: &all[i], conclusion: conclusion.Of(&all[i])})
	}
	p.header(len(all))
	p.numbers()
	p.chart()
	p.footer()
	return encode(w, c, p.description())
}

// description is the text of the picture for programs and screen readers.
func (p *painter) description() string {
	var out []string
	for i := range p.runs {
		s := &p.runs[i]
		out = append(out, s.name()+" ("+string(s.conclusion.Verdict)+"): "+sanitize.Line(strings.Join(s.conclusion.Text, " ")))
	}
	return strings.Join(out, "\n")
}

// A PNG begins with a signature of 8 bytes and an IHDR chunk of 25.
const afterHeader = 33

// encode writes an image as PNG with a description.
func encode(w io.Writer, img image.Image, description string) error {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return err
	}
	text := []byte("iTXtDescription\x00\x00\x00\x00\x00" + description)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)-4)) //nolint:gosec // a few kilobytes
	chunk = binary.BigEndian.AppendUint32(append(chunk, text...), crc32.ChecksumIEEE(text))
	_, err := w.Write(slices.Insert(b.Bytes(), afterHeader, chunk...))
	return err
}

// A summary is a run with its conclusion.
type summary struct {
	run        *outcome.Run
	conclusion conclusion.Conclusion
}

// name returns what a run is called in the picture.
func (s *summary) name() string {
	var words []string
	for _, word := range []string{s.run.Model, s.run.Label} {
		if word != "" {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		words = append(words, s.run.Name)
	}
	text := []rune(sanitize.Line(strings.Join(words, " · ")))
	return string(text[:min(len(text), mostRunes)])
}

// A painter draws a picture from top to bottom.
type painter struct {
	*canvas

	runs []summary
	y    float64 // the first free line
	left float64 // left edge of the chart
}

// header draws the name, the verdict and the sentence of each run.
func (p *painter) header(all int) {
	if len(p.runs) == 0 {
		p.text(margin, margin+40, face{34, true}, ink, 0, "Nothing was measured.")
		return
	}
	size, lines := 34.0, 3
	if len(p.runs) > 1 {
		size, lines = 22, 2
	}
	for i := range p.runs {
		s := &p.runs[i]
		badge := string(s.conclusion.Verdict)
		name := p.clipped(face{20, true}, s.name(), width-2*margin-220)
		x := float64(margin)
		if len(p.runs) > 1 {
			p.rect(x, p.y+4, 16, 16, runs[i])
			x += 26
		}
		p.text(x, p.y+18, face{20, true}, ink, 0, name)
		shade, known := verdicts[s.conclusion.Verdict]
		if !known {
			shade = soft
		}
		p.text(x+p.width(face{20, true}, name)+20, p.y+18, face{18, true}, shade, 0, badge)
		p.y += 26 + 0.5*size
		for _, line := range p.balanced(face{size, len(p.runs) == 1}, sanitize.Line(s.conclusion.Headline.Sentence), width-2*margin, lines) {
			p.text(margin, p.y+size, face{size, len(p.runs) == 1}, ink, 0, line)
			p.y += 1.3 * size
		}
		if more := s.conclusion.Text[1:]; len(p.runs) == 1 && len(more) > 0 {
			p.text(margin, p.y+24, face{22, false}, soft, 0, p.clipped(face{22, false}, sanitize.Line(strings.Join(more, " ")), width-2*margin))
			p.y += 32
		}
		p.y += 14
	}
	if all > len(p.runs) {
		p.text(margin, p.y+14, face{16, false}, soft, 0, "More runs are in the report.")
		p.y += 24
	}
	p.y += 24
}

// numbers draws the three numbers of one run beside the chart.
func (p *painter) numbers() {
	p.left = margin
	if len(p.runs) != 1 {
		return
	}
	y := p.y
	for _, n := range p.runs[0].conclusion.Headline.Numbers() {
		p.left = margin + 330
		p.text(margin, y+18, face{20, false}, soft, 0, n.Label)
		p.text(margin, y+80, face{64, true}, ink, 0, p.clipped(face{64, true}, n.Value, 300))
		p.text(margin, y+108, face{20, false}, soft, 0, n.Unit)
		y += 148
	}
}

// footer draws the facts of the first run.
func (p *painter) footer() {
	if len(p.runs) == 0 {
		return
	}
	about := &p.runs[0].run.About
	began := ""
	if !about.Began.IsZero() {
		began = about.Began.UTC().Format("2006-01-02 15:04 UTC")
	}
	facts := []string{about.Backend, about.GPUs, about.Dataset, began, strings.TrimSpace(about.Tool + " " + about.Version)}
	if len(p.runs) > 1 {
		facts = facts[3:]
	}
	var known []string
	for _, fact := range facts {
		if fact != "" {
			known = append(known, sanitize.Line(fact))
		}
	}
	p.text(margin, height-24, face{16, false}, soft, 0, p.clipped(face{16, false}, strings.Join(known, " · "), width-2*margin))
}
