package jinja

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// deep returns statements that nest a list in itself 60 times, so that walking it takes 2^60 steps.
func deep(name string) string {
	return "{% set ns." + name + " = ['x'] %}{% for i in range(60) %}{% set ns." + name + " = [ns." + name + ", ns." + name + "] %}{% endfor %}"
}

// bombs are templates of a few bytes that would take gigabytes of memory, or would never end.
var bombs = map[string]string{
	"join":             "{{ (['x' * 60000000] * 1000) | join('') }}",
	"join separator":   "{{ range(99999) | join('x' * 1000000) }}",
	"str.join":         "{{ ('x' * 1000000).join('y' * 1000000) }}",
	"replace":          "{{ ('a' * 10000000) | replace('a', 'b' * 10000000) }}",
	"str.replace":      "{{ ('a' * 10000000).replace('', 'b' * 10000000) }}",
	"doubling list":    "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
	"repeated list":    "{{ ([1] * 99999) * 99999 }}",
	"empty list":       "{{ ([] * 9223372036854775807) }}{{ 'x' * 9223372036854775807 }}",
	"empty loops":      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
	"filtered loops":   "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
	"overflowing loop": "{% for a in range(0, 9223372036854775807, 9223372036854775000) %}{% endfor %}{{ 'x' * 99999999999 }}",
	"ranges":           "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l, range(99999)] %}{% endfor %}",
	"repr":             "{% set ns = namespace() %}" + deep("a") + "{{ ns.a }}",
	"tojson":           "{% set ns = namespace() %}" + deep("a") + "{{ ns.a | tojson }}",
	"equal":            "{% set ns = namespace() %}" + deep("a") + deep("b") + "{{ ns.a == ns.b }}",
	"sort":             "{% set ns = namespace() %}" + deep("a") + deep("b") + "{{ [ns.a, ns.b] | sort }}",
	"deep list":        "{% set ns = namespace(a=[]) %}{% for i in range(99999) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
	"deep generator":   "{% set ns = namespace(a=[1]) %}{% for i in range(99999) %}{% set ns.a = ns.a | map('string') %}{% endfor %}{{ ns.a | list }}",
	"unique":           "{{ range(99999) | unique | list }}",
	"contains":         "{% set l = range(99999) | list %}{% for i in l %}{{ -1 in l }}{% endfor %}",
	"indent":           "{{ ('\\n' * 10000000) | indent('x' * 100000) }}",
	"tojson indent":    "{{ range(99999) | list | tojson(indent='x' * 1000000) }}",
	"tojson separator": "{{ range(99999) | list | tojson(separators=['x' * 1000000, ':']) }}",
	"index":            "{% set s = 'x' * 1000000 %}{% for i in range(99999) %}{{ s[i] }}{% endfor %}",
	"slice":            "{% set s = 'x' * 1000000 %}{% for i in range(99999) %}{{ s[1:2] }}{% endfor %}",
	"split":            "{% set s = 'x ' * 1000000 %}{% for i in range(99999) %}{{ s.split() | length }}{% endfor %}",
	"trim":             "{% set s = 'é' * 10000000 %}{% for i in range(99999) %}{{ s | trim(s) }}{% endfor %}",
	"upper":            "{% set s = 'x' * 10000000 %}{% for i in range(99999) %}{{ s | upper | length }}{% endfor %}",
	"count":            "{% set s = 'x' * 10000000 %}{% for i in range(99999) %}{{ s.count('y') }}{% endfor %}",
	"from_json":        "{{ ('[' ~ '[],' * 10000000 ~ '[]]') | from_json | length }}",
	"format":           "{{ ('{0}' * 1000000).format('x' * 1000000) }}",
	"wide fields":      "{% for i in range(99999) %}{{ '%65536d' % 1 }}{% endfor %}",
	"sum":              "{{ (['x' * 100000] * 99999) | sum(start='') }}",
	"macro calls":      "{% macro a(x) %}{% endmacro %}{% for i in range(99999) %}{% for j in range(99999) %}{{ a(1) }}{% endfor %}{% endfor %}",
	"set blocks":       "{% for i in range(99999) %}{% for j in range(99999) %}{% set a %}x{% endset %}{% endfor %}{% endfor %}",
	"namespaces":       "{% for i in range(99999) %}{% for j in range(99999) %}{{ namespace(a=1, b=2, c=3) }}{% endfor %}{% endfor %}",
	"mappings":         "{% for i in range(99999) %}{% for j in range(99999) %}{{ {1: 2, 3: 4, 5: {6: 7}} }}{% endfor %}{% endfor %}",
	"dates":            "{% for i in range(99999) %}{% for j in range(99999) %}{{ strftime_now('%A %B %c %x %X') }}{% endfor %}{% endfor %}",
	"numbers":          "{% for i in range(99999) %}{% for j in range(99999) %}{{ 1.2345678901e300 * j }}{% endfor %}{% endfor %}",
	"expressions":      "{% for i in range(99999) %}{% for j in range(99999) %}{% if " + strings.Repeat("(1 or ", 99) + "1" + strings.Repeat(")", 99) + " %}{% endif %}{% endfor %}{% endfor %}",
	"names":            "{% for i in range(99999) %}{% for j in range(99999) %}{% if " + strings.Repeat("i is defined and ", 5000) + "true %}{% endif %}{% endfor %}{% endfor %}",
	"conditions":       "{% for i in range(99999) %}{% for j in range(99999) %}{{ " + strings.Repeat("1 if 0 else ", 150) + "1 }}{% endfor %}{% endfor %}",
	"comparisons":      "{% for i in range(99999) %}{% for j in range(99999) %}{% if 1" + strings.Repeat(" == 1", 100_000) + " %}{% endif %}{% endfor %}{% endfor %}",
	"negations":        "{% for i in range(99999) %}{% for j in range(99999) %}{% if " + strings.Repeat("not ", 150) + "1 %}{% endif %}{% endfor %}{% endfor %}",
	"branches":         "{% for i in range(99999) %}{% for j in range(99999) %}{% if 0 %}" + strings.Repeat("{% elif 0 %}", 50_000) + "{% endif %}{% endfor %}{% endfor %}",
	"macros":           "{% macro a(x) %}{{ x }}{{ x }}{% endmacro %}{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = a(ns.s) %}{% endfor %}",
}

