//go:build unix

package cli_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"tacho/cli"
)

// The first Ctrl-C ends a command that only reads, whatever it waits for.
func TestInterruptedWhileReading(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe.jsonl", 0o600); err != nil {
		t.Fatal(err)
	}
	interrupt, killed := make(chan os.Signal), make(chan int, 1)
	go func() {
		pipe, err := os.OpenFile("pipe.jsonl", os.O_WRONLY, 0) // is open when somebody reads it
		if err == nil {
			interrupt <- os.Interrupt
			select {
			case code := <-killed:
				if code != 130 {
					t.Errorf("killed with %d", code)
				}
			case <-time.After(10 * time.Second):
				t.Error("it goes on")
			}
			_, err = pipe.WriteString(`{"prompt": "here nothing is killed"}`)
		}
		if err != nil {
			t.Error(err)
		}
		_ = pipe.Close()
	}()
	var out, errs strings.Builder
	cli.Main(&cli.Env{
		Args: []string{"data", "--dataset-name", "custom", "--dataset-path", "pipe.jsonl", "--num-prompts", "1"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(code int) { killed <- code },
	})
	if strings.Contains(errs.String(), "again") {
		t.Error(errs.String())
	}
}
