package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/migrate"
	"github.com/tacho-bench/tacho/internal/must"
)

// helpOf returns the help of a command at a terminal width.
func helpOf(t *testing.T, width int, args ...string) string {
	t.Helper()
	var out strings.Builder
	env := &cli.Env{Args: args, Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }, Width: func() int { return width }}
	if code := cli.Main(env); code != 0 {
		t.Fatalf("tacho %v: exit code %d", args, code)
	}
	return out.String()
}

var (
	commandLine = regexp.MustCompile(`(?m)^  ([a-z0-9]+) +[A-Z]`)
	flagOfHelp  = regexp.MustCompile(`(?m)^  (?:\+ )?(--[a-z0-9-]+)`)
)

// TestHelp checks the help of every command: short help starts with examples
// and has few flags, and no line is wider than the terminal except for single
// words.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, name := range commandNames(t) {
		for _, width := range []int{40, 80, 120} {
			short, all := helpOf(t, width, name, "--help"), helpOf(t, width, name, "--help-all")
			fitsWidth(t, width, short)
			fitsWidth(t, width, all)
			few, most := flagsOf(short), flagsOf(all)
			if len(few) > 22 {
				t.Errorf("%s --help has %d flags: choose those that people use (often, in help.go)", name, len(few))
			}
			for _, f := range few {
				if !slices.Contains(most, f) {
					t.Errorf("%s --help-all has no %s, and --help has", name, f)
				}
			}
			if before, _, found := strings.Cut(short, "\nUsage:"); !found || !strings.Contains(before, "\nExamples:\n") {
				t.Errorf("%s --help does not begin with examples:\n%s", name, short)
			}
		}
	}
	if got := len(flagsOf(helpOf(t, 80, "bench", "--help-all"))); got < 150 {
		t.Errorf("bench --help-all has %d flags", got)
	}
}

// commandNames returns the commands listed in help.
func commandNames(t *testing.T) (out []string) {
	t.Helper()
	_, list, _ := strings.Cut(helpOf(t, 80, "--help"), "Commands:\n")
	for _, m := range commandLine.FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	if !slices.Contains(out, "bench") || !slices.Contains(out, "keys") {
		t.Fatalf("%q: has the notation changed?", out)
	}
	return out
}

func flagsOf(help string) (out []string) {
	_, help, _ = strings.Cut(help, "\nUsage:")
	for _, m := range flagOfHelp.FindAllStringSubmatch(help, -1) {
		out = append(out, m[1])
	}
	return out
}

