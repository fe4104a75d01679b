package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sharedPrefixes are the flags of SGLang's generated-shared-prefix with their
// defaults, and the flags of prefix_repetition.
var sharedPrefixes = []struct{ theirs, standard, ours string }{
	{"gsp-num-groups", "64", "prefix-repetition-num-prefixes"},
	{"gsp-system-prompt-len", "2048", "prefix-repetition-prefix-len"},
	{"gsp-question-len", "128", "prefix-repetition-suffix-len"},
	{"gsp-output-len", "256", "prefix-repetition-output-len"},
}

// defaultPerGroup is SGLang's default of --gsp-prompts-per-group.
const defaultPerGroup = "16"

// sharedPrefix translates the dataset generated-shared-prefix. Its number of
// prompts is the number of groups times the prompts per group.
func (l *foreignLine) sharedPrefix(string) error {
	l.replace("dataset-name", "prefix_repetition")
	for _, f := range sharedPrefixes {
		value := l.value(f.theirs)
		if value == "" {
			value = f.standard
		}
		l.replace(f.ours, value)
	}
	groups, each := l.value("gsp-num-groups"), l.value("gsp-prompts-per-group")
	if groups == "" {
		groups = sharedPrefixes[0].standard
	}
	if each == "" {
		each = defaultPerGroup
	}
	n, err := strconv.Atoi(groups)
	k, bad := strconv.Atoi(each)
	if err != nil || bad != nil {
		return errors.New("not a whole number")
	}
	l.replace("num-prompts", strconv.Itoa(n*k))
	return nil
}

func (l *foreignLine) popularity(value string) error {
	if value != "uniform" {
		return errors.New(untranslated["gsp-zipf-alpha"])
	}
	return nil
}

func (l *foreignLine) oneTurn(value string) error {
	if value != "1" {
		return fmt.Errorf("use --dataset-name conversation --turns %s --system-prompt-len N", value)
	}
	return nil
}

func (l *foreignLine) exactLengths(value string) error {
	if f, err := strconv.ParseFloat(value, 64); err != nil || f != 1 {
		return errors.New("write the lengths as distributions, as in --prefix-repetition-suffix-len 'uniform(64,128)'")
	}
	return nil
}

// dataset translates names of datasets. Datasets of tacho are left alone.
func (l *foreignLine) dataset(value string) (bool, error) {
	switch value {
	case "generated-shared-prefix":
		return true, l.sharedPrefix("")
	case "random-ids":
		l.replace("dataset-name", "random")
	case "openai":
		l.replace("dataset-name", "custom")
	case "speed-bench":
		l.replace("dataset-name", "speed_bench")
	case "image":
		return true, errors.New("use --dataset-name random_mm")
	case "mmmu", "longbench_v2", "agentic-trace":
		return true, errors.New("tacho has no such dataset; tacho bench --help-all lists the datasets")
	default:
		return false, nil
	}
	return true, nil
}

// inputFile translates AIPerf's --input-file.
func (l *foreignLine) inputFile(value string) error {
	l.set("dataset-path", value)
	if l.value("custom-dataset-type") == "" {
		l.set("dataset-name", "custom")
	}
	return nil
}

// datasetType translates AIPerf's names of file formats.
func (l *foreignLine) datasetType(value string) error {
	ours := map[string]string{"mooncake_trace": "mooncake", "bailian_trace": "bailian", "burst_gpt_trace": "burstgpt_trace", "weka_trace": "weka", "single_turn": "custom", "multi_turn": "custom"}[value]
	if ours == "" {
		return errors.New("set --dataset-name; tacho bench --help-all lists the datasets")
	}
	l.set("dataset-name", ours)
	return nil
}

