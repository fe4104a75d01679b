package score

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// A check finds one sign of a broken server in an answer.
type check struct {
	kind    string
	text    bool // needs the text
	real    bool // only for real text whose length the model chose
	request bool // needs the request
	found   func(k *kept, q *tacho.Request) bool
}

var checks = []check{
	{kind: "empty with finish reason stop", text: true, found: func(k *kept, _ *tacho.Request) bool {
		return k.Finish == "stop" && strings.TrimSpace(k.Text) == "" && len(k.Calls) == 0
	}},
	{kind: "with invalid UTF-8 or replacement characters", text: true, found: func(k *kept, _ *tacho.Request) bool {
		return !utf8.ValidString(k.Text) || strings.ContainsRune(k.Text, utf8.RuneError)
	}},
	{kind: "with control characters", text: true, found: func(k *kept, _ *tacho.Request) bool { return hasControl(k.Text) }},
	{kind: "ended by length before the requested length", found: func(k *kept, _ *tacho.Request) bool {
		return k.Finish == "length" && k.counted && k.output > 0 && k.output < k.asked
	}},
	{kind: "longer than requested", found: func(k *kept, _ *tacho.Request) bool {
		return k.counted && k.asked > 0 && k.output > k.asked
	}},
	{kind: "in a loop", text: true, real: true, found: func(k *kept, _ *tacho.Request) bool { return loops(k.Text) }},
	{kind: "with tool arguments that are not JSON", text: true, found: func(k *kept, _ *tacho.Request) bool {
		for _, c := range k.Calls {
			if c.Arguments != "" && k.Finish != "length" && !json.Valid([]byte(c.Arguments)) {
				return true
			}
		}
		return false
	}},
	{kind: "with a tool that was not offered", text: true, request: true, found: func(k *kept, q *tacho.Request) bool {
		return len(k.Calls) > 0 && callsUnknown(k.Calls, q)
	}},
	{kind: "that repeat the prompt", text: true, real: true, request: true, found: func(k *kept, q *tacho.Request) bool { return echoes(k.Text, promptOf(q)) }},
}

// Kinds of findings that need all answers of a level.
const (
	noFinish  = "without a finish reason"
	duplicate = "equal to the answer to another prompt"
)

// check runs all checks.
func (b *Book) check() *metric.Answers {
	out := &metric.Answers{}
	counts, first := map[string]int{}, map[string]uint64{}
	equal, sessions := b.duplicates(), map[uint64]*tacho.Session{}
	finished := slices.ContainsFunc(b.kept, func(k kept) bool { return k.Finish != "" })
	for i := range b.kept {
		k := &b.kept[i]
		if k.failed {
			continue
		}
		if k.text {
			out.Checked++
		}
		found := b.findings(k, sessions)
		if finished && k.Finish == "" {
			found = append(found, noFinish)
		}
		k.broken = len(found) > 0 // equal answers depend on the number of prompts, which differs alone
		if equal[k.key] {
			found = append(found, duplicate)
		}
		if len(found) > 0 {
			out.Flagged++
		}
		for _, kind := range found {
			if counts[kind]++; counts[kind] == 1 {
				first[kind] = k.session
			}
		}
	}
	out.Unchecked = b.seen - out.Checked
	for _, kind := range kinds() {
		if counts[kind] > 0 {
			out.Findings = append(out.Findings, metric.AnswerFinding{Kind: kind, Count: counts[kind], Session: first[kind]})
		}
	}
	return out
}

// kinds returns all kinds of findings, in the order of reports.
func kinds() []string {
	out := []string{noFinish, duplicate}
	for _, c := range checks {
		out = append(out, c.kind)
	}
	return out
}

// findings returns the kinds of findings in one answer.
func (b *Book) findings(k *kept, sessions map[uint64]*tacho.Session) (out []string) {
	var q *tacho.Request
	if b.Text || len(k.Calls) > 0 {
		q = b.request(k.key, sessions)
	}
	for i := range checks {
		c := &checks[i]
		applies := (k.text || !c.text) && (b.Text && !k.exact || !c.real) && (q != nil || !c.request)
		if applies && c.found(k, q) {
			out = append(out, c.kind)
		}
	}
	return out
}

// leastEqual is the length in bytes from which equal answers to different prompts are a finding. Short answers, such as
// numbers, are often equal.
const leastEqual = 64

var hashSeed = maphash.MakeSeed()

// duplicates finds long answers that are equal although their prompts differ.
func (b *Book) duplicates() map[key]bool {
	if !b.Text || b.Source == nil {
		return nil
	}
	by := map[uint64][]int{}
	for i := range b.kept {
		if k := &b.kept[i]; k.text && !k.exact && !k.failed && len(k.Text) >= leastEqual {
			h := maphash.String(hashSeed, k.Text)
			by[h] = append(by[h], i)
		}
	}
	out := map[key]bool{}
	for _, same := range by {
		if len(same) < 2 {
			continue
		}
		prompts := map[string]bool{}
		for _, i := range same {
			if q := b.request(b.kept[i].key, map[uint64]*tacho.Session{}); q != nil {
				prompts[promptOf(q)] = true
			}
		}
		if len(prompts) > 1 {
			for _, i := range same {
				out[b.kept[i].key] = true
			}
		}
	}
	return out
}

// promptOf returns the text of a prompt.
func promptOf(q *tacho.Request) string {
	if q.Input.Text != "" || len(q.Input.Messages) == 0 {
		return q.Input.Text
	}
	var texts []string
	for i := range q.Input.Messages {
		texts = append(texts, q.Input.Messages[i].Content)
	}
	return strings.Join(texts, "\n")
}

// leastEcho is the length in bytes from which the begin of a prompt in an answer is an echo.
const leastEcho = 100

func echoes(text, prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	return len(prompt) >= leastEcho && strings.HasPrefix(strings.TrimSpace(text), prompt[:min(len(prompt), 2*leastEcho)])
}

func callsUnknown(calls []tacho.FunctionCall, q *tacho.Request) bool {
	body, err := json.Marshal(q.Extra["tools"])
	if err != nil {
		return false
	}
	var tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(body, &tools) != nil || len(tools) == 0 {
		return false
	}
	offered := map[string]bool{}
	for _, t := range tools {
		offered[t.Function.Name] = true
	}
	for _, c := range calls {
		if !offered[c.Name] {
			return true
		}
	}
	return false
}

func hasControl(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return true
		}
	}
	return false
}

// Bounds of a loop: the end of the text repeats a period of at most longestPeriod bytes for loopBytes bytes, or the same
// words occur at least loopGrams times.
const (
	loopBytes     = 256
	longestPeriod = 64
	gramWords     = 8
	loopGrams     = 10
)

// loops reports whether a text ends in a loop, or repeats the same eight words.
func loops(text string) bool {
	if tail := text[max(len(text)-loopBytes, 0):]; len(tail) == loopBytes {
		for p := 1; p <= longestPeriod; p++ {
			if tail[p:] == tail[:len(tail)-p] {
				return true
			}
		}
	}
	words := strings.Fields(text)
	if len(words) < gramWords+loopGrams-1 {
		return false
	}
	seen := make(map[uint64]int, len(words))
	for i := range len(words) - gramWords + 1 {
		var h maphash.Hash
		h.SetSeed(hashSeed)
		for _, w := range words[i : i+gramWords] {
			_, _ = h.WriteString(w)
			_ = h.WriteByte(0)
		}
		if seen[h.Sum64()]++; seen[h.Sum64()] == loopGrams {
			return true
		}
	}
	return false
}
