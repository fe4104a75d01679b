package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// rows are readable as most datasets.
const rows = `{"question_id": 1, "turns": ["private"], "prompt": "private", "output_tokens": 3, "messages": [{"role": "user", "content": "private"}], ` +
	`"conversations": [{"from": "human", "value": "private one two three four"}, {"from": "gpt", "value": "private one two three four"}], ` +
	`"timestamp": 1, "input_length": 20, "output_length": 3, "hash_ids": [1], "image_files": ["HERE/image.png"], "audio": "HERE/audio.wav"}` + "\n"

// secrets are the files that the agents of TestPlansReadOnlyPermittedFiles must not read. Each dataset can read one of
// them.
var secrets = map[string]string{
	"my secret, 2.jsonl":   rows,
	"rows.jsonl":           rows,
	"secret.yaml":          "model: {}\n",
	"secret.txt":           strings.Repeat("private lines of a poem\n", 100),
	"lengths.csv":          "20,1\n",
	"image.png":            "\x89PNG\r\n\x1a\n",
	"audio.wav":            "RIFF\x24\x00\x00\x00WAVEfmt ",
	"tokenizer.json":       "{}",
	"chunk-1-trace.csv":    "0,1,1\n",
	"chunk-1-dataset.json": "{}",
}

// A watch collects the names of files that any process opens, creates or writes.
type watch struct {
	t    *testing.T
	fd   int
	dirs map[int32]string
}

