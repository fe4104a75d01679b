package plan

import (
	"fmt"
	"slices"
	"strings"
)

// A NamedWorkload is a workload with a published definition. It stands for
// options of the dataset.
type NamedWorkload struct {
	Name    string
	About   string
	Source  string // who published it, and where
	SLO     string // the publisher's limits; empty if there are none
	Ours    string // what the definition leaves open
	Options [][2]string
}

// catalogue is the address of the workloads of inference-perf. A lognormal
// distribution with mean m and standard deviation s, as inference-perf writes
// it, has the median m/sqrt(1+(s/m)^2) and the sigma sqrt(ln(1+(s/m)^2)).
const catalogue = "https://github.com/kubernetes-sigs/inference-perf/tree/7de5ef2/workload-catalog/"

// NamedWorkloads are the values of --workload.
var NamedWorkloads = []NamedWorkload{
	{
		Name: "chat", About: "people in a chat, with their context in the first turn and pauses to read",
		Source: "inference-perf, interactive-chat: " + catalogue + "interactive-chat", SLO: "ttft:p99<1s,itl:p99<50ms",
		Ours: "the context is part of the first prompt (mean 4000 tokens, standard deviation 2500)",
		Options: [][2]string{
			{"dataset-name", "conversation"},
			{"turns", "lognormal(3.39,0.574)[1,15]"},
			{"system-prompt-len", "1000"},
			{"first-turn-input-len", "lognormal(3392,0.574)[500,15000]"},
			{"turn-input-len", "lognormal(39,0.703)[10,1000]"},
			{"turn-output-len", "normal(300,150)[10,1000]"},
			{"think-time-ms", "lognormal(33633,0.763)[5000,300000]"},
		},
	},
	{
		Name: "rag", About: "one question with retrieved documents",
		Source: "GuideLLM, scenario rag: https://github.com/vllm-project/guidellm/tree/ee7a774",
		Options: [][2]string{
			{"dataset-name", "random"},
			{"random-input-len", "normal(4096,512)[2048,6144]"},
			{"random-output-len", "normal(512,128)[1,1024]"},
		},
	},
	{
		Name: "code", About: "completion of code in an editor",
		Source: "llm-d, code_completion_synthetic: https://github.com/llm-d/llm-d-benchmark/tree/8bc9f1d/workload/profiles",
		Ours:   "the lower limits of 1 token",
		Options: [][2]string{
			{"dataset-name", "random"},
			{"random-input-len", "normal(2048,1024)[1,4096]"},
			{"random-output-len", "normal(128,64)[1,256]"},
		},
	},
	{
		Name: "summarize", About: "summaries of long documents in batches",
		Source: "inference-perf, batch-summarization-rag: " + catalogue + "batch-summarization-rag", SLO: "ttft:p90<15s,itl:p95<150ms,e2el:p99<630s",
		Ours: "the system prompt is a shared prefix",
		Options: [][2]string{
			{"dataset-name", "random"},
			{"random-prefix-len", "500"},
			{"random-input-len", "normal(15000,22000)[1000,80000]"},
			{"random-output-len", "normal(500,300)[50,2000]"},
		},
	},
	{
		Name: "agent", About: "an agent that reads, with many turns and long prompts",
		Source: "inference-perf, deep-research: " + catalogue + "deep-research", SLO: "ttft:p90<10s,itl:p99<100ms",
		Ours: "the context is part of the first prompt (mean 45000 tokens, standard deviation 35000)",
		Options: [][2]string{
			{"dataset-name", "conversation"},
			{"turns", "normal(15,8.5)[2,50]"},
			{"system-prompt-len", "2000"},
			{"first-turn-input-len", "lognormal(35521,0.688)[2000,150000]"},
			{"turn-input-len", "lognormal(2305,0.726)[500,15000]"},
			{"turn-output-len", "normal(300,850)[50,4000]"},
			{"think-time-ms", "normal(25000,12000)[5000,60000]"},
		},
	},
}

// Flags returns the options of the workload as flags.
func (w *NamedWorkload) Flags() string {
	var b strings.Builder
	for _, o := range w.Options {
		fmt.Fprintf(&b, " --%s %s", o[0], o[1])
	}
	return strings.TrimSpace(b.String())
}

// FillWorkload sets the options of --workload that are not given. It returns
// the workload, or nil without --workload.
func (p *Plan) FillWorkload() (*NamedWorkload, error) {
	i := slices.IndexFunc(NamedWorkloads, func(w NamedWorkload) bool { return w.Name == p.Workload })
	if i < 0 {
		return nil, nil //nolint:nilnil // no workload; Validate rejects unknown names
	}
	w := &NamedWorkloads[i]
	if name := w.Options[0][1]; p.Given("dataset-name") && p.DatasetName != name || len(p.Mix) > 0 || p.Replay != "" {
		return nil, fmt.Errorf("--workload %s is --dataset-name %s: remove --dataset-name, --mix and --replay, or --workload", w.Name, name)
	}
	for _, o := range w.Options {
		if p.Given(o[0]) {
			continue
		}
		if err := p.Set(o[0], o[1]); err != nil {
			return nil, fmt.Errorf("--workload %s: --%s: %w", w.Name, o[0], err)
		}
	}
	return w, nil
}

// Prompts names the datasets and the workload of the plan.
func (p *Plan) Prompts() string {
	if p.Workload == "" {
		return p.datasets()
	}
	return p.datasets() + " (workload " + p.Workload + ")"
}
