package picture

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// A canvas is an image with lines and text.
type canvas struct {
	*image.RGBA

	faces map[face]font.Face
	fonts [2]*opentype.Font // regular, bold
}

// A face is a font in one size.
type face struct {
	px   float64
	bold bool
}

func newCanvas(width, height int) (*canvas, error) {
	c := &canvas{RGBA: image.NewRGBA(image.Rect(0, 0, width, height)), faces: map[face]font.Face{}}
	for i, ttf := range [][]byte{goregular.TTF, gobold.TTF} {
		parsed, err := opentype.Parse(ttf)
		if err != nil {
			return nil, err
		}
		c.fonts[i] = parsed
	}
	draw.Draw(c, c.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	return c, nil
}

// face returns the font of a size. The sizes are constants of this package, so there is
// no error.
func (c *canvas) face(f face) font.Face {
	if c.faces[f] == nil {
		kind := c.fonts[0]
		if f.bold {
			kind = c.fonts[1]
		}
		made, err := opentype.NewFace(kind, &opentype.FaceOptions{Size: f.px, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			panic(err)
		}
		c.faces[f] = made
	}
	return c.faces[f]
}

// width returns the width of a text in pixels.
func (c *canvas) width(f face, text string) float64 {
	return float64(font.MeasureString(c.face(f), text)) / 64
}

// text draws a text. Its left end is at x if align is 0, its middle if align is 0.5 and
// its right end if align is 1. y is the baseline.
func (c *canvas) text(x, y float64, f face, ink color.Color, align float64, text string) {
	x -= align * c.width(f, text)
	d := font.Drawer{Dst: c, Src: image.NewUniform(ink), Face: c.face(f), Dot: fixed.Point26_6{X: fixed.Int26_6(64 * x), Y: fixed.Int26_6(64 * y)}}
	d.DrawString(text)
}

// mostRunes is the maximum number of characters of a text from outside. No line of a
// picture has room for more.
const mostRunes = 600

// clipped shortens a text to a width.
func (c *canvas) clipped(f face, text string, most float64) string {
	if runes := []rune(text); len(runes) > mostRunes {
		text = string(runes[:mostRunes]) + "…"
	}
	if c.width(f, text) <= most {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && c.width(f, string(runes)+"…") > most {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// balanced breaks a text into at most lines lines of similar length.
func (c *canvas) balanced(f face, text string, most float64, lines int) []string {
	out := c.wrapped(f, text, most, lines)
	for narrow := most - 20; narrow > most/2; narrow -= 20 {
		next := c.wrapped(f, text, narrow, lines)
		if len(next) != len(out) || strings.HasSuffix(next[len(next)-1], "…") {
			break
		}
		out = next
	}
	return out
}

// wrapped breaks a text into at most lines lines. The last line is shortened.
func (c *canvas) wrapped(f face, text string, most float64, lines int) (out []string) {
	line := ""
	words := strings.Fields(text)
	for i, word := range words {
		next := strings.TrimSpace(line + " " + word)
		if line == "" || c.width(f, next) <= most {
			line = next
			continue
		}
		if len(out) == lines-1 {
			return append(out, c.clipped(f, strings.Join(append([]string{line}, words[i:]...), " "), most))
		}
		out, line = append(out, c.clipped(f, line, most)), word
	}
	return append(out, c.clipped(f, line, most))
}

// fill fills a polygon. It rasterizes only the rectangle around the polygon.
func (c *canvas) fill(ink color.Color, points ...[2]float64) {
	box := image.Rectangle{Min: image.Pt(width, height)}
	for _, p := range points {
		box.Min = image.Pt(min(box.Min.X, int(math.Floor(p[0]))), min(box.Min.Y, int(math.Floor(p[1]))))
		box.Max = image.Pt(max(box.Max.X, int(math.Ceil(p[0]))), max(box.Max.Y, int(math.Ceil(p[1]))))
	}
	box = box.Intersect(c.Bounds())
	if box.Empty() {
		return
	}
	r := vector.NewRasterizer(box.Dx(), box.Dy())
	for i, p := range points {
		x, y := float32(p[0]-float64(box.Min.X)), float32(p[1]-float64(box.Min.Y))
		if i == 0 {
			r.MoveTo(x, y)
		} else {
			r.LineTo(x, y)
		}
	}
	r.ClosePath()
	r.Draw(c, box, image.NewUniform(ink), image.Point{})
}

func (c *canvas) rect(x, y, w, h float64, ink color.Color) {
	c.fill(ink, [2]float64{x, y}, [2]float64{x + w, y}, [2]float64{x + w, y + h}, [2]float64{x, y + h})
}

// line draws a straight line.
func (c *canvas) line(a, b [2]float64, width float64, ink color.Color) {
	dx, dy := b[0]-a[0], b[1]-a[1]
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	nx, ny := -dy/length*width/2, dx/length*width/2
	c.fill(ink, [2]float64{a[0] + nx, a[1] + ny}, [2]float64{b[0] + nx, b[1] + ny}, [2]float64{b[0] - nx, b[1] - ny}, [2]float64{a[0] - nx, a[1] - ny})
}

// path draws lines between points. dash is the length of dashes and gaps; 0 means solid.
func (c *canvas) path(points [][2]float64, width, dash float64, ink color.Color) {
	at := 0.0 // length of the path so far
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		length := math.Hypot(b[0]-a[0], b[1]-a[1])
		if dash == 0 || length == 0 {
			c.line(a, b, width, ink)
			continue
		}
		on := func(from float64) [2]float64 {
			return [2]float64{a[0] + (b[0]-a[0])*from/length, a[1] + (b[1]-a[1])*from/length}
		}
		for from := 0.0; from < length; {
			phase := math.Mod(at+from, 2*dash)
			to := min(length, from+dash-math.Mod(phase, dash)+1e-6)
			if phase < dash {
				c.line(on(from), on(to), width, ink)
			}
			from = to
		}
		at += length
	}
}

// dot draws a disc.
func (c *canvas) dot(x, y, radius float64, ink color.Color) {
	const corners = 32
	points := make([][2]float64, corners)
	for i := range points {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		points[i] = [2]float64{x + radius*cos, y + radius*sin}
	}
	c.fill(ink, points...)
}
