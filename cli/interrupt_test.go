package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"tacho/cli"
)

// Ctrl-C while a server is asked what it serves is Ctrl-C, and no server that
// cannot be reached.
func TestInterruptedWhileAsking(t *testing.T) {
	t.Chdir(t.TempDir())
	interrupt := make(chan os.Signal, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case interrupt <- os.Interrupt:
		default:
		}
		<-r.Context().Done()
	}))
	defer srv.Close()
	var out, errs strings.Builder
	code := cli.Main(&cli.Env{
		Args: []string{"bench", "--base-url", srv.URL}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(int) { t.Error("killed") },
	})
	if code != 130 || strings.Contains(errs.String(), "reach") || strings.Contains(errs.String(), "canceled") || strings.Contains(errs.String(), "kept") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

// Ctrl-C ends what only computes, too.
func TestInterruptedWhileComputing(t *testing.T) {
	errs := &interrupter{signals: make(chan os.Signal, 1)}
	var out strings.Builder
	code := cli.Main(&cli.Env{
		Args: []string{"fit", "--check"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: errs,
		Getenv: func(string) string { return "" }, Interrupt: errs.signals, Kill: func(int) { t.Error("killed") },
	})
	if said := errs.String(); code != 130 || out.Len() > 0 || !strings.HasSuffix(said, "tacho: stopped before it was done\n") {
		t.Errorf("exit code %d: %s%s", code, said, out.String())
	}
}

// An interrupter is somebody who presses Ctrl-C as soon as anything is said.
type interrupter struct {
	signals chan os.Signal
	lock    sync.Mutex
	said    strings.Builder
}

func (i *interrupter) Write(b []byte) (int, error) {
	select {
	case i.signals <- os.Interrupt:
	default:
	}
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.said.Write(b)
}

func (i *interrupter) String() string {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.said.String()
}
