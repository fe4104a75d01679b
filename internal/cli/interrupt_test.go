package cli_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// Ctrl-C during the detection of a server is reported as Ctrl-C, not as an
// unreachable server.
func TestInterruptedWhileAsking(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		interrupt := make(chan os.Signal, 1)
		press := sync.OnceFunc(func() { interrupt <- os.Interrupt }) // a second signal would exit the process
		srv := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			press()
			<-r.Context().Done()
		}))
		defer srv.Close()
		var out, errs strings.Builder
		code := cli.Main(&cli.Env{
			Args: []string{"bench", "--base-url", srv.URL}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Network: &network,
			Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(int) { t.Error("killed") },
		})
		if code != 130 || strings.Contains(errs.String(), "reach") || strings.Contains(errs.String(), "canceled") || strings.Contains(errs.String(), "kept") {
			t.Errorf("exit code %d: %s", code, errs.String())
		}
	})
}

// Ctrl-C also stops commands that only compute.
func TestInterruptedWhileComputing(t *testing.T) {
	interrupt := make(chan os.Signal, 1)
	errs := &notifier{written: sync.OnceFunc(func() { interrupt <- os.Interrupt })}
	var out strings.Builder
	code := cli.Main(&cli.Env{
		Args: []string{"fit", "--check"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: errs,
		Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(int) { t.Error("killed") },
	})
	if said := errs.String(); code != 130 || out.Len() > 0 || !strings.HasSuffix(said, "tacho: stopped before the fit was complete\n") {
		t.Errorf("exit code %d: %s%s", code, said, out.String())
	}
}

// A notifier stores all output and calls written after each write.
type notifier struct {
	written func()
	lock    sync.Mutex
	said    strings.Builder
}

func (n *notifier) Write(b []byte) (int, error) {
	n.written()
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.said.Write(b)
}

func (n *notifier) String() string {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.said.String()
}
