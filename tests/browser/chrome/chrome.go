// Package chrome drives a headless Chromium with chromedp for tests of web pages.
package chrome

import (
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

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout limits every operation, so that a broken page fails a test instead of blocking
// it.
const timeout = 3 * time.Minute

// Browser is a running Chromium.
type Browser struct {
	Downloads string // download directory

	ctx      context.Context // chromedp context; canceling it ends the browser
	home     string
	unparsed list // events chromedp could not parse
}

// list is a string list for concurrent use.
type list struct {
	mu    sync.Mutex
	texts []string
}

func (l *list) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, fmt.Sprintf(format, args...))
}

func (l *list) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.texts)
}

// flags are the Chromium flags. Background pages keep their timers and frames, and
// Chromium starts no background work, because both would change the timing of a page.
var flags = []string{
	"headless", "no-sandbox", "disable-gpu", "hide-scrollbars", "disable-dev-shm-usage",
	"disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",
	"no-first-run", "disable-background-networking", "disable-component-update", "disable-default-apps", "disable-extensions", "disable-sync",
}

// Start starts a Chromium with its own profile directory. It ends with the context.
func Start(ctx context.Context) (*Browser, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w: install it with `make chromium`", err)
	}
	home, err := os.MkdirTemp("", "chromium-*")
	if err != nil {
		return nil, err
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.WSURLReadTimeout(timeout)}
	for _, f := range flags {
		options = append(options, chromedp.Flag(f, true))
	}
	b := &Browser{Downloads: filepath.Join(home, "downloads"), home: home}
	ctx, _ = chromedp.NewExecAllocator(ctx, options...)                      //nolint:govet // Close ends the context
	b.ctx, _ = chromedp.NewContext(ctx, chromedp.WithErrorf(b.unparsed.add)) //nolint:govet // Close ends the context
	if err := chromedp.Run(b.ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	late, stop := context.WithTimeout(b.ctx, timeout)
	defer stop()
	return b, chromedp.FromContext(b.ctx).Browser.Execute(late, "Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": b.Downloads}, nil)
}

// Close ends the browser.
func (b *Browser) Close() error {
	late, stop := context.WithTimeout(b.ctx, timeout)
	defer stop()
	return errors.Join(chromedp.Cancel(late), os.RemoveAll(b.home))
}

// Page is an open tab.
type Page struct {
	browser *Browser
	ctx     context.Context // chromedp context; canceling it closes the tab

	problems, requests list
}

// View is a window size and theme.
type View struct {
	Width, Height int
	Dark          bool
}

// Open opens an address in a tab and waits until the page is complete.
func (b *Browser) Open(address string, v View) (*Page, error) {
	p := &Page{browser: b}
	p.ctx, _ = chromedp.NewContext(b.ctx) //nolint:govet // Close ends the context
	chromedp.ListenTarget(p.ctx, p.note)
	if err := chromedp.Run(p.ctx); err != nil { // opens the tab and enables events
		return nil, err
	}
	// A page in the background draws no frames, and the mouse wheel waits for a frame.
	// chromedp tracks all DOM changes, which only its own selectors need.
	for _, method := range []string{"Page.bringToFront", "CSS.disable", "DOM.disable"} {
		if err := p.call(method, nil, nil); err != nil {
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

// wait retries until f succeeds or the timeout expires.
func wait(name string, f func() error) error {
	ended := time.After(timeout)
	for {
		err := f()
		if err == nil || errors.Is(err, context.Canceled) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ended:
			return fmt.Errorf("%s: not within %v: %w", name, timeout, err)
		}
	}
}

// Wait waits until an expression is true in the page. An expression that throws counts as
// false, because its element may not exist yet.
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
	late, stop := context.WithTimeout(p.ctx, timeout)
	defer stop()
	if err := chromedp.FromContext(p.ctx).Target.Execute(late, method, params, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Close closes the tab.
func (p *Page) Close() error { return chromedp.Cancel(p.ctx) }

// Look changes the window size and the theme.
func (p *Page) Look(v View) error {
	theme := "light"
	if v.Dark {
		theme = "dark"
	}
	return errors.Join(
		p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false}, nil),
		p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil))
}

