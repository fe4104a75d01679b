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

	"tacho/backend"
	"tacho/plan"
	"tacho/run"
)

const (
	defaultPlan   = "tacho.yaml"
	defaultServer = "http://127.0.0.1:8000"
)

func newInit(env *Env) *cobra.Command {
	p := plan.Default()
	force := false
	cmd := &cobra.Command{
		Use:   "init [FILE] [flags of bench]",
		Short: "Ask a server what it is, and write a plan to measure it with",
		Long: `init asks a server which engine it is, which models it serves and how long prompts
may be, and writes a plan with comments: tacho.yaml, or the file that is named
(- prints it). "tacho bench --plan tacho.yaml" carries it out. Flags of bench go
into the plan. Without --base-url it looks on the usual ports of this machine.
If no server answers, the plan says so and is otherwise the same. A server that
answers but wants a key, or has no such path, is an error, and no plan is written.`,
		Example: `  tacho init --base-url http://127.0.0.1:8000
  tacho init nightly.yaml --base-url http://127.0.0.1:8000 --request-rate 1,2,4,8 --max-seconds 60`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writePlan(cmd.Context(), env, p, cmp.Or(strings.Join(args, ""), defaultPlan), force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	bind(cmd.Flags(), &p)
	return cmd
}

// writePlan asks the server and writes the plan.
func writePlan(ctx context.Context, env *Env, p plan.Plan, path string, force bool) error {
	if _, err := os.Stat(path); err == nil && !force && path != "-" {
		return usage(fmt.Errorf("%s is there already: name another file, or write over it with --force", path))
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
	_, err = fmt.Fprintf(env.Stdout, "%s\nThe plan is in %s. Look at it, then run: tacho bench --plan %[2]s\n", about, path)
	return err
}

// A serverAbout is what a server said to init.
type serverAbout struct {
	why    string // why no server answered; empty if one did
	engine string // with its version
	models []string
	most   int // tokens of prompt and output together; 0 is unknown
}

func (a *serverAbout) String() string {
	if a.why != "" {
		return "No server answered: " + a.why
	}
	out := "The server is " + a.engine + " and serves " + strings.Join(a.models, ", ")
	if a.most > 0 {
		out += fmt.Sprintf("; prompt and answer may have %d tokens together", a.most)
	}
	return out + "."
}

// askServer asks the server of a plan, and puts into the plan what it says.
func askServer(ctx context.Context, env *Env, p *plan.Plan) (*serverAbout, error) {
	asked := *p
	if !asked.Given("backend") {
		asked.Backend = backend.Auto
	}
	asked.SkipTokenizer, asked.NoTrial = true, true
	key, from, err := apiKey(env, &asked)
	if err != nil {
		return nil, usage(err)
	}
	r, err := run.Open(ctx, asked, run.Env{APIKey: key, KeyFrom: from, Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Dial: env.dial()}, run.Hooks{Say: func(string) {}})
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

// fillPlan puts a usual measurement into a plan that says nothing of it.
func fillPlan(p *plan.Plan, about *serverAbout) error {
	input, output := 1024, 128
	for about.most > 0 && input+output > about.most && input > 16 {
		input, output = input/2, max(output/2, 8)
	}
	fill := [][2]string{
		{"base-url", defaultServer},
		{"backend", backend.Auto},
		{"request-rate", "1,2,4,8"},
		{"max-seconds", "30"},
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

// planComments are what stands above an option in a plan that init writes.
var planComments = map[string]string{
	"backend":            "The protocol to speak; auto asks the server.",
	"base_url":           "The server; several share the load.",
	"model":              "The model to ask for; without this line the first that the server lists.",
	"request_rate":       "Requests per second. A list runs one level after the other; sweep finds the levels itself.",
	"max_concurrency":    "Most requests in flight at once.",
	"num_prompts":        "Requests of each level.",
	"max_seconds":        "How long each level sends.",
	"dataset_name":       "Where prompts come from: random, sharegpt, conversation, traces, your own JSON lines (custom) and more.",
	"random_input_len":   "Tokens of each prompt: a number, or a distribution such as lognormal(600,0.8).",
	"random_output_len":  "Tokens of each answer.",
	"metric_percentiles": "Percentiles in the report.",
}

// planWithComments is the plan as a file for people.
func planWithComments(p plan.Plan, about *serverAbout, path string) (string, error) {
	text, err := p.YAML()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What to measure, and how. Run it: tacho bench --plan %s\n", path)
	b.WriteString("# A flag goes before a line here, and so does a variable: tacho bench --help-all lists all options.\n#\n")
	for _, line := range wrap(about.String(), 100) {
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
# More that people set; take the # away:
# seed: 1                              # the same requests each time
# max_concurrency: 64                  # most requests in flight at once
# goodput: ["ttft:500", "tpot:50"]     # milliseconds that a good request keeps
# fail_if: ttft.p99>500ms,failures>1%  # exit code 3 if one of them holds
# repeat: 3                            # each level three times, to see the spread
# num_warmups: 10                      # requests before the measured ones
`)
	return b.String(), nil
}