func fitsWidth(t *testing.T, width int, help string) {
	t.Helper()
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		text, _ := strings.CutSuffix(strings.TrimSpace(line), ` \`)
		whole := strings.HasPrefix(strings.TrimPrefix(text, "+ "), "-") || strings.Contains(text, "tacho ") // a flag with its value, or a command
		if utf8.RuneCountInString(line) > width && strings.Contains(text, " ") && !whole {
			t.Errorf("wider than %d: %q", width, line)
		}
	}
}

// TestExamplesStayCommands joins the wrapped lines of an example.
func TestExamplesStayCommands(t *testing.T) {
	t.Parallel()
	joined := func(width int) string {
		return strings.ReplaceAll(helpOf(t, width, "sweep", "--help"), " \\\n      ", " ")
	}
	found := 0
	for line := range strings.Lines(joined(120)) {
		if !strings.HasPrefix(line, "  tacho sweep --serve-cmd \"") {
			continue
		}
		found++
		if !strings.Contains(joined(40), line) || strings.Contains(line, `\`) {
			t.Errorf("broken: %s", line)
		}
	}
	if found != 2 {
		t.Errorf("found %d examples", found)
	}
}

// TestListsAreBelow checks that help texts that mention a list below have one.
func TestListsAreBelow(t *testing.T) {
	t.Parallel()
	lists := map[string]string{"protocol, see the list below": "\nBackends:\n", "source of the prompts, see the list below": "\nDatasets:\n", "output format, see the list below": "\nFormats:\n"}
	spoken := 0
	for _, c := range commandNames(t) {
		for _, flag := range []string{"--help", "--help-all"} {
			text := helpOf(t, 120, c, flag)
			flat := strings.Join(strings.Fields(text), " ")
			for says, list := range lists {
				if !strings.Contains(flat, says) {
					continue
				}
				spoken++
				if !strings.Contains(text, list) {
					t.Errorf("tacho %s %s says %q, and has none", c, flag, says)
				}
			}
		}
	}
	if spoken < 10 {
		t.Errorf("only %d lists are spoken of", spoken)
	}
}

// TestMisspelt checks the suggestions for misspelled names of all kinds.
func TestMisspelt(t *testing.T) {
	t.Parallel()
	bench := []string{"bench", "--dry-run", "--base-url", "http://127.0.0.1:9"}
	for what, test := range map[string]struct {
		args []string
		want string
	}{
		"command":           {[]string{"benhc"}, `"bench"`},
		"help":              {[]string{"help", "reprot"}, `"report"`},
		"flag":              {append(bench, "--num-promts", "3"), "--num-prompts"},
		"flag of sim":       {[]string{"sim", "--profil_e", "x"}, "--profile"},
		"shell":             {[]string{"completion", "zhs"}, `"zsh"`},
		"backend":           {append(bench, "--backend", "vlm"), `"vllm"`},
		"backend's alias":   {append(bench, "--backend", "tensorrt-lm"), `"tensorrt-llm"`},
		"dataset":           {append(bench, "--dataset-name", "sharegtp"), `"sharegpt"`},
		"dataset of a mix":  {append(bench, "--mix", "a:dataset-nam=random"), `"dataset-name"`},
		"profile":           {[]string{"bench", "--dry-run", "--sim", "vllm-8b-h10"}, `"vllm-8b-h100"`},
		"profile of sim":    {[]string{"sim", "--profile", "tgi-405-mi300x"}, `"tgi-405b-mi300x"`},
		"engine":            {[]string{"sim", "--engine", "slang"}, `"sglang"`},
		"fault":             {[]string{"sim", "--fault", "truncat"}, `"truncate"`},
		"percentile metric": {append(bench, "--percentile-metrics", "ttft,tfft"), `"ttft"`},
		"goodput metric":    {append(bench, "--goodput", "tfft:100"), `"ttft"`},
		"condition":         {append(bench, "--fail-if", "e2l.p99>1s"), `"e2el"`},
		"figure":            {append(bench, "--fail-if", "request_troughput<1"), `"request_throughput"`},
		"SLO":               {[]string{"find", "--slo", "tfft:p99<1s"}, `"ttft"`},
		"quantity":          {[]string{"compare", "x", "y", "--quantities", "tpto.mean"}, `"tpot"`},
		"goal":              {[]string{"find", "--slo", "ttft:p99<1s", "--find", "conccurrency"}, `"concurrency"`},
		"style":             {append(bench, "--report-style", "currrent"), `"current"`},
		"format":            {[]string{"report", "../../testdata/seeds", "--format", "jsn"}, `"json"`},
		"rows":              {[]string{"report", "../../testdata/seeds", "--format", "csv", "--rows", "requst"}, `"request"`},
		"dialect":           {[]string{"report", "../../testdata/seeds", "--dialect", "aipref"}, `"aiperf"`},
		"checks":            {[]string{"selfcheck", "--format", "jsno"}, `"json"`},
		"clock":             {append(bench, "--clock", "kernl"), `"kernel"`},
		"balance":           {append(bench, "--balance", "stiky"), `"sticky"`},
		"ramp":              {append(bench, "--ramp-up-strategy", "liner", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "2"), `"linear"`},
		"router":            {[]string{"predict", "--dry-run", "--router", "least-laoded"}, `"least-loaded"`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := program(nil, test.args...)
			if !strings.Contains(stderr, "did you mean "+test.want+"?") || code != 2 {
				t.Errorf("tacho %v: exit code %d, %s", test.args, code, stderr)
			}
		})
	}
}

// TestWordsOfOtherTools checks the suggestions for commands and flags of other
// tools, and that dissimilar words get none.
func TestWordsOfOtherTools(t *testing.T) {
	t.Parallel()
	const all = " (tacho bench --help-all lists all)"
	for line, want := range map[string]string{
		"profile --model m":             `unknown command "profile": type tacho bench with the same flags (tacho --help lists all)`,
		"benchmark --target U":          `unknown command "benchmark": type tacho bench with the same flags (tacho --help lists all)`,
		"run":                           `unknown command "run": type tacho bench with the same flags (tacho --help lists all)`,
		"serve-bench --port 1":          `unknown command "serve-bench": type tacho bench with the same flags (tacho --help lists all)`,
		"guidellm benchmark --target U": `unknown command "guidellm": type tacho bench with the same flags (tacho --help lists all)`,
		"vllm bench serve --model m":    `unknown command "vllm": type tacho bench with the same flags (tacho --help lists all)`,
		"bench latency --batch-size 8":  `bench accepts flags only, not "latency": for one request after the other use --max-concurrency 1`,
		"bench vllm bench startup":      `bench accepts flags only, not "startup": tacho measures servers that run; tacho sweep starts one per setting`,
		"genai-bench":                   `unknown command "genai-bench": type tacho bench with the same flags (tacho --help lists all)`,
		"bench --max-concurrency 8 --num-prompts 1 --max_concurrency sweep": "--max-concurrency is given twice, with 8 and with sweep: keep one",
		"bench --fail-if ttft.p99>200ms --fail-if failures>1%":              "--fail-if is given twice, with ttft.p99>200ms and with failures>1%: write --fail-if 'ttft.p99>200ms,failures>1%'",
		"something --model m":      `unknown command "something" (tacho --help lists all)`,
		"bench --gsp-zipf-alpha 1": "unknown flag --gsp-zipf-alpha: use --dataset-name random with --random-num-prefixes, --random-prefix-len and --random-prefix-zipf" + all,
		"report last -o x":         "unknown flag -o (tacho report --help-all lists all)",
		"bench --quantum 4":        "unknown flag --quantum" + all,
		"sim --target U":           "unknown flag --target (tacho sim --help-all lists all)",
	} {
		if code, _, stderr := program(nil, strings.Fields(line)...); code != 2 || stderr != "tacho: "+want+"\n" {
			t.Errorf("tacho %s: exit code %d, %s", line, code, stderr)
		}
	}
}

// TestLinesOfOtherTools checks that bench accepts whole command lines of other tools.
func TestLinesOfOtherTools(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"aiperf profile -m m --url h:1 --concurrency 4 --endpoint-type chat --streaming": "max_concurrency: 4",
		"genai-perf profile -m m --url h:1 --concurrency 4":                              "max_concurrency: 4",
		"guidellm benchmark run --target http://h:1 --rate-type concurrent --rate 4":     "max_concurrency: 4",
		"guidellm run --target http://h:1 --profile concurrent --rate 4":                 "max_concurrency: 4",
		"genai-bench benchmark --api-base http://h:1 --num-concurrency 4":                "max_concurrency: 4",
		"python3 -m sglang.bench_serving --backend sglang --host h --max-concurrency 4":  "max_concurrency: 4",
		"sglang-bench --base-url http://h:1 --max-concurrency 4":                         "max_concurrency: 4",
		"vllm bench serve --model m --max-concurrency 4":                                 "max_concurrency: 4",
	} {
		if code, out, errs := program(nil, append(strings.Fields("bench "+line), "--dry-run")...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("tacho bench %s: exit code %d\n%s%s", line, code, out, errs)
		}
	}
}

// TestForeignFlagsAreOurs checks that translations and advice name flags of
// tacho bench, and that tacho has none of the translated flags.
func TestForeignFlagsAreOurs(t *testing.T) {
	t.Parallel()
	var theirs, ours []string
	for _, r := range migrate.Table {
		if r.Values == "" {
			theirs = append(theirs, strings.Fields(r.Theirs)...)
		}
		for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*[a-z])`).FindAllStringSubmatch(r.Ours+" "+r.Why+" "+r.Advice, -1) {
			if flag[1] != "slo" && flag[1] != "help-all" { // flags of find and of all commands
				ours = append(ours, flag[1])
			}
		}
	}
	for _, name := range theirs {
		if cli.HasFlag("bench", name) {
			t.Errorf("--%s is a flag of tacho bench", name)
		}
	}
	for _, name := range ours {
		if !cli.HasFlag("bench", name) {
			t.Errorf("tacho bench has no flag --%s", name)
		}
	}
}

