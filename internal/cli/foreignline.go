package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/outcome"
)

// A foreignLine translates the flags of other tools on one command line.
type foreignLine struct {
	cmd   *cobra.Command
	given map[string][]string // values of the foreign flags, by name
	files []string            // files of inference-perf with more of them
	ours  []foreignTarget     // translated flags, in order
	idle  []string            // flags without an effect, with the reason
}

// A foreignTarget is a flag of tacho with its values.
type foreignTarget struct {
	name   string
	values []string
}

// translateLine rewrites flags of other tools to flags of tacho, and prints the
// translation. Flags of tacho on the same line take precedence.
func translateLine(env *Env, root *cobra.Command, args []string) ([]string, error) {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root || cmd.Flags().Lookup("base-url") == nil {
		return args, nil //nolint:nilerr // cobra reports unknown commands
	}
	at := slices.Index(args, cmd.Name()) + 1
	head, rest := slices.Clone(args[:at]), args[at:]
	if cmd.Name() == "bench" && len(rest) > 0 && rest[0] == "serve" { // as in vllm bench serve
		rest, env.vllm = rest[1:], true
	}
	l := &foreignLine{cmd: cmd, given: map[string][]string{}}
	rest, err = l.collect(rest)
	if err != nil {
		return nil, usage(err)
	}
	if err := l.translate(); err != nil {
		return nil, usage(err)
	}
	ours := l.flags()
	l.explain(env, publicArgs(env.secrets, ours))
	return slices.Concat(head, ours, rest), nil
}

// flags returns the translated flags.
func (l *foreignLine) flags() (out []string) {
	for _, t := range l.ours {
		out = append(out, "--"+t.name+"="+strings.Join(t.values, ","))
	}
	return out
}

// explain prints the translation for users who will type the flags again.
func (l *foreignLine) explain(env *Env, ours []string) {
	if len(ours) > 0 {
		var words []string
		for _, flag := range ours {
			name, value, _ := strings.Cut(flag, "=")
			words = append(words, strings.TrimSuffix(name+" "+outcome.Quoted(value), " true"))
		}
		_, _ = fmt.Fprintln(env.Stderr, "Flags of another tool, translated to "+strings.Join(words, " ")) // informational
	}
	for _, line := range l.idle {
		_, _ = fmt.Fprintln(env.Stderr, line) // informational
	}
}

// collect removes the foreign flags from a command line.
func (l *foreignLine) collect(args []string) (rest []string, err error) {
	for len(args) > 0 && args[0] != "--" {
		name, value, hasValue := l.flagAt(args[0])
		next := args[1:]
		if !hasValue && len(next) > 0 {
			value = next[0]
		}
		used, err := l.take(name, value, hasValue || len(next) > 0)
		switch {
		case err != nil:
			return nil, err
		case used == noWords:
			rest = append(rest, args[0])
		case used == nameAndValue && !hasValue:
			next = next[1:]
		}
		args = next
	}
	return append(rest, args...), nil
}

// How much of a command line a foreign flag uses.
const (
	noWords = iota
	nameOnly
	nameAndValue
)

// take collects one flag, if it belongs to another tool.
func (l *foreignLine) take(name, value string, hasValue bool) (used int, err error) {
	if changed := changedValues[name]; changed != nil {
		done, err := changed(l, value)
		if err != nil {
			return noWords, fmt.Errorf("--%s %s: %w", name, value, err)
		}
		return map[bool]int{true: nameAndValue}[done], nil
	}
	if ext := filepath.Ext(value); hasValue && name == "config-file" || name == "concurrency" && (ext == ".yml" || ext == ".yaml") { // -c
		l.files = append(l.files, value)
		return nameAndValue, nil
	}
	if !isForeign(name) || l.cmd.Flags().Lookup(name) != nil {
		return noWords, nil
	}
	if fixedFlags[name] != "" || needlessFlags[name] != "" {
		l.given[name] = append(l.given[name], "")
		return nameOnly, nil
	}
	if !hasValue {
		return noWords, fmt.Errorf("--%s needs a value", name)
	}
	l.given[name] = append(l.given[name], value)
	return nameAndValue, nil
}

