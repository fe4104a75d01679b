package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/plan"
)

// otherText returns a value that differs from the default of o, in command-line
// form. An unknown type fails the test.
func otherText(t *testing.T, o plan.Option) []string {
	t.Helper()
	special := map[string]string{
		"workload.Length": "lognormal(600,0.8)[1,9000]", "workload.Scenario": "256|32,128|16:40;1024,64:60",
		"workload.Buckets": "{(64, 32, 1): 0.25, (8,8,4): 0.75}", "workload.Structured": `json:{"type":"object"}`,
		"workload.Window": "1m0s-2h0m0s", "plan.GPUs": "4xH100,4xA100", "workload.Ratios": `{"input":0.25,"output":0.5}`,
		"workload.MediaLimits": `{"image":3,"video":0}`,
		"plan.JSONObject":      `{"a":[1,2.5,"x",null,true],"b":{"c":"1"}}`, "plan.Seconds": "0.25",
	}
	typ := reflect.TypeOf(o.Value).Elem()
	if text := special[typ.String()]; text != "" {
		return []string{text}
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Bool:
		return []string{fmt.Sprint(o.Text() != "true")}
	case reflect.String:
		return []string{"say: \"é\"\n# 7 "}
	case reflect.Slice:
		return []string{"a: 1", "inf", ""}
	case reflect.Int, reflect.Uint64:
		return []string{"77"}
	case reflect.Float64:
		if o.Text() == "inf" {
			return []string{"2.5"}
		}
		return []string{"inf"}
	}
	t.Fatalf("--%s: a type without a test: %v", o.Name, typ)
	return nil
}

// unlike describes the first difference between two plans, in values or in
// Given.
func unlike(a, b *plan.Plan) string {
	theirs := b.Options()
	for i, o := range a.Options() {
		if !reflect.DeepEqual(o.Value, theirs[i].Value) {
			return fmt.Sprintf("--%s is %s, not %s", o.Name, theirs[i].Text(), o.Text())
		}
		if given := theirs[i].Given(); given != o.Given() {
			return fmt.Sprintf("--%s given: %v, not %v", o.Name, given, !given)
		}
	}
	return ""
}

// bothWays encodes a plan as JSON and YAML and decodes both.
func bothWays(t *testing.T, p *plan.Plan) {
	t.Helper()
	inJSON := must.Get(json.Marshal(p))(t)
	inYAML := must.Get(p.YAML())(t)
	for _, text := range [][]byte{inJSON, inYAML} {
		read := plan.Default()
		if err := read.Read(text, nil); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := unlike(p, &read); diff != "" {
			t.Fatalf("%s in\n%s", diff, text)
		}
	}
}

// Every option survives encoding and decoding: alone, together with all others,
// and explicitly set to its default.
func TestPlanBothWays(t *testing.T) {
	all, plain := plan.Default(), plan.Default()
	bothWays(t, &plain)
	for i, o := range plain.Options() {
		one, given := plan.Default(), plan.Default()
		for _, text := range otherText(t, o) {
			for _, p := range []*plan.Plan{&one, &all} {
				if err := p.Options()[i].Set(text); err != nil {
					t.Fatalf("--%s %s: %v", o.Name, text, err)
				}
			}
		}
		if reflect.DeepEqual(one.Options()[i].Value, o.Value) {
			t.Errorf("--%s: %q is its default", o.Name, otherText(t, o))
		}
		bothWays(t, &one)
		if text := o.Text(); text != "" {
			must.Do(t, given.Options()[i].Set(text))
			bothWays(t, &given)
			if b, _ := json.Marshal(&given); strings.Count(string(b), ":") < 1 {
				t.Errorf("--%s was given: %s", o.Name, b)
			}
		}
	}
	bothWays(t, &all)
	set(t, &plain, "trace-window=0-", "scenario=", "extra-body=null", "random-mm-limit-mm-per-prompt={}")
	bothWays(t, &plain)
	plain = plan.Default()
	if b, _ := json.Marshal(&plain); string(b) != "{}" {
		t.Errorf("of somebody who said nothing: %s", b)
	}
}