func newWatch(t *testing.T, dirs ...string) *watch {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Skip("inotify: ", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	w := &watch{t, fd, map[int32]string{}}
	for _, dir := range dirs {
		id := must.Get(syscall.InotifyAddWatch(fd, dir, syscall.IN_OPEN|syscall.IN_CREATE|syscall.IN_MODIFY|syscall.IN_DELETE|syscall.IN_MOVE))(t)
		w.dirs[int32(id)] = dir
	}
	return w
}

// seen returns the names since the last call.
func (w *watch) seen() (names []string) {
	var buf [1 << 16]byte
	for {
		n, err := syscall.Read(w.fd, buf[:])
		if n <= 0 || err != nil {
			return names
		}
		for b := buf[:n]; len(b) > 0; {
			e := (*syscall.InotifyEvent)(unsafe.Pointer(&b[0]))
			name := b[syscall.SizeofInotifyEvent : syscall.SizeofInotifyEvent+e.Len]
			names = append(names, filepath.Join(w.dirs[e.Wd], string(bytes.TrimRight(name, "\x00"))))
			b = b[syscall.SizeofInotifyEvent+e.Len:]
		}
	}
}

// TestPlansReadOnlyPermittedFiles gives every option of a plan the names of private files in every form, as a coordinator
// may do, and executes the plan as an agent does. The kernel reports each file that is opened.
func TestPlansReadOnlyPermittedFiles(t *testing.T) {
	private, public := filepath.Join(t.TempDir(), "private files"), t.TempDir()
	must.Do(t, os.MkdirAll(private, 0o700))
	for name, text := range secrets {
		must.Do(t, os.WriteFile(filepath.Join(private, name), []byte(strings.ReplaceAll(text, "HERE", private)), 0o600))
	}
	up := must.Get(filepath.Rel(public, private))(t)
	cwd := must.Get(os.Getwd())(t)
	relative := must.Get(filepath.Rel(cwd, private))(t)
	link := filepath.Join(public, "link")
	must.Do(t, os.Symlink(private, link))
	w := newWatch(t, private)
	var paths, values []any
	for _, name := range append(slices.Sorted(maps.Keys(secrets)), "") {
		paths = append(paths, filepath.Join(private, name))
	}
	name := "/my secret, 2.jsonl"
	paths = append(paths, relative+name, link+name, public+"/"+up+name, "/proc/self/root"+private+name)
	for _, form := range []string{"@%s", "json:@%s", "regex:@%s", "choice:@%s", "file(%s)", "file(%s)[1,2]", "file:%s", "file://%s", "%s:0", "a=%s", "x,%s"} {
		values = append(values, fmt.Sprintf(form, private+name), fmt.Sprintf(form, link+name))
	}
	values = append(values, map[string]any{"file": private + name})
	values = append(values, paths...)

	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		try := func(options map[string]any) {
			base := map[string]any{"base_url": []string{url}, "num_prompts": 2, "no_trial": true, "random_output_len": 3, "metrics_url": []string{"none"}, "random_mm_base_items_per_request": 0}
			maps.Copy(base, options)
			text := must.Get(json.Marshal(base))(t)
			task := &run.Task{Plan: text, Targets: []string{url}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := run.OpenTask(ctx, task, run.Env{
				Dial: network.Dial, Tokenizers: target.Tokenizers{Home: filepath.Join(private, "home")},
			})
			if err != nil {
				return
			}
			defer r.Close()
			task.Sample = run.SampleOf(r, task)
			_, _, _ = r.Share(ctx, task, run.Share{N: 1, Live: &live.Feed{}}, discard{}) // any error is fine
		}
		names := func() (out []string) {
			p := plan.Default()
			for _, o := range p.Options() {
				out = append(out, o.Name)
			}
			return out
		}()
		table := func(use func(what string, options map[string]any)) {
			for _, name := range names {
				for _, value := range values {
					use(name, map[string]any{strings.ReplaceAll(name, "-", "_"): value})
				}
			}
			for _, kind := range workload.Kinds {
				for _, api := range []string{"openai-chat", "openai-audio"} {
					for _, value := range paths {
						use("dataset "+kind.Name, map[string]any{"backend": api, "dataset_name": kind.Name, "dataset_path": value, "custom_ensure_client_side_data": true})
					}
					use("media of "+kind.Name, map[string]any{"backend": api, "dataset_name": kind.Name, "dataset_path": filepath.Join(public, "media.jsonl"), "custom_ensure_client_side_data": true})
				}
			}
			use("speed-bench-dataset-subset", map[string]any{"dataset_name": "speed_bench", "dataset_path": public, "speed_bench_dataset_subset": up + "/rows"})
			for _, value := range paths {
				use("sim", map[string]any{"virtual": true, "sim": value})
				use("client-key", map[string]any{"client_cert": value, "client_key": value})
			}
			for _, option := range []string{"structured-output=json:@", "dataset-path=", "random-input-len=file:"} {
				use("mix", map[string]any{"mix": []string{"weight=1 " + option + link + "/lengths.csv", "weight=1"}})
			}
		}
		media := strings.ReplaceAll(`{"prompt": "look", "image_files": ["HERE/image.png"], "audio": "HERE/audio.wav"}`, "HERE", private) + "\n" +
			strings.ReplaceAll(`{"prompt": "look", "content": [{"type": "image", "image": "file://HERE/image.png"}]}`, "HERE", private) + "\n"
		must.Do(t, os.WriteFile(filepath.Join(public, "media.jsonl"), []byte(media), 0o600))
		w.seen()

		// Without a limit, these options open private files. This shows that the table reaches them.
		opened := map[string]bool{}
		table(func(what string, options map[string]any) {
			if !opened[what] {
				try(options)
				opened[what] = len(w.seen()) > 0
			}
		})
		for _, want := range []string{"structured-output", "random-input-len", "dataset-path", "tokenizer", "ca-cert", "client-key", "mix", "speed-bench-dataset-subset", "media of custom_image"} {
			if !opened[want] {
				t.Errorf("%s opened no file without a limit", want)
			}
		}
		maps.DeleteFunc(opened, func(_ string, is bool) bool { return !is })
		t.Log(slices.Sorted(maps.Keys(opened)))

		for _, places := range [][]atomicfile.Place{nil, {{Path: public}}} {
			undo := atomicfile.Confine(places...)
			table(func(what string, options map[string]any) {
				if !opened[what] {
					return
				}
				try(options)
				if names := w.seen(); len(names) > 0 {
					t.Errorf("%s: an agent that may read %v opened %q for %v", what, places, names, options)
				}
			})
			undo()
		}
	})
}

// discard is a Sink.
type discard struct{}

func (discard) Add(*tacho.Record) error { return nil }
func (discard) Close() error            { return nil }
