// Package browser drives a headless Chromium, so that tests can look at a page
// as people do. It speaks the DevTools protocol over two pipes.
package browser

import (
	"bufio"
	"bytes"
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

// patience bounds how long anything may take, so that a broken page fails a test
// instead of blocking it. Nothing else depends on it.
const patience = 3 * time.Minute

// errGone is why nothing more can be asked.
var errGone = errors.New("the browser is gone")

// A Browser is a running Chromium.
type Browser struct {
	Downloads string // where it puts what pages save

	cmd   *exec.Cmd
	write *os.File
	home  string

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	pages   map[string]*Page // by their sessions
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

// flags are those of Chromium. Pages behind others keep their timers and frames, and
// Chromium does nothing on its own account, because both would change how long a
// page takes.
var flags = []string{
	"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--disable-dev-shm-usage",
	"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
	"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-sync",
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
	b := &Browser{Downloads: filepath.Join(home, "downloads"), write: write, home: home, waiting: map[int]chan message{}, pages: map[string]*Page{}}
	b.cmd = exec.CommandContext(ctx, program, append(slices.Clone(flags), "--user-data-dir="+filepath.Join(home, "profile"), "about:blank")...)
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
	late := time.AfterFunc(patience, func() { _ = b.cmd.Process.Kill() })
	defer late.Stop()
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
			b.ended = fmt.Errorf("%w: %w", errGone, err)
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
		to, page := b.waiting[m.ID], b.pages[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case to != nil:
			to <- m
		case page != nil:
			page.note(m)
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
	b.pages[p.session] = p
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
	return p, p.Wait("location.href !== 'about:blank' && document.readyState === 'complete'")
}

// wait asks for something again and again until it is there.
func wait(what string, ask func() error) error {
	ended := time.After(patience)
	for {
		err := ask()
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ended:
			return fmt.Errorf("%s: not within %v: %w", what, patience, err)
		}
	}
}

// Wait waits until an expression is true in the page. An expression that throws is
// not true yet: the element that it asks about may still be missing.
func (p *Page) Wait(condition string) error {
	return wait(condition, func() error {
		holds := false
		if err := p.Eval("!!("+condition+")", &holds); err != nil {
			return err
		}
		if !holds {
			return errors.New("it is false")
		}
		return nil
	})
}

func (p *Page) call(method string, params, result any) error {
	return p.browser.call(p.session, method, params, result)
}

// Close closes the tab.
func (p *Page) Close() error {
	err := p.call("Page.close", nil, nil)
	p.browser.mu.Lock()
	delete(p.browser.pages, p.session)
	p.browser.mu.Unlock()
	return err
}

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

// middle is the middle of an element in the window; null while it cannot be clicked,
// because it is missing, has no size, is disabled or is behind another.
const middle = `((selector) => {
	const e = document.querySelector(selector);
	if (!e || e.disabled) return null;
	e.scrollIntoView({ block: 'center' });
	const b = e.getBoundingClientRect(), x = b.x + b.width / 2, y = b.y + b.height / 2;
	return b.width && e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})(%q)`

// ClickOn clicks on the first element that a selector finds, as soon as it can be
// clicked. It returns when the element has been clicked once: if the page replaced
// the element between press and release, the page saw no click, and the next try is
// the first.
func (p *Page) ClickOn(selector string) error {
	listen := fmt.Sprintf(`window.clicked = false; document.addEventListener('click', (e) => { window.clicked = !!e.target.closest(%q) }, { capture: true, once: true }); 0`, selector)
	var failed error
	err := wait("a click on "+selector, func() error {
		if failed = p.Wait(fmt.Sprintf(middle, selector)); failed != nil {
			return nil //nolint:nilerr // it ends the wait, and failed says why
		}
		var at *[2]float64
		if failed = p.Eval(fmt.Sprintf(middle, selector), &at); failed != nil {
			return nil //nolint:nilerr // likewise
		}
		if at == nil {
			return errors.New("it cannot be clicked any more")
		}
		clicked := false
		failed = errors.Join(p.Eval(listen, nil), p.Click(at[0], at[1]), p.Eval("window.clicked", &clicked))
		if failed == nil && !clicked {
			return errors.New("the page has seen no click")
		}
		return nil
	})
	return errors.Join(err, failed)
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

// Downloaded is a file that the page saved. Chromium gives a file its name when all
// of it is there.
func (b *Browser) Downloaded(name string) (text []byte, err error) {
	path := filepath.Join(b.Downloads, name)
	err = wait(name, func() error {
		if text, err = os.ReadFile(path); err == nil && len(text) == 0 {
			return errors.New("it is empty: Chromium holds the name until it moves the whole file there")
		}
		return err
	})
	return text, errors.Join(err, os.Remove(path))
}
