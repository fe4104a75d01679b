package migrate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestLine translates flags that depend on one another. TestMovingRows in internal/cli compares the plans of all rows
// of docs/moving.md.
func TestLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "perf.yml")
	text := "load: {type: constant, stages: [{rate: 1, duration: 60}, {rate: 2, duration: 60}]}\nserver: {model_name: M}\nreport: {x: 1}\n"
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	ours := []string{"backend", "dataset-name", "profile", "seed", "label", "model"}
	for line, want := range map[string]string{
		"--label rate --concurrency 4":                        "--max-concurrency=4 | --label rate",
		"--num-concurrency 1 --num-concurrency 8":             "--max-concurrency=1,8 |",
		"--concurrency 4 -- --concurrency 5":                  "--max-concurrency=4 | -- --concurrency 5",
		"--api-backend vllm --task text-to-embeddings":        "--backend=openai-embeddings |",
		"--server-engine vllm --server-version 1":             "--metadata=server_engine=vllm --metadata=server_version=1 |",
		"--backend vllm --profile --seed 3":                   "| --backend vllm --profile --seed 3",
		"--profile concurrent --rate 8":                       "--max-concurrency=8 |",
		"--profile kind=sweep --dataset-name random-ids":      "--dataset-name=random --request-rate=sweep |",
		"--isl 100 --isl-stddev 0":                            "--random-input-len=100 |",
		"--data prompt_tokens=9,turns=2,prefix_tokens=5":      "--system-prompt-len=5 --turn-input-len=9 --dataset-name=conversation --turns=2 |",
		"--data.input_distribution.type uniform":              "--random-input-len=uniform(10,1024) |",
		"--extra-inputs top_k:5 --extra-inputs a:b":           `--extra-body={"a":"b","top_k":5} |`,
		`--report.request_lifecycle.percentiles [50,99]`:      "--metric-percentiles=50,99 |",
		"--url h:1/v1/completions":                            "--backend=openai --base-url=http://h:1 |",
		"-c " + file + " --load.type poisson --api.type chat": "--backend=openai-chat --max-seconds=60 --request-rate=1,2 --model=M |",
		"--streaming --model M":                               "| --model M | --streaming has no effect, because tacho always streams.",
		"--isl-stddev 5":                                      "--isl-stddev 5: the mean is missing: write the lengths as a distribution, as in --random-input-len 'normal(100,5)'",
		"--backend kind=python":                               "--backend.kind python: tacho measures servers only: start one, and set --base-url",
		"--server-gpu-count 8":                                "--server-gpu-count 8: the type of GPU is missing: write both as --gpus 8xH100",
		"--gsp-num-turns 3":                                   "--gsp-num-turns 3: use --dataset-name conversation --turns 3 --system-prompt-len N",
		"--max-time-per-run x":                                "--max-time-per-run x: want a number above 0, or set --max-seconds",
		"--concurrency":                                       "--concurrency needs a value",
	} {
		got, err := Line(strings.Fields(line), func(name string) bool { return slices.Contains(ours, name) })
		text := strings.TrimSpace(strings.Join(got.Flags, " ") + " | " + strings.Join(got.Rest, " "))
		if len(got.Needless) > 0 {
			text += " | " + strings.Join(got.Needless, " ")
		}
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s\n got %s\nwant %s", line, text, want)
		}
	}
}

// TestRowsAreUsed checks that every row is the first for some flag and value.
func TestRowsAreUsed(t *testing.T) {
	t.Parallel()
	for name, rows := range rowsOf() {
		for i, r := range rows {
			if last := i == len(rows)-1; r.Values == "" && r.Unless == "" && !last {
				t.Errorf("%s: the row %+v hides the row %+v", name, r, rows[i+1])
			}
		}
	}
}
