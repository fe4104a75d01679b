package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

func coordinatesOf(levels []plan.Level) (out []string) {
	for _, l := range levels {
		var words []string
		for _, c := range l.Coordinates {
			words = append(words, c.Name+"="+c.Value)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// Any option with a number or a choice accepts a list. Each level has one value
// per list, and lists of loads are innermost.
func TestListsOfAnyOption(t *testing.T) {
	for words, want := range map[string][]string{
		"num-prompts=1,2 random-input-len=128,512": {"random-input-len=128 num-prompts=1", "random-input-len=128 num-prompts=2", "random-input-len=512 num-prompts=1", "random-input-len=512 num-prompts=2"},
		"backend=openai,openai-chat":               {"backend=openai", "backend=openai-chat"},
		"endpoint=/v1/a,/v1/b":                     {"endpoint=/v1/a", "endpoint=/v1/b"},
		"dataset-name=random,conversation":         {"dataset-name=random", "dataset-name=conversation"},
		"burstiness=0.5,1,inf request-rate=3":      {"burstiness=0.5", "burstiness=1", "burstiness=inf"},
		"random-input-len=uniform(1,9)":            {""},
		"random-input-len=uniform(1,9),64":         {"random-input-len=uniform(1,9)", "random-input-len=64"},
		"random-input-len=128,256,...,1024":        {"random-input-len=128", "random-input-len=256", "random-input-len=512", "random-input-len=1024"},
		"max-seconds=1,2m max-concurrency=1":       {"max-seconds=1", "max-seconds=120"},
		"ignore-eos=true,false":                    {"ignore-eos=true", "ignore-eos=false"},
		"temperature=0,0.7":                        {"temperature=0", "temperature=0.7"},
		"lora-assignment=random,round-robin":       {"lora-assignment=random", "lora-assignment=round-robin"},
		"scenario=256|32,128|16:40;1024,64:60":     {""},
		"mix=weight=1,3|label=chat mix=label=b|random-input-len=10,20": {
			"mix.chat.weight=1 mix.b.random-input-len=10", "mix.chat.weight=1 mix.b.random-input-len=20",
			"mix.chat.weight=3 mix.b.random-input-len=10", "mix.chat.weight=3 mix.b.random-input-len=20",
		},
		"request-rate=sweep burstiness=1,2": {"burstiness=1 request-rate=1", "burstiness=2 request-rate=1"},
		"num-runs=2 num-prompts=4,5":        {"num-prompts=4", "num-prompts=4", "num-prompts=5", "num-prompts=5"},
	} {
		p := plan.Default()
		for word := range strings.FieldsSeq(words) {
			name, value, _ := strings.Cut(word, "=")
			if name == "mix" {
				value = strings.ReplaceAll(value, "|", " ")
			}
			must.Do(t, p.Set(name, value))
		}
		if got := coordinatesOf(p.Levels()); !slices.Equal(got, want) {
			t.Errorf("%s: levels %q, want %q", words, got, want)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", words, err)
		}
		text, err := json.Marshal(&p)
		again := plan.Default()
		if err := again.Read(text, nil); err != nil || !slices.Equal(coordinatesOf(again.Levels()), want) {
			t.Errorf("%s: written as %s, and then %v %q", words, text, err, coordinatesOf(again.Levels()))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// The plan of a level contains the values of the level and no lists.
func TestPlanOfALevel(t *testing.T) {
	p := plan.Default()
	set(t, &p, "backend=openai,tgi", "random-output-len=7,9", "sweep-max-concurrency=2,4", "sweep-num-prompts-factor=10", "repeat=2")
	p.Mix = []string{"weight=1,3 label=a", "label=b"}
	var got []string
	for _, l := range p.Levels() {
		classes := must.Get(l.Plan.Classes())(t)
		n, _ := l.Plan.RandomOutputLen.Constant()
		got = append(got, fmt.Sprintf("%d %s %d %d %d weight %v #%d of %d", l.Index, l.Plan.Backend, n, l.Concurrency, l.Prompts, classes[0].Weight, l.Repeat, len(l.Plan.Levels())))
	}
	if len(got) != 32 || got[0] != "0 openai 7 2 20 weight 1 #1 of 1" || got[1] != "1 openai 7 2 20 weight 1 #2 of 1" || got[31] != "31 tgi 9 4 40 weight 3 #2 of 1" {
		t.Errorf("%q", got)
	}
	if one := p.Levels()[0].Plan; one.Validate() != nil || len(one.Levels()) != 1 {
		t.Errorf("the plan of one level, as an agent gets it: %d levels, %v", len(one.Levels()), one.Validate())
	}
	if want := "backend random-output-len mix.a.weight max-concurrency repeat"; p.Varies() != want {
		t.Errorf("varies %q, want %q", p.Varies(), want)
	}
}

func TestListsThatAreWrong(t *testing.T) {
	for words, want := range map[string]string{
		"request-rate=sweep max-concurrency=sweep":  "cannot be combined with --max-concurrency sweep",
		"request-rate=sweep shuffle-levels=true":    "cannot be combined with sweep",
		"request-rate=sweep sweep-points=2":         "at least 3",
		"num-prompts=1,...,5000 random-vocab-size=": "is not a whole number",
		"num-prompts=1,2,...,5000 burstiness=1,2,3": "more than 10000 levels",
		"seed=1,2":                      `"1,2" is not a whole number`,
		"backend=openai,nosuch":         "nosuch",
		"lora-assignment=random,best":   "write random or round-robin",
		"random-input-len=10,x":         `x`,
		"max-concurrency=4,0":           "--max-concurrency 0: want at least 1",
		"sweep-num-prompts-factor=5":    "multiple of --max-concurrency",
		"mix=weight=1,x":                "weight",
		"burstiness=sweep":              `"sweep" is not a number`,
		"request-rate=1,sweep":          "is not a number",
		"backend=tgi,openai mix=label=": "",
	} {
		p := plan.Default()
		var err error
		for word := range strings.FieldsSeq(words) {
			name, value, _ := strings.Cut(word, "=")
			if err == nil {
				err = p.Set(name, value)
			}
		}
		if err == nil {
			err = p.Validate()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
}

// Coordinates keep numbers and booleans as JSON types and survive encoding and
// decoding.
func TestCoordinatesAreTyped(t *testing.T) {
	in := outcome.Coordinates{{Name: "request-rate", Value: "10.5"}, {Name: "request-rate", Value: "inf"}, {Name: "ignore-eos", Value: "true"}, {Name: "backend", Value: "tgi"}, {Name: "model", Value: "7b"}, {Name: "endpoint", Value: ""}, {Name: "sim", Value: "null"}}
	b, err := json.Marshal(in)
	want := `[{"name":"request-rate","value":10.5},{"name":"request-rate","value":"inf"},{"name":"ignore-eos","value":true},{"name":"backend","value":"tgi"},{"name":"model","value":"7b"},{"name":"endpoint","value":""},{"name":"sim","value":"null"}]`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	var out outcome.Coordinates
	if err := json.Unmarshal(b, &out); err != nil || !slices.Equal(in, out) {
		t.Errorf("%v, %v", out, err)
	}
}