// note records errors, console output and requests of the page. chromedp calls note
// before it delivers any later reply.
func (p *Page) note(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems.add("%s", e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		text, _ := json.Marshal(e.Args) // an empty message counts as well
		p.problems.add("console.%s: %s", e.Type, text)
	case *log.EventEntryAdded:
		p.problems.add("%s: %s", e.Entry.URL, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.requests.add("%s", e.Request.URL)
	}
}

// Problems returns the errors and console lines so far. It includes events chromedp could
// not parse, because they may be errors.
func (p *Page) Problems() []string { return slices.Concat(p.problems.all(), p.browser.unparsed.all()) }

// Requests returns the requested URLs, starting with the page itself.
func (p *Page) Requests() []string { return p.requests.all() }

// Eval evaluates an expression in the page and waits for promises.
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

// Mouse is a mouse event: mouseMoved, mousePressed, mouseReleased or mouseWheel.
type Mouse struct {
	Kind  string
	X, Y  float64
	Wheel float64 // distance down
	Shift bool
	Held  bool // the left button is pressed during a movement
}

// Mouse sends a mouse event.
func (p *Page) Mouse(m Mouse) error {
	event := map[string]any{"type": m.Kind, "x": m.X, "y": m.Y}
	switch m.Kind {
	case "mousePressed", "mouseReleased":
		event["button"], event["clickCount"] = "left", 1
	case "mouseWheel":
		event["deltaX"], event["deltaY"] = 0, m.Wheel
	}
	if m.Held {
		event["button"], event["buttons"] = "left", 1
	}
	if m.Shift {
		event["modifiers"] = 8
	}
	return p.call("Input.dispatchMouseEvent", event, nil)
}

// Click clicks at a position.
func (p *Page) Click(x, y float64) error {
	return errors.Join(p.Mouse(Mouse{Kind: "mousePressed", X: x, Y: y}), p.Mouse(Mouse{Kind: "mouseReleased", X: x, Y: y}))
}

// middle returns the center of an element in the window. It returns null if the element
// is missing, empty, disabled or covered by another element.
const middle = `((selector) => {
	const e = document.querySelector(selector);
	if (!e || e.disabled) return null;
	e.scrollIntoView({ block: 'center' });
	const b = e.getBoundingClientRect(), x = b.x + b.width / 2, y = b.y + b.height / 2;
	return b.width && e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})(%q)`

// ClickOn clicks the first element that matches a selector as soon as it is clickable. It
// retries until the page has seen the click, because the page may replace the element
// between press and release.
func (p *Page) ClickOn(selector string) error {
	listen := fmt.Sprintf(`window.clicked = false; document.addEventListener('click', (e) => { window.clicked = !!e.target.closest(%q) }, { capture: true, once: true }); 0`, selector)
	var failed error
	err := wait("a click on "+selector, func() error {
		if failed = p.Wait(fmt.Sprintf(middle, selector)); failed != nil {
			return nil //nolint:nilerr // ends the wait; failed holds the error
		}
		var at *[2]float64
		if failed = p.Eval(fmt.Sprintf(middle, selector), &at); failed != nil {
			return nil //nolint:nilerr // ends the wait; failed holds the error
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

// Screenshot returns a PNG of the complete page.
func (p *Page) Screenshot() ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &out)
	return out.Data, err
}

// Print returns a PDF of the page.
func (p *Page) Print() ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := p.call("Page.printToPDF", map[string]any{"printBackground": true}, &out)
	return out.Data, err
}

// Downloaded returns a file saved by the page. Chromium renames a download to its final
// name when it is complete.
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
