// Command shoot takes screenshots of a page, from a file or a URL, on desktop and phone,
// in light and dark:
//
//	shoot runs/NAME/report.html pictures/name [SCRIPT]
//
// The script runs in the page before each screenshot, for example to choose a view.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

var views = map[string]chrome.View{
	"light": {Width: 1400, Height: 900}, "dark": {Width: 1400, Height: 900, Dark: true},
	"narrow": {Width: 390, Height: 844}, "narrow-dark": {Width: 390, Height: 844, Dark: true},
}

func main() {
	err := errors.New("usage: shoot PAGE.html PREFIX [SCRIPT]")
	switch len(os.Args) {
	case 3:
		err = shoot(os.Args[1], os.Args[2], "0")
	case 4:
		err = shoot(os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shoot(page, prefix, script string) (err error) {
	if !strings.Contains(page, "://") {
		path, err := filepath.Abs(page)
		if err != nil {
			return err
		}
		page = "file://" + path
	}
	if err := os.MkdirAll(filepath.Dir(prefix), 0o755); err != nil {
		return err
	}
	b, err := chrome.Start(context.Background())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for name, view := range views {
		p, err := b.Open(page, view)
		if err != nil {
			return err
		}
		// The address that tacho ui prints has a token, and loads the page without it.
		if err := p.Wait("!location.search && document.readyState === 'complete'"); err != nil {
			return err
		}
		if err := p.Eval("new Promise((done) => setTimeout(done, 1000))", nil); err != nil { // wait for data a server sends later
			return err
		}
		// The script may return a promise, which is awaited.
		for _, code := range []string{script, "new Promise((done) => setTimeout(done, 1000))"} {
			if err := p.Eval(code, nil); err != nil {
				return err
			}
		}
		picture, err := p.Screenshot()
		if err != nil {
			return err
		}
		if err := os.WriteFile(fmt.Sprintf("%s-%s.png", prefix, name), picture, 0o600); err != nil {
			return err
		}
		if name == "light" {
			if err := writeScreen(prefix+"-screen.png", picture, view); err != nil {
				return err
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeScreen writes the upper part of a picture that a view shows without scrolling.
func writeScreen(path string, picture []byte, v chrome.View) error {
	whole, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	screen := image.NewRGBA(image.Rect(0, 0, v.Width, v.Height))
	draw.Draw(screen, screen.Bounds(), whole, image.Point{}, draw.Src)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, screen), f.Close())
}
