package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// configuration reads the options of inference-perf from its file. Flags on the
// same command line take precedence.
func (l *foreignLine) configuration(path string) error {
	options, err := perfOptions(path)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch {
		case untranslated[name] != "":
			return fmt.Errorf("%s: %s: %s", path, name, untranslated[name])
		case isForeign(name):
			if l.given[name] == nil {
				l.given[name] = []string{options[name]}
			}
		case !strings.HasPrefix(name, "report.") && !strings.HasPrefix(name, "metrics."): // the report has all figures
			return fmt.Errorf("%s: tacho cannot translate %s: remove it, or write a plan with tacho init", path, name)
		}
	}
	return nil
}

// perfOptions reads a file of inference-perf.
func perfOptions(path string) (map[string]string, error) {
	if ext := filepath.Ext(path); ext != ".yml" && ext != ".yaml" {
		return nil, errors.New("write the options as flags, and store them with tacho init")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if tree["load"] == nil && tree["server"] == nil {
		return nil, fmt.Errorf("%s is a configuration of another tool: write a plan with tacho init, and read it with --plan", path)
	}
	options := map[string]string{"api.type": "completion"} // inference-perf's default
	flatten(options, "", tree)
	return options, nil
}

// flatten writes each value of a tree to its path, as the flags of
// inference-perf do: server.base-url. Lists are JSON.
func flatten(out map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			flatten(out, strings.TrimPrefix(path+"."+strings.ReplaceAll(name, "_", "-"), "."), child)
		}
	case []any:
		text, _ := json.Marshal(v) // from YAML with text keys
		out[path] = string(text)
	case nil:
	default:
		out[path] = fmt.Sprint(v)
	}
}

// A perfStage is a level of inference-perf.
type perfStage struct {
	Rate        float64 `json:"rate"`
	Duration    float64 `json:"duration"`
	Requests    int     `json:"num_requests"`
	Concurrency int     `json:"concurrency_level"`
}

// stages translates load.type and load.stages.
func (l *foreignLine) stages(string) error {
	kind := cmp.Or(l.value("load.type"), "constant")
	if !slices.Contains([]string{"constant", "poisson", "concurrent"}, kind) {
		return errors.New("set --dataset-name to the format of the trace, such as mooncake")
	}
	if kind == "constant" {
		l.replace("burstiness", "inf")
	}
	var stages []perfStage
	if text := l.value("load.stages"); text == "" {
		return nil
	} else if err := json.Unmarshal([]byte(text), &stages); err != nil {
		return fmt.Errorf("not a list of stages: %w", err)
	}
	if kind == "concurrent" {
		return errors.Join(l.everyStage("max-concurrency", stages, func(s perfStage) float64 { return float64(s.Concurrency) }),
			l.oneForAll("num-prompts", stages, func(s perfStage) float64 { return float64(s.Requests) }))
	}
	return errors.Join(l.everyStage("request-rate", stages, func(s perfStage) float64 { return s.Rate }),
		l.oneForAll("max-seconds", stages, func(s perfStage) float64 { return s.Duration }))
}

// everyStage sets a flag to the list of values of the stages.
func (l *foreignLine) everyStage(name string, stages []perfStage, value func(perfStage) float64) error {
	var list []string
	for _, s := range stages {
		if value(s) <= 0 {
			return fmt.Errorf("a stage has no value for --%s", name)
		}
		list = append(list, strconv.FormatFloat(value(s), 'g', -1, 64))
	}
	l.replace(name, strings.Join(list, ","))
	return nil
}

// oneForAll sets a flag to the value that all stages share.
func (l *foreignLine) oneForAll(name string, stages []perfStage, value func(perfStage) float64) error {
	for _, s := range stages {
		if value(s) != value(stages[0]) {
			return fmt.Errorf("all levels of tacho have the same --%s: keep one, or write one command per stage", name)
		}
	}
	return l.everyStage(name, stages[:min(1, len(stages))], value)
}

// sweepStages translates load.sweep with inference-perf's defaults.
func (l *foreignLine) sweepStages(string) error {
	l.replace("request-rate", "sweep")
	l.replace("sweep-points", cmp.Or(l.value("load.sweep.num-stages"), "5"))
	l.replace("max-seconds", cmp.Or(l.value("load.sweep.stage-duration"), "180"))
	return nil
}

// traffic translates the adapters of load.lora_traffic_split. --lora-assignment
// random gives each adapter the same share.
func (l *foreignLine) traffic(value string) error {
	var split []struct {
		Name  string  `json:"name"`
		Split float64 `json:"split"`
	}
	if err := json.Unmarshal([]byte(value), &split); err != nil {
		return err
	}
	var names []string
	for _, s := range split {
		if s.Split != split[0].Split {
			return errors.New("tacho gives each adapter the same share: set --lora-modules, with an adapter named twice for twice the share")
		}
		names = append(names, s.Name)
	}
	l.replace("lora-modules", strings.Join(names, ","))
	return nil
}

// partOfPrefix accepts an option that generator reads.
func (l *foreignLine) partOfPrefix(string) error { return nil }

// distributions translates data.input_distribution and data.output_distribution
// with inference-perf's defaults.
func (l *foreignLine) distributions(string) error {
	for theirs, ours := range map[string]string{"data.input-distribution.": "random-input-len", "data.output-distribution.": "random-output-len"} {
		of := func(name, standard string) string { return cmp.Or(l.value(theirs+name), standard) }
		given := false
		for name := range l.given {
			given = given || strings.HasPrefix(name, theirs)
		}
		if !given {
			continue
		}
		switch mean, low, high := of("mean", "512"), of("min", "10"), of("max", "1024"); of("type", "normal") {
		case "normal":
			l.replace(ours, length(mean, of("std-dev", "200"), low, high))
		case "fixed":
			l.replace(ours, mean)
		case "uniform":
			l.replace(ours, fmt.Sprintf("uniform(%s,%s)", low, high))
		default:
			return fmt.Errorf("write the lengths as a distribution, as in --%s 'lognormal(600,0.8)'", ours)
		}
	}
	return nil
}

// streams accepts api.streaming: true.
func (l *foreignLine) streams(value string) error {
	if value == "false" {
		return errors.New("remove it, because tacho always streams")
	}
	return nil
}

// percentiles translates a JSON list of percentiles.
func (l *foreignLine) percentiles(value string) error {
	l.replace("metric-percentiles", strings.NewReplacer("[", "", "]", "", " ", "").Replace(value))
	return nil
}
