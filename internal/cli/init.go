package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/plan"
)

func newInit(env *Env) *cobra.Command {
	p := plan.Default()
	force := false
	cmd := &cobra.Command{
		Use:   "init [FILE] [flags of bench]",
		Short: "Detect a server and write a plan to measure it",
		Long: `init detects the engine, models and context length of a server and writes a plan
with comments to tacho.yaml, or to the given file (- prints it). "tacho bench
--plan tacho.yaml" runs the plan. Flags of bench are written to the plan. Without
--base-url, init tries the usual ports of this machine. If no server answers, init
still writes a plan and says so in it. If a server requires a key or the path is
wrong, init fails without writing a plan.`,
		Example: `  tacho init --base-url http://127.0.0.1:8000
  tacho init nightly.yaml --base-url http://127.0.0.1:8000 --request-rate 1,2,4,8 --max-seconds 60`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writePlan(cmd.Context(), env, p, cmp.Or(strings.Join(args, ""), "tacho.yaml"), force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	bind(cmd.Flags(), &p)
	return cmd
}

// writePlan detects the server and writes the plan.
func writePlan(ctx context.Context, env *Env, p plan.Plan, path string, force bool) error {
	if _, err := os.Stat(path); err == nil && !force && path != "-" {
		return usage(fmt.Errorf("%s already exists, choose another file or overwrite it with --force", path))
	}
	about, err := askServer(ctx, env, &p)
	if err != nil {
		return err
	}
	if err := fillPlan(&p, about); err != nil {
		return err
	}
	text, err := planWithComments(p.Public(env.secrets), about, path)
	if err != nil {
		return err
	}
	if path == "-" {
		_, err = io.WriteString(env.Stdout, text)
		return err
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if !force {
		mode |= os.O_EXCL
	}
	file, err := os.OpenFile(path, mode, 0o644) //nolint:gosec // secrets are not in it
	if errors.Is(err, fs.ErrExist) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\nPlan saved in %s. Review it, then run tacho bench --plan %[2]s\n", about, path)
	return err
}

// A serverAbout describes a detected server.
type serverAbout struct {
	why    string // why no server answered; empty if one did
	engine string // name and version
	models []string
	most   int // context length in tokens; 0 if unknown
}

func (a *serverAbout) String() string {
	if a.why != "" {
		return "No server answered: " + a.why
	}
	out := "The server is " + a.engine + " and serves " + strings.Join(a.models, ", ")
	if a.most > 0 {
		out += fmt.Sprintf("; its context length is %d tokens", a.most)
	}
	return out + "."
}

// askServer detects the server of a plan and sets its properties in the plan.
func askServer(ctx context.Context, env *Env, p *plan.Plan) (*serverAbout, error) {
	trial := *p
	if !trial.Given("backend") {
		trial.Backend = backend.Auto
	}
	trial.SkipTokenizer, trial.NoTrial = true, true
	key, from, err := apiKey(env, &trial)
	if err != nil {
		return nil, usage(err)
	}
	r, err := run.Open(ctx, trial, run.Env{APIKey: key, KeyFrom: from, Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Dial: env.dial()})
	var bad *run.UsageError
	var answered *run.AnsweredError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &bad):
		return nil, usage(err)
	case errors.As(err, &answered):
		return nil, err
	case err != nil:
		return &serverAbout{why: env.secrets.Hide(err.Error())}, nil
	}
	defer r.Close()
	about := &serverAbout{engine: r.Plan.Backend, models: r.Target.Models(ctx)}
	if len(r.Target.Servers) > 0 {
		s := r.Target.Servers[0]
		about.engine, about.most = strings.TrimSpace(cmp.Or(s.Name, r.Plan.Backend)+" "+s.Version), s.MaxLen
	}
	if len(about.models) == 0 {
		about.models = []string{r.Target.ModelID}
	}
	p.BaseURL = r.Plan.BaseURLs()
	return about, errors.Join(p.Set("backend", r.Plan.Backend), p.Set("model", r.Target.ModelID))
}

// fillPlan sets a usual measurement, unless the plan has one.
func fillPlan(p *plan.Plan, about *serverAbout) error {
	input, output := 1024, 128
	for about.most > 0 && input+output > about.most && input > 16 {
		input, output = input/2, max(output/2, 8)
	}
	fill := [][2]string{
		{"base-url", "http://127.0.0.1:8000"},
		{"backend", backend.Auto},
		{"request-rate", "1,2,4,8"},
		{"max-seconds", "30"},
		{"max-concurrency", strconv.Itoa(min(max(p.NumPrompts/5, 1), 8))}, // a burst of all prompts has no throughput
		{"dataset-name", plan.Default().DatasetName},
		{"random-input-len", strconv.Itoa(input)},
		{"random-output-len", strconv.Itoa(output)},
		{"metric-percentiles", "50,90,99"},
	}
	for _, f := range fill {
		name := f[0]
		busy := p.Given(name)
		switch name {
		case "request-rate", "max-seconds":
			busy = busy || p.Given("num-prompts") || p.Given("max-concurrency") || p.Given("ramp-up-strategy") || p.OwnTimes()
		case "max-concurrency":
			busy = busy || !p.Given("num-prompts") || p.Given("request-rate") || p.Given("ramp-up-strategy") || p.OwnTimes()
		case "random-input-len", "random-output-len":
			busy = busy || p.DatasetName != plan.Default().DatasetName || p.Given("scenario")
		}
		if busy {
			continue
		}
		if err := p.Set(name, f[1]); err != nil {
			return err
		}
	}
	return nil
}

// planComments are the comments above options in a plan written by init.
var planComments = map[string]string{
	"backend":            "Protocol; auto detects it.",
	"base_url":           "Server; several servers share the load.",
	"model":              "Model name; default: the first model the server lists.",
	"request_rate":       "Requests per second. A list runs one level per value; sweep chooses the levels.",
	"max_concurrency":    "Maximum requests in flight.",
	"num_prompts":        "Requests per level.",
	"max_seconds":        "Duration of each level.",
	"dataset_name":       "Source of prompts: random, sharegpt, conversation, traces, your own JSON lines (custom) and more.",
	"random_input_len":   "Tokens per prompt: a number, or a distribution such as lognormal(600,0.8).",
	"random_output_len":  "Tokens per answer.",
	"metric_percentiles": "Percentiles in the report.",
}

// planWithComments formats the plan with comments.
func planWithComments(p plan.Plan, about *serverAbout, path string) (string, error) {
	text, err := p.YAML()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmark plan. Run it with tacho bench --plan %s\n", path)
	b.WriteString("# Flags and environment variables override this file. tacho bench --help-all lists all options.\n#\n")
	for _, line := range termtext.Wrap(about.String(), 100) {
		b.WriteString("# " + line + "\n")
	}
	for line := range strings.Lines(string(text)) {
		name, _, isOption := strings.Cut(line, ":")
		if comment := planComments[name]; isOption && comment != "" {
			fmt.Fprintf(&b, "\n# %s\n", comment)
		}
		b.WriteString(line)
	}
	b.WriteString(`
# Other common options:
# seed: 1                              # same requests in every run
# max_concurrency: 64                  # maximum requests in flight
# goodput: ["ttft:500", "tpot:50"]     # SLO per request, in milliseconds
# fail_if: ttft.p99>500ms,failures>1%  # exit code 3 if a condition holds
# repeat: 3                            # runs per level, to see the spread
# num_warmups: 10                      # requests before the measurement
`)
	return b.String(), nil
}