// flagAt parses one word of a command line. The name is empty if the word is
// not a flag.
func (l *foreignLine) flagAt(word string) (name, value string, hasValue bool) {
	text, long := strings.CutPrefix(word, "--")
	if !long {
		letter, short := strings.CutPrefix(word, "-")
		return shortFlags[map[bool]string{true: letter}[short]], "", false
	}
	name, value, hasValue = strings.Cut(text, "=")
	return strings.ReplaceAll(name, "_", "-"), value, hasValue
}

// isForeign reports whether tacho can translate a flag.
func isForeign(name string) bool {
	return renamedFlags[name] != "" || fixedFlags[name] != "" || needlessFlags[name] != "" || needlessValues[name] != "" || combinedFlags[name] != nil
}

// translate converts the collected flags.
func (l *foreignLine) translate() error {
	for _, path := range l.files {
		if err := l.configuration(path); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.given)) {
		for _, value := range l.given[name] {
			switch {
			case renamedFlags[name] != "":
				l.set(renamedFlags[name], value)
			case fixedFlags[name] != "":
				flag, value, _ := strings.Cut(strings.TrimPrefix(fixedFlags[name], "--"), "=")
				l.set(flag, cmp.Or(value, "true"))
			case combinedFlags[name] != nil:
				if err := combinedFlags[name](l, value); err != nil {
					return fmt.Errorf("--%s %s: %w", name, value, err)
				}
			}
		}
		if why := cmp.Or(needlessFlags[name], needlessValues[name]); why != "" {
			l.idle = append(l.idle, fmt.Sprintf("--%s has no effect, because %s.", name, why))
		}
	}
	return nil
}

// set sets a flag of tacho. A second value makes a list, as in
// --max-concurrency 1,2.
func (l *foreignLine) set(name, value string) {
	i := slices.IndexFunc(l.ours, func(t foreignTarget) bool { return t.name == name })
	switch {
	case i < 0:
		l.ours = append(l.ours, foreignTarget{name, []string{value}})
	case !slices.Contains(l.ours[i].values, value):
		l.ours[i].values = append(l.ours[i].values, value)
	}
}

// replace sets a flag to one value.
func (l *foreignLine) replace(name, value string) {
	l.ours = slices.DeleteFunc(l.ours, func(t foreignTarget) bool { return t.name == name })
	l.set(name, value)
}

// value returns the value of a foreign flag.
func (l *foreignLine) value(names ...string) string {
	for _, name := range names {
		if all := l.given[name]; len(all) > 0 {
			return all[len(all)-1]
		}
	}
	return ""
}

// address translates the address of a server. The path of an endpoint selects
// the protocol.
func (l *foreignLine) address(value string) error {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	for _, end := range []struct{ path, backend string }{{"/v1/chat/completions", "openai-chat"}, {"/v1/completions", "openai"}, {"/v1/embeddings", "openai-embeddings"}, {"/v1", ""}} {
		before, found := strings.CutSuffix(strings.TrimSuffix(value, "/"), end.path)
		if !found {
			continue
		}
		if value = before; end.backend != "" {
			l.set("backend", end.backend)
		}
		break
	}
	l.set("base-url", value)
	return nil
}

// protocols are the names of protocols in AIPerf, genai-bench and GuideLLM.
var protocols = map[string]string{
	"/v1/audio/transcriptions": "openai-audio", "/v1/chat/completions": "openai-chat", "/v1/completions": "openai", "/v1/embeddings": "openai-embeddings",
	"chat": "openai-chat", "completion": "openai", "completions": "openai", "embeddings": "openai-embeddings", "openai": "openai-chat", "sglang": "openai-chat",
	"text-to-embeddings": "openai-embeddings", "text-to-rerank": "vllm-rerank", "text-to-text": "openai-chat", "rankings": "vllm-rerank", "vllm": "openai-chat",
}

