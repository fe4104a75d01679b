// Package browser drives a headless Chromium, so that tests can look at a page
// as people do. It speaks the DevTools protocol over two pipes.
package browser

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// patience is how long an answer may take; pages of tests are small.
const patience = 60 * time.Second

// A Browser is a running Chromium.
type Browser struct {
	Downloads string // where it puts what pages save

	cmd   *exec.Cmd
	write *os.File
	home  string

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	watch   func(message) // is told every event
	ended   error
}

// A message is what is sent over the pipes, either way.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Event   json.RawMessage `json:"-"` // Params of what came
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a Chromium that keeps what it needs in a directory of its own. It
// ends with the context.
func Start(ctx context.Context) (*Browser, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w: install it with `make chromium`", err)
	}
	home, err := os.MkdirTemp("", "chromium-*")
	if err != nil {
		return nil, err
	}
	fromUs, write, err1 := os.Pipe()
	read, toUs, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	b := &Browser{Downloads: filepath.Join(home, "downloads"), write: write, home: home, waiting: map[int]chan message{}, watch: func(message) {}}
	b.cmd = exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(home, "profile"), "about:blank")
	b.cmd.ExtraFiles = []*os.File{fromUs, toUs} // 3 and 4, where it looks for them
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = fromUs.Close(), toUs.Close()
	go b.listen(read)
	return b, b.call("", "Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": b.Downloads}, nil)
}

// Close ends it.
func (b *Browser) Close() error {
	_ = b.call("", "Browser.close", nil, nil) // it may be gone before it answers
	_ = b.cmd.Wait()
	return errors.Join(b.write.Close(), os.RemoveAll(b.home))
}

// listen hands on what comes, until the pipe is closed.
func (b *Browser) listen(read *os.File) {
	in := bufio.NewReader(read)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.ended = fmt.Errorf("the browser is gone: %w", err)
			for id, to := range b.waiting {
				close(to)
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m message
		var raw struct {
			Params json.RawMessage `json:"params"`
		}
		text = bytes.TrimSuffix(text, []byte{0})
		if json.Unmarshal(text, &m) != nil || json.Unmarshal(text, &raw) != nil {
			continue
		}
		m.Event = raw.Params
		b.mu.Lock()
		to, watch := b.waiting[m.ID], b.watch
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		if to != nil {
			to <- m
		} else {
			watch(m)
		}
	}
}

// call asks for something and waits for the answer.
func (b *Browser) call(session, method string, params, result any) error {
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.last++
	id := b.last
	b.waiting[id] = answer
	b.mu.Unlock()
	text, err := json.Marshal(message{ID: id, Session: session, Method: method, Params: params})
	if err != nil {
		return err
	}
	if _, err := b.write.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return b.ended
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result != nil:
			return json.Unmarshal(m.Result, result)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer within %v", method, patience)
	}
}

// A Page is an open tab.
type Page struct {
	browser *Browser
	session string

	mu       sync.Mutex
	problems []string
	requests []string
}

// A View is how a page is looked at.
type View struct {
	Width, Height int
	Dark          bool
}

// Open opens an address in a tab, and waits until it is there.
func (b *Browser) Open(address string, v View) (*Page, error) {
	var target struct {
		ID string `json:"targetId"`
	}
	var attached struct {
		ID string `json:"sessionId"`
	}
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{browser: b, session: attached.ID}
	b.mu.Lock()
	b.watch = p.note
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		if err := p.call(domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	if err := p.Look(v); err != nil {
		return nil, err
	}
	if err := p.call("Page.navigate", map[string]any{"url": address}, nil); err != nil {
		return nil, err
	}
	return p, wait(address, func() error {
		loaded := false
		// While the old page goes there is nobody to ask.
		err := p.Eval("location.href !== 'about:blank' && document.readyState === 'complete'", &loaded)
		if !loaded {
			err = cmp.Or(err, errors.New("still loading"))
		}
		return err
	})
}

// wait asks for something again and again until it is there.
func wait(what string, ask func() error) (err error) {
	const pause = 10 * time.Millisecond
	for range patience / pause {
		if err = ask(); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("%s was not there within %v: %w", what, patience, err)
}

func (p *Page) call(method string, params, result any) error {
	return p.browser.call(p.session, method, params, result)
}

// Close closes the tab.
func (p *Page) Close() error { return p.call("Page.close", nil, nil) }

// Look changes the size and the theme.
func (p *Page) Look(v View) error {
	theme := "light"
	if v.Dark {
		theme = "dark"
	}
	return errors.Join(
		p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false}, nil),
		p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil))
}

// note keeps what a page must not do, and what it asked for.
func (p *Page) note(m message) {
	if m.Session != p.session {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
		p.problems = append(p.problems, string(m.Event))
	case "Network.requestWillBeSent":
		var e struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		_ = json.Unmarshal(m.Event, &e) // an empty address is a request too
		p.requests = append(p.requests, e.Request.URL)
	}
}

// Problems are the errors and console lines so far.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.problems)
}

// Requests are the addresses that were asked for, the page's own first.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Eval is the value of an expression in the page; promises are waited for.
func (p *Page) Eval(expression string, result any) error {
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Thrown *struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	switch {
	case err != nil:
		return err
	case out.Thrown != nil:
		return fmt.Errorf("%.200s: %s", expression, out.Thrown.Exception.Description)
	case result == nil:
		return nil
	}
	return json.Unmarshal(out.Result.Value, result)
}

// Key presses a key.
func (p *Page) Key(key string, shift bool) error {
	modifiers := 0
	if shift {
		modifiers = 8
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": key, "modifiers": modifiers}
		if key == "Tab" {
			event["windowsVirtualKeyCode"] = 9
		}
		if kind == "keyDown" && (len(key) == 1 || key == "Enter") {
			event["text"] = map[bool]string{true: "\r", false: key}[key == "Enter"]
		}
		if err := p.call("Input.dispatchKeyEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

// A Mouse is what the mouse does at a place: mouseMoved, mousePressed,
// mouseReleased or mouseWheel.
type Mouse struct {
	Kind  string
	X, Y  float64
	Wheel float64 // down
	Shift bool
}

// Mouse moves the mouse, and presses, releases or turns it.
func (p *Page) Mouse(m Mouse) error {
	event := map[string]any{"type": m.Kind, "x": m.X, "y": m.Y}
	switch m.Kind {
	case "mousePressed", "mouseReleased":
		event["button"], event["clickCount"] = "left", 1
	case "mouseWheel":
		event["deltaX"], event["deltaY"] = 0, m.Wheel
	}
	if m.Shift {
		event["modifiers"] = 8
	}
	return p.call("Input.dispatchMouseEvent", event, nil)
}

// Click clicks at a place.
func (p *Page) Click(x, y float64) error {
	return errors.Join(p.Mouse(Mouse{Kind: "mousePressed", X: x, Y: y}), p.Mouse(Mouse{Kind: "mouseReleased", X: x, Y: y}))
}

// Screenshot is a PNG of the whole page.
func (p *Page) Screenshot() ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &out)
	return out.Data, err
}

// Print is a PDF of the page.
func (p *Page) Print() ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := p.call("Page.printToPDF", map[string]any{"printBackground": true}, &out)
	return out.Data, err
}

// Downloaded is a file that the page saved.
func (b *Browser) Downloaded(name string) (text []byte, err error) {
	path := filepath.Join(b.Downloads, name)
	err = wait(name, func() error {
		text, err = os.ReadFile(path)
		return err
	})
	return text, errors.Join(err, os.Remove(path))
}