// TestManPages checks that there is a manual page per command with all its
// flags.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, out, stderr := program(nil, "man", dir); code != 0 || !strings.Contains(out, "pages in "+dir) {
		t.Fatalf("exit code %d, %s%s", code, out, stderr)
	}
	for _, name := range []string{"tacho", "tacho-bench", "tacho-sim", "tacho-report"} {
		path := filepath.Join(dir, name+".1")
		b := must.Get(os.ReadFile(path))(t)
		command := strings.Fields(strings.ReplaceAll(name, "-", " "))[1:]
		for _, flag := range flagsOf(helpOf(t, 80, append(command, "--help-all")...)) {
			if !strings.Contains(string(b), strings.ReplaceAll(flag, "-", `\-`)+`\fP`) {
				t.Errorf("%s has no %s", name, flag)
			}
		}
	}
}

// TestVariablesOfLists sets several values in a variable, one per line. Flags
// override them.
func TestVariablesOfLists(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"TACHO_METADATA": "a=1\nb=2 3"}
	_, out, _ := program(vars, "bench", "--dry-run", "--base-url", "http://127.0.0.1:9")
	if !strings.Contains(out, "metadata: [a=1, b=2 3]") {
		t.Error(out)
	}
	if _, out, _ = program(vars, "bench", "--dry-run", "--base-url", "http://127.0.0.1:9", "--metadata", "c=3"); strings.Contains(out, "a=1") {
		t.Error(out)
	}
}
