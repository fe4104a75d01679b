//go:build bombs && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// A bomb is a command with files that would take unreasonable time or memory. DIR in its arguments is the directory of its files.
type bomb struct {
	name  string
	files map[string]content
	args  string
	want  string // in the message
	ends  bool   // the command can do its work, within the limits
}

const (
	mostMiB  = 2048
	mostTime = 3 * time.Minute
)

// TestBombs runs the built command on each bomb and prints a table of messages, time and memory. A bomb must end with a message
// that names the file or the flag and the limit, below mostMiB.
func TestBombs(t *testing.T) {
	if name := os.Getenv("BOMB_FILES"); name != "" {
		writeFiles(t, name)
		return
	}
	tool := filepath.Join(t.TempDir(), "tacho")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", tool, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	only := regexp.MustCompile(os.Getenv("BOMB"))
	table := &strings.Builder{}
	fmt.Fprintln(table, "| bomb | size | message | CPU time (s) | peak (MiB) |\n|---|---|---|---|---|")
	for _, b := range bombs() {
		if only.MatchString(b.name) {
			t.Run(b.name, func(t *testing.T) { b.explode(t, tool, table) })
		}
	}
	fmt.Print(table)
}

func (b bomb) explode(t *testing.T, tool string, table *strings.Builder) {
	dir := t.TempDir()
	// Another process writes the files, because Linux counts the memory of a parent as memory of its child.
	writer := exec.Command(os.Args[0], "-test.run", "^TestBombs$")
	writer.Dir, writer.Env = dir, append(os.Environ(), "BOMB_FILES="+b.name)
	if out, err := writer.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	size := int64(0)
	for name := range b.files {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	// The limit protects this machine from a bomb that explodes.
	args := append([]string{"-c", `ulimit -v 12000000; exec "$0" "$@"`, tool}, strings.Fields(strings.ReplaceAll(b.args, "DIR", dir))...)
	cmd := exec.CommandContext(ctx, "bash", args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	mib := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss / 1024
	message := strings.TrimSpace(strings.ReplaceAll(errs.String(), dir+"/", ""))
	if b.ends && err == nil {
		message = "(ends)"
	}
	switch code := cmd.ProcessState.ExitCode(); {
	case ctx.Err() != nil:
		t.Errorf("does not end, at %d MiB", mib)
	case b.ends != (code == 0):
		t.Errorf("exit code %d: %s", code, message)
	case !strings.Contains(errs.String()+out.String(), b.want):
		t.Errorf("%s, want %q", message, b.want)
	}
	if mib > mostMiB {
		t.Errorf("%d MiB, want at most %d", mib, mostMiB)
	}
	for line := range strings.Lines(message) {
		if said, ok := strings.CutPrefix(line, "tacho: "); ok {
			message = strings.TrimSpace(said)
			break
		}
	}
	fmt.Fprintf(table, "| %s | %s | %s | %.1f | %d |\n", b.name, bytesOf(size), strings.ReplaceAll(message, "|", `\|`), cpu.Seconds(), mib)
}

// writeFiles writes the files of a bomb to the working directory.
func writeFiles(t *testing.T, name string) {
	for _, b := range bombs() {
		if b.name != name {
			continue
		}
		for path, write := range b.files {
			must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), write(path)))
		}
	}
}

func bytesOf(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// ofJSON is a file of one JSON value.
func ofJSON(v any) content {
	return func(path string) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o600)
	}
}
