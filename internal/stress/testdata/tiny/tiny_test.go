// Package tiny contains tests with every outcome, for the tests of stress.
package tiny

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestPasses(*testing.T) {}

func TestFails(t *testing.T) {
	t.Run("passes", func(*testing.T) {})
	t.Run("fails", func(t *testing.T) { t.Error("this subtest fails") })
}

func TestPanics(*testing.T) { panic("this test panics") }

// TestHangs hangs. If FIFO is set, a child process hangs, too. Both hold the named pipe
// open, and TestHangs writes the child's process id to it.
func TestHangs(t *testing.T) {
	if name := os.Getenv("FIFO"); name != "" {
		fifo, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command("sleep", "3600")
		child.Stdout = fifo
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(fifo, child.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	for {
		time.Sleep(time.Hour)
	}
}

func TestPassesAfterAll(*testing.T) {}