// likeLoops are bombs that end by the limits of loops.
var likeLoops = []string{"filtered loops", "set blocks", "namespaces", "mappings", "dates", "numbers", "conditions", "comparisons"}

// TestBombs checks that a template cannot use unreasonable time or memory. A bomb without a budget would not end.
func TestBombs(t *testing.T) {
	for name, source := range bombs {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && slices.Contains(likeLoops, name) {
				t.Skip("ends by the same limit as empty loops")
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := render(source, map[string]any{"messages": []any{NewDict("role", "user", "content", "hello")}}, time.Time{})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "deeper than") && !strings.Contains(err.Error(), "longer than") {
				t.Errorf("%v, want an error that names the limit", err)
			}
			// Scopes of loops are garbage at once. All other memory is spent from the budget.
			const perStep, perByte = 1 << 10, 4
			if most := uint64(perStep*maxSteps + perByte*baseBudget); after.TotalAlloc-before.TotalAlloc > most {
				t.Errorf("allocated %d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
			}
		})
	}
}

// TestBudgetGrowsWithConversation checks that templates that append each message to a text can render long conversations.
func TestBudgetGrowsWithConversation(t *testing.T) {
	var messages []any
	for range 200 {
		messages = append(messages, NewDict("role", "user", "content", strings.Repeat("long text ", 5000)))
	}
	source := "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s ~ m.content | trim %}{% endfor %}{{ ns.s }}"
	got, err := render(source, map[string]any{"messages": messages}, time.Time{})
	if err != nil || len(got) < 200*40_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
