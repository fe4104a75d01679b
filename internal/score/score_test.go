package score

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
)

// mark scores an answer by a named scorer.
func mark(t *testing.T, scorer, text, reference string) Result {
	t.Helper()
	s, err := Named(scorer)
	if err != nil {
		t.Fatal(err)
	}
	return s.Score(&Answer{Text: text, Content: text, Finish: "stop"}, &tacho.Request{Reference: reference})
}

func TestScorers(t *testing.T) {
	right, wrong, unparsed := Result{Mark: Right}, Result{Mark: Wrong}, Result{Mark: Right, Unparsed: true}
	invalid := Result{Mark: Wrong, Unparsed: true}
	for _, c := range []struct {
		scorer, text, reference string
		want                    Result
	}{
		{"gsm8k-strict", "so 5 + 5.\n#### 1,010", "1010", right},
		{"gsm8k-strict", "#### 3\n#### 4", "3", right}, // the first
		{"gsm8k-strict", "The answer is 10.", "10", invalid},
		{"gsm8k-flexible", "#### 3 and then $4.", "4", right}, // the last, without $ and the final dot
		{"gsm8k-flexible", "no number", "4", invalid},
		{"gsm8k-flexible", "x 5", "Sum.\n#### 5", right}, // a reference with its reasoning
		{"gsm8k-numeric", "#### 10.0", "10", right},
		{"gsm8k-numeric", "it is 10.00", "10", unparsed},
		{"gsm8k-numeric", "#### 11", "10", wrong},
		{"aime-int", `so \boxed{042}`, "42", right},
		{"aime-int", `\boxed{1} then \boxed{x = \frac{1}{2}, 33}`, "033", right},
		{"aime-int", "it is 42", "42", unparsed},
		{"aime-int", `\boxed{4\!2}`, "42", wrong},
		{"choice", "The answer is (C), not the answer is (D).", "D", right}, // the last
		{"choice", "Answer: B\nor so", "(B)", right},
		{"choice", "I think it is J", "J", unparsed},
		{"choice-4", "I think it is J", "J", invalid},
		{"exact", " yes\n", "yes", right},
		{"exact", "Yes", "yes", wrong},
		{"contains", "It is PARIS.", "Paris", right},
		{"regex", "abc 12", `^\w+ \d+$`, right},
		{"regex", "abc", `(`, Result{Mark: LeftOut, Why: "the reference is no regular expression"}},
		{"json", "```json\n{\"a\": 1}\n```", "", Result{Mark: Right, Unparsed: true}},
		{"json", `{"a": 1} and`, "", Result{Mark: Wrong, Why: "not JSON"}},
		{"json", strings.Repeat("[", 300) + strings.Repeat("]", 300), "", Result{Mark: Wrong, Why: "not JSON"}},
		{"json-schema", `{"a": "x"}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, Result{Mark: Wrong, Why: "JSON, but not valid against the schema"}},
		{"json-schema", `{"a": 7}`, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, right},
		{"json-schema", `"127.0.0.1"`, `{"type":"string","format":"ipv6"}`, Result{Mark: Wrong, Why: "JSON, but not valid against the schema"}},
		{"json-schema", `{}`, `{"$ref":"https://example.com/other.json"}`, Result{Mark: LeftOut, Why: "the schema is not valid"}},
		{"json-schema", `{}`, `{"type":"nonsense"}`, Result{Mark: LeftOut, Why: "the schema is not valid"}},
	} {
		if got := mark(t, c.scorer, c.text, c.reference); got != c.want {
			t.Errorf("%s of %q with %q: %+v, want %+v", c.scorer, c.text, c.reference, got, c.want)
		}
	}
}

// An answer cut while the model reasons is no answer. Reasoning without any other text counts if it was not cut.
func TestReasoning(t *testing.T) {
	s, _ := Named("gsm8k-flexible")
	for _, c := range []struct {
		a       Answer
		want    Mark
		thought bool
	}{
		{Answer{Text: "hm 4\n#### 5", Content: "#### 5", Finish: "stop"}, Right, false},
		{Answer{Text: "is it 5", Finish: "length"}, NoAnswer, false},
		{Answer{Text: "it is 5", Finish: "stop"}, Right, true},
		{Answer{Text: "<think>4", Content: "<think>4", Finish: "length"}, NoAnswer, false},
		{Answer{Text: "<think>4</think>5", Content: "<think>4</think>5", Finish: "stop"}, Right, false},
		{Answer{Text: "4</think>5", Content: "4</think>5", Finish: "stop"}, Right, false},
		{Answer{Finish: "stop"}, Wrong, false},
	} {
		a := c.a
		if got := s.Score(&a, &tacho.Request{Reference: "5"}); got.Mark != c.want || a.NoReasoning != c.thought {
			t.Errorf("%+v: mark %d, reasoning scored %v", c.a, got.Mark, a.NoReasoning)
		}
	}
}

func TestFunctionCalls(t *testing.T) {
	key := func(category, truth string) string {
		return `{"category":"` + category + `","function":[{"name":"geo.area","parameters":{"type":"dict","properties":{` +
			`"base":{"type":"integer"},"height":{"type":"float"},"unit":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},` +
			`"box":{"type":"dict"}},"required":["base"]}}],"ground_truth":` + truth + `}`
	}
	one := `[{"geo.area":{"base":[10],"height":[5.0,""],"unit":["","Square Meters"],"tags":[["A-b"],""],"box":[{"x":[1,2]},""]}}]`
	two := `[{"geo.area":{"base":[10]}},{"geo.area":{"base":[11]}}]`
	for _, c := range []struct {
		category, truth, text string
		want                  bool
	}{
		{"simple_python", one, `[geo.area(base=10, height=5)]`, true},
		{"simple_python", one, `geo_area(base=10, unit="square-meters", tags=['a b'])`, true},
		{"simple_python", one, `[{"geo.area": {"base": 10, "box": {"x": 2}}}]`, true},
		{"simple_python", one, `[{"name": "geo.area", "arguments": {"base": 10, "box": {"x": 3}}}]`, false},
		{"simple_python", one, `[geo.area(base=10.0)]`, false}, // an integer is wanted
		{"simple_python", one, `[geo.area(base=True)]`, false},
		{"simple_python", one, `[geo.area(height=5)]`, false},          // required
		{"simple_python", one, `[geo.area(base=10, color=1)]`, false},  // unknown
		{"simple_python", one, `[geo.area(base=10, unit="m")]`, false}, // not accepted
		{"simple_python", one, `[geo.area(base=10), geo.area(base=10)]`, false},
		{"parallel", two, `[geo.area(base=11), geo.area(base=10)]`, true},
		{"parallel", two, `[geo.area(base=10), geo.area(base=10)]`, false},
		{"irrelevance", `null`, `I cannot do that.`, true},
		{"irrelevance", `null`, `[geo.area(base=1)]`, false},
		{"live_relevance", `null`, `[geo.area(base=1)]`, true},
	} {
		if got := mark(t, "bfcl", c.text, key(c.category, c.truth)); (got.Mark == Right) != c.want {
			t.Errorf("%s, %s: %+v, want %v", c.category, c.text, got, c.want)
		}
	}
	broken := Answer{Calls: []tacho.FunctionCall{{Name: "geo_area", Arguments: `{"base": 1`}}}
	s, _ := Named("bfcl")
	if got := s.Score(&broken, &tacho.Request{Reference: key("simple_python", one)}); got.Why != "arguments are not a JSON object" {
		t.Errorf("broken arguments: %+v", got)
	}
	if got := mark(t, "bfcl", "f()", key("simple_java", one)); got.Mark != LeftOut {
		t.Errorf("Java: %+v", got)
	}
}

// A text from a server is never trusted.
func FuzzCallsInText(f *testing.F) {
	for _, seed := range []string{`[f(a=1)]`, `f(a={"b": [1, (2, 3)]}, c='x\'y')`, `[{"f": {}}]`, "```\nf()\n```", `f(a=-1.5e3, b=None)`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, ok := callsInText(text)
		for _, c := range calls {
			if _, err := json.Marshal(c.args); ok && err != nil && !strings.Contains(err.Error(), "NaN") && !strings.Contains(err.Error(), "Inf") {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
