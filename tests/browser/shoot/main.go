// Command shoot takes pictures of a page, from disk or by its address, as people see it on a desk and on a
// telephone, in light and in dark:
//
//	shoot runs/NAME/report.html pictures/name
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tacho/tests/browser/chrome"
)

var views = map[string]chrome.View{
	"light": {Width: 1600, Height: 900}, "dark": {Width: 1600, Height: 900, Dark: true},
	"narrow": {Width: 390, Height: 844}, "narrow-dark": {Width: 390, Height: 844, Dark: true},
}

func main() {
	err := errors.New("usage: shoot PAGE.html PREFIX")
	if len(os.Args) == 3 {
		err = shoot(os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shoot(page, prefix string) (err error) {
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
		if err := p.Eval("new Promise((done) => setTimeout(done, 1000))", nil); err != nil { // what a server sends later
			return err
		}
		picture, err := p.Screenshot()
		if err != nil {
			return err
		}
		if err := os.WriteFile(fmt.Sprintf("%s-%s.png", prefix, name), picture, 0o600); err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}