func (l *foreignLine) protocol(value string) error {
	backend := protocols[value]
	if backend == "" {
		return errors.New("set --backend, and see tacho bench --help-all for all protocols")
	}
	if l.value("task") == "" || l.value("task") == value { // --task is more specific than --api-backend
		l.replace("backend", backend)
	}
	return nil
}

func (l *foreignLine) arrivals(value string) error {
	switch value {
	case "constant":
		l.set("burstiness", "inf")
	case "concurrency_burst":
		l.set("request-rate", "inf")
	case "gamma", "poisson":
	default:
		return errors.New("set --request-rate and --burstiness")
	}
	return nil
}

// rate translates --rate-type and --rate of GuideLLM. --rate alone is a request
// rate.
func (l *foreignLine) rate(string) error {
	rate := strings.Join(l.given["rate"], ",")
	return l.shape(l.value("rate-type"), rate, rate)
}

// shape sets the load for a profile of GuideLLM.
func (l *foreignLine) shape(kind, rate, streams string) error {
	switch kind {
	case "synchronous":
		l.replace("max-concurrency", "1")
	case "concurrent":
		if streams == "" {
			return errors.New("the number of streams is missing: set --max-concurrency")
		}
		l.replace("max-concurrency", streams)
	case "throughput":
		l.replace("request-rate", "inf")
	case "", "constant", "poisson", "async":
		if rate == "" {
			return errors.New("the rate is missing: set --request-rate")
		}
		l.replace("request-rate", rate)
		if kind == "constant" || kind == "async" {
			l.replace("burstiness", "inf")
		}
	case "sweep":
		l.replace("request-rate", "sweep")
		if rate != "" {
			l.replace("sweep-points", rate)
		}
	case "goodput", "knee":
		return errors.New("use tacho find --slo")
	case "replay":
		return errors.New("set --dataset-name to the format of the trace, such as mooncake")
	default:
		return errors.New("set --request-rate or --max-concurrency")
	}
	return nil
}

// lengthFlags are the parts of names that contain lengths of prompts and
// answers.
var lengthFlags = []struct {
	ours     string
	mean, sd []string
}{
	{
		"random-input-len",
		[]string{"isl", "synthetic-input-tokens-mean", "prompt-input-tokens-mean", "mean-input-tokens"},
		[]string{"isl-stddev", "synthetic-input-tokens-stddev", "prompt-input-tokens-stddev", "stddev-input-tokens"},
	},
	{
		"random-output-len",
		[]string{"osl", "output-tokens-mean", "prompt-output-tokens-mean", "mean-output-tokens"},
		[]string{"osl-stddev", "output-tokens-stddev", "prompt-output-tokens-stddev", "stddev-output-tokens"},
	},
}

func (l *foreignLine) lengths(string) error {
	for _, f := range lengthFlags {
		mean, sd := l.value(f.mean...), l.value(f.sd...)
		if l.value("session-turns-mean") != "" { // lengths of each turn
			f.ours = strings.Replace(f.ours, "random-", "turn-", 1)
		}
		if mean == "" && sd != "" {
			return fmt.Errorf("the mean is missing: write both as --%s 'normal(MEAN,%s)'", f.ours, sd)
		}
		if mean != "" {
			l.replace(f.ours, length(mean, sd, "", ""))
		}
	}
	return nil
}

// length writes a length in tokens: a number, or a normal distribution, limited
// to [low,high].
func length(mean, sd, low, high string) string {
	if sd == "" || sd == "0" {
		if low != high {
			return fmt.Sprintf("uniform(%s,%s)", cmp.Or(low, mean), cmp.Or(high, mean))
		}
		return mean
	}
	limits := ""
	if low != "" && high != "" {
		limits = fmt.Sprintf("[%s,%s]", low, high)
	}
	return fmt.Sprintf("normal(%s,%s)%s", mean, sd, limits)
}