// keyed parses KEY=VALUE,KEY=VALUE or a JSON object, as GuideLLM does.
func keyed(text string) (map[string]string, bool) {
	out, object := map[string]string{}, map[string]any{}
	if json.Unmarshal([]byte(text), &object) == nil {
		for name, v := range object {
			out[name] = fmt.Sprint(v)
		}
		return out, true
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, false
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out, true
}

// known returns an error for the first key that is not in names.
func known(keys map[string]string, names ...string) error {
	for name := range keys {
		if !slices.Contains(names, name) {
			return fmt.Errorf("tacho cannot translate %s; tacho bench --help-all lists all options", name)
		}
	}
	return nil
}

// data translates --data of GuideLLM with synthetic prompts.
func (l *foreignLine) data(value string) error {
	d, ok := keyed(value)
	if !ok || d["prompt_tokens"] == "" || d["kind"] != "" && d["kind"] != "synthetic_text" {
		return errors.New("set --dataset-name and --dataset-path, as in --dataset-name hf --dataset-path OWNER/NAME")
	}
	if err := known(d, "kind", "prompt_tokens", "prompt_tokens_stdev", "prompt_tokens_min", "prompt_tokens_max", "output_tokens", "output_tokens_stdev", "output_tokens_min", "output_tokens_max", "prefix_tokens", "prefix_count", "turns", "samples"); err != nil {
		return err
	}
	of := func(name string) string {
		return length(d[name], d[name+"_stdev"], d[name+"_min"], d[name+"_max"])
	}
	names := [4]string{"random-input-len", "random-output-len", "random-prefix-len", "random-num-prefixes"}
	if d["turns"] != "" && d["turns"] != "1" {
		l.replace("dataset-name", "conversation")
		l.replace("turns", d["turns"])
		names = [4]string{"turn-input-len", "turn-output-len", "system-prompt-len", "num-system-prompts"}
	}
	for i, text := range []string{of("prompt_tokens"), of("output_tokens"), d["prefix_tokens"], d["prefix_count"]} {
		if text != "" {
			l.replace(names[i], text)
		}
	}
	return nil
}

// partOf translates values of GuideLLM such as kind=static,value=7, of which
// one part is tacho's value.
func partOf(flag, part string) func(*foreignLine, string) (bool, error) {
	return func(l *foreignLine, value string) (bool, error) {
		d, ok := keyed(value)
		if !ok || d["kind"] == "" || d[part] == "" {
			return false, nil
		}
		l.set(flag, d[part])
		return true, nil
	}
}

// constraint translates --constraint of GuideLLM.
func (l *foreignLine) constraint(value string) error {
	d, _ := keyed(value)
	switch d["kind"] {
	case "max_duration":
		l.set("max-seconds", d["seconds"])
	case "max_requests":
		l.set("num-prompts", d["count"])
	default:
		return errors.New("set --max-seconds or --num-prompts")
	}
	return nil
}

// profile translates --profile of GuideLLM. Without a profile of GuideLLM,
// --profile is a switch of tacho.
func (l *foreignLine) profile(value string) (bool, error) {
	d, ok := keyed(value)
	if !ok {
		d = map[string]string{"kind": value}
	}
	if !slices.Contains([]string{"synchronous", "concurrent", "throughput", "constant", "poisson", "async", "sweep", "goodput", "knee", "replay"}, d["kind"]) {
		return false, nil
	}
	rate := d["rate"]
	if rate == "" {
		rate = d["sweep_size"]
	}
	return true, l.shape(d["kind"], rate, d["streams"])
}

// backend translates --backend kind=openai_http,target=URL of GuideLLM.
func (l *foreignLine) backend(value string) (bool, error) {
	d, ok := keyed(value)
	if !ok || d["kind"] == "" {
		return false, nil
	}
	if err := known(d, "kind", "target", "model", "request_format", "api_key"); err != nil {
		return true, err
	}
	if d["kind"] != "openai_http" {
		return true, errors.New("tacho measures servers only: start one, and set --base-url")
	}
	l.replace("backend", "openai-chat") // GuideLLM's default
	if d["request_format"] != "" {
		if err := l.protocol(d["request_format"]); err != nil {
			return true, err
		}
	}
	if d["target"] != "" {
		if err := l.address(d["target"]); err != nil {
			return true, err
		}
	}
	for _, name := range []string{"model", "api_key"} {
		if d[name] != "" {
			l.replace(strings.ReplaceAll(name, "_", "-"), d[name])
		}
	}
	return true, nil
}

// generator translates data.type.
func (l *foreignLine) generator(value string) error {
	switch value {
	case "random", "synthetic":
		l.set("dataset-name", "random")
		return l.distributions("")
	case "shareGPT":
		l.set("dataset-name", "sharegpt")
	case "shared_prefix":
		l.set("dataset-name", "prefix_repetition")
		for _, f := range perfPrefixes {
			l.replace(f.ours, cmp.Or(l.value(f.theirs, f.alias), f.standard))
		}
	default:
		return errors.New("set --dataset-name; tacho bench --help-all lists the datasets")
	}
	return nil
}

// perfPrefixes are the options of inference-perf's shared_prefix with their
// defaults, and the flags of prefix_repetition.
var perfPrefixes = []struct{ theirs, alias, standard, ours string }{
	{"data.shared-prefix.num-groups", "data.shared-prefix.num-unique-system-prompts", "10", "prefix-repetition-num-prefixes"},
	{"data.shared-prefix.system-prompt-len", "", "100", "prefix-repetition-prefix-len"},
	{"data.shared-prefix.question-len", "", "50", "prefix-repetition-suffix-len"},
	{"data.shared-prefix.output-len", "", "50", "prefix-repetition-output-len"},
}