// Random values survive encoding and decoding.
func TestPlanBothWaysWithAnyValue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"", " ", "~", "null", "true", "no", "0x1f", "1_000", ".inf", "-", "- a", "a: b", "#", "a #b", "'", `"`, `\`, "\n", "\n\n a", "\t", "\r\n", "é", "\u2028", "\u0085", "😀", "*a", "&a", "!!int 3", "{", "]", "%", "@", "2024-01-01", "<<", "\x00", "?", "|", ">", "---", "...", "12e3", "=", "\ufeff"}
	word := func() string {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	float := func() float64 { return math.Ldexp(r.NormFloat64(), r.IntN(200)-100) }
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(6); {
		case n == 0 && depth > 0:
			return []any{value(depth - 1), value(depth - 1)}
		case n == 1 && depth > 0:
			return map[string]any{word(): value(depth - 1)}
		case n == 2:
			return float()
		case n == 3:
			return r.IntN(2) == 0
		case n == 4:
			return nil
		}
		return word()
	}
	for range 100 {
		p := plan.Default()
		p.Label, p.Header, p.Mix = word(), []string{word(), word()}, []string{word()}
		p.ExtraBody = plan.JSONObject{word(): value(3), word(): value(3)}
		p.Burstiness, p.RequestRate = float(), math.Abs(float())
		p.MaxSeconds = plan.Seconds(r.Float64() * 1e9)
		seed, rps := r.Uint64(), float()
		p.Seed, p.RampUpStartRPS = &seed, &rps
		bothWays(t, &p)
	}
}

// Read accepts all common spellings of a value.
func TestPlanAsPeopleWriteIt(t *testing.T) {
	for text, want := range map[string][]string{
		"num_prompts: 1,2,...,8":                    {"num-prompts=1,2,4,8"},
		"num-prompts: [1, 2, ..., 8]":               {"num-prompts=1,2,4,8"},
		"max_concurrency:\n- 3\n- 5\n":              {"max-concurrency=3,5"},
		"request_rate: .inf":                        {"request-rate=inf"},
		"request_rate: [4, inf]":                    {"request-rate=4,inf"},
		`{"request_rate": [4, "inf"]}`:              {"request-rate=4,inf"},
		"max_seconds: 2m\nlabel: 7":                 {"max-seconds=120", "label=7"},
		"label: 2024-01-01\nprofile: true":          {"label=2024-01-01", "profile=true"},
		"base_url: http://a:1":                      {"base-url=http://a:1"},
		"base_url: [http://a:1, http://b:1]":        {"base-url=http://a:1", "base-url=http://b:1"},
		`extra_body: '{"a": 1}'`:                    {`extra-body={"a":1}`},
		"extra_body: {a: 1, b: [0x10, 2024-01-01]}": {`extra-body={"a":1,"b":[16,"2024-01-01"]}`},
		"random_input_len: normal(100,20)":          {"random-input-len=normal(100,20)"},
		"random_range_ratio: {output: 0, input: 1}": {`random-range-ratio={"input":1,"output":0}`},
		"{\n\t\"label\": \"\\ud83d\\ude00\\/\"\n}":  {"label=😀/"},
		"# nothing\n":                               nil,
		"":                                          nil,
	} {
		got, wanted := plan.Default(), plan.Default()
		set(t, &wanted, want...)
		if err := got.Read([]byte(text), nil); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := unlike(&wanted, &got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Errors in a plan name the line, the option and a fix.
func TestPlanWithMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"seed: 1\nnum_promts: 3":               "line 2: unknown option num_promts, did you mean num_prompts?",
		"zzzzzzzzzz: 3":                        "line 1: unknown option zzzzzzzzzz (",
		"seed: 1\n\nport: http":                `line 3: port: "http" is not a whole number`,
		"{\"seed\": 1,\n\"port\": \"x\"}":      `line 2: port: "x" is not a whole number`,
		"num_prompts: many":                    `line 1: num_prompts: "many" is not a whole number`,
		"num_prompts: 999999999":               "line 1: num_prompts: 999999999 is too large",
		"profile: sometimes":                   `line 1: profile: "sometimes" is not true or false`,
		"label: [a, b]":                        "line 1: label: want one value, not a list",
		"label: {a: b}":                        "not a mapping",
		"goodput:\n- ttft: 200":                "not a mapping",
		"label:":                               "line 1: label: no value",
		"extra_body: [1]":                      "line 1: extra_body: want one value, not a list",
		"extra_body: {a: .inf}":                "line 1: extra_body: line 1: JSON cannot represent .inf",
		"seed: 1\nhost: a\nseed: 2":            "line 3: seed is already set on line 1",
		"num_prompts: 1\nnum-prompts: 2":       "line 2: num-prompts is already set on line 1",
		"label: *secret":                       "a plan cannot contain aliases",
		"label: &a x\nhost: *a":                "a plan cannot contain aliases",
		"[1, 2]":                               "options with values",
		"seed":                                 "options with values",
		"a: 1\nb: c: d":                        "line 2: mapping values are not allowed",
		"seed: 1\n---\nseed: 2":                "several documents",
		"header: [\"X-Api-Key=[redacted]\"]":   "line 1: header: the file contains a redacted secret, set it with --header",
		"base_url: http://[redacted]@host:80/": "set it with --base-url",
	} {
		p := plan.Default()
		if err := p.Read([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "'secret'") {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
}

// Flags override the file, also for redacted values. A redacted API key in the
// file is ignored.
func TestFlagsGoBeforeThePlan(t *testing.T) {
	p := plan.Default()
	set(t, &p, "num-prompts=1000", "header=A=1", "base-url=http://me:pw-of-mine@host")
	secrets := &redact.Secrets{}
	text := "num_prompts: 7\nheader: [B=2, 'C=[redacted]']\nbase_url: http://[redacted]@host\napi_key: '[redacted]'\nmax_seconds: 3\nendpoint: /x?code=canary-42"
	must.Do(t, p.Read([]byte(text), secrets))
	want := plan.Default()
	set(t, &want, "num-prompts=1000", "header=A=1", "base-url=http://me:pw-of-mine@host", "max-seconds=3", "endpoint=/x?code=canary-42")
	if diff := unlike(&want, &p); diff != "" {
		t.Error(diff)
	}
	if got := secrets.Sweep("it said canary-42"); got != "it said [redacted]" {
		t.Errorf("the secrets did not learn those of the file: %s", got)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("num_prompts: [1, 2]\nextra_body: {a: [1, b]}")
	f.Add(`{"label": "\u0000", "random_range_ratio": {"input": 0.5, "output": 1}}`)
	f.Add("a: &x [*x]")
	f.Add(strings.Repeat("- ", 2000))
	f.Add("a: " + strings.Repeat("[", 2000))
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file") || strings.Contains(text, "@") {
			t.Skip("it may read files")
		}
		p, bad := plan.Default(), error(nil)
		bounded.Run(t, 256<<20, func() { bad = p.Read([]byte(text), nil) })
		if bad != nil {
			return
		}
		b := must.Get(p.YAML())(t)
		read := plan.Default()
		if err := read.Read(b, nil); err != nil {
			t.Fatalf("%v in\n%s", err, b)
		}
		if c, err := read.YAML(); err != nil || string(c) != string(b) {
			t.Error(cmp.Diff(string(b), string(c)), err)
		}
	})
}

// The coordinator clears some options before it sends a plan to agents. A list that was
// set and cleared decodes as an empty list.
func TestClearedListDecodes(t *testing.T) {
	p := plan.Default()
	for _, o := range p.Options() {
		if o.Name == "trust-agent" {
			must.Do(t, o.Set("any"))
		}
	}
	p.TrustAgent = nil
	text := must.Get(json.Marshal(&p))(t)
	q := plan.Default()
	if err := q.Read(text, &redact.Secrets{}); err != nil || len(q.TrustAgent) != 0 {
		t.Errorf("%s: %v, %q", text, err, q.TrustAgent)
	}
}