func (l *foreignLine) turns(value string) error {
	l.set("dataset-name", "conversation")
	l.set("turns", value)
	return nil
}

func (l *foreignLine) adapters(value string) error {
	l.set("lora-modules", value)
	return nil
}

// adapterChoice translates SGLang's uniform distribution of adapters.
func (l *foreignLine) adapterChoice(value string) error {
	if value != "uniform" {
		return errors.New(untranslated["lora-zipf-alpha"])
	}
	l.set("lora-assignment", "random")
	return nil
}

// iteration accepts genai-bench's loop over concurrencies.
func (l *foreignLine) iteration(value string) error {
	if value != "num_concurrency" {
		return errors.New("give a list, as in --random-batch-size 1,2,4")
	}
	return nil
}

// backendType translates GuideLLM's default.
func (l *foreignLine) backendType(value string) error {
	if value != "openai_http" {
		return errors.New("tacho measures servers only: start one, and set --base-url")
	}
	l.set("backend", "openai-chat")
	return nil
}

func (l *foreignLine) serverFact(string) error {
	for _, name := range []string{"server-engine", "server-version"} {
		if v := l.value(name); v != "" {
			l.replace("metadata", strings.ReplaceAll(name, "-", "_")+"="+v)
		}
	}
	return nil
}

func (l *foreignLine) gpus(string) error {
	model := l.value("server-gpu-type")
	if model == "" {
		return errors.New("the type of GPU is missing: write both as --gpus 8xH100")
	}
	l.replace("gpus", cmp.Or(l.value("server-gpu-count"), "1")+"x"+model)
	return nil
}

func (l *foreignLine) minutes(value string) error {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return errors.New("not a number of minutes; set --max-seconds")
	}
	if l.value("max-requests-per-run") == "" {
		l.set("max-seconds", strconv.FormatFloat(60*n, 'g', -1, 64))
		return nil
	}
	return errors.New("tacho ends a level by one limit: keep --max-seconds or --num-prompts")
}

func (l *foreignLine) slowdown(value string) error {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n <= 0 {
		return errors.New("not a factor above 0; set --trace-speedup")
	}
	l.set("trace-speedup", strconv.FormatFloat(1/n, 'g', -1, 64))
	return nil
}

// extraInputs translates NAME:VALUE or a JSON object.
func (l *foreignLine) extraInputs(string) error {
	body := map[string]any{}
	for _, text := range l.given["extra-inputs"] {
		if json.Unmarshal([]byte(text), &body) == nil {
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return errors.New("want NAME:VALUE; set --extra-body to a JSON object")
		}
		var v any = value
		if json.Unmarshal([]byte(value), &v) != nil {
			v = value
		}
		body[name] = v
	}
	text, err := json.Marshal(body)
	l.replace("extra-body", string(text))
	return err
}

// output translates a result file. Its extension is the format, or
// kind=json,path=FILE of GuideLLM.
func (l *foreignLine) output(value string) error {
	if d, ok := keyed(value); ok && d["path"] != "" {
		value = d["path"]
	}
	format := strings.TrimPrefix(filepath.Ext(value), ".")
	if !slices.Contains([]string{"json", "csv", "html"}, format) {
		return errors.New("set --report FORMAT=PATH, as in --report json=results.json")
	}
	l.set("report", format+"="+value)
	return nil
}

// appended translates SGLang's file of results, one JSON object per line.
func (l *foreignLine) appended(value string) error {
	l.set("append-result", "true")
	if dir := filepath.Dir(value); dir != "." {
		l.set("result-dir", dir)
	}
	l.set("result-filename", filepath.Base(value))
	return nil
}
