//go:build unix

package cli_test

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// The first Ctrl-C stops a command that only reads, even if it is blocked.
func TestInterruptedWhileReading(t *testing.T) {
	for name, c := range map[string]struct{ args, holds string }{
		"data": {"data --dataset-name custom --num-prompts 1 --dataset-path pipe", `{"prompt": "here nothing is killed"}`},
		"plan": {"bench --dry-run --plan pipe", "num_prompts: 1"},
	} {
		t.Run(name, func(t *testing.T) { interruptedWhileReading(t, strings.Fields(c.args), c.holds) })
	}
}

func interruptedWhileReading(t *testing.T, args []string, holds string) {
	t.Helper()
	t.Chdir(t.TempDir())
	must.Do(t, syscall.Mkfifo("pipe", 0o600))
	interrupt, killed, said := make(chan os.Signal), make(chan int, 1), make(lines, 100)
	go func() {
		pipe, err := os.OpenFile("pipe", os.O_WRONLY, 0) // returns when the command has opened the pipe
		if err == nil {
			interrupt <- os.Interrupt
			select {
			case code := <-killed:
				if code != 130 {
					t.Errorf("killed with %d", code)
				}
			case line := <-said:
				t.Errorf("it was not killed, and said %q", line)
			}
			_, err = pipe.WriteString(holds)
		}
		if err != nil {
			t.Error(err)
		}
		_ = pipe.Close()
	}()
	cli.Main(&cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: said,
		Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(code int) { killed <- code },
	})
}

// lines receives written lines.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }
