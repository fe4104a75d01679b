package archive

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/report"
)

// textKind is a log with one or more blocks of the "Serving Benchmark Result" family, and other text
// between them.
var textKind = Kind{
	Name: "text", Doc: `logs with blocks of "Serving Benchmark Result", as vLLM's and SGLang's benchmarks print them`,
	read: func(f *file) ([]entry, error) {
		if !utf8.Valid(f.bytes) {
			return nil, nil
		}
		parsed, err := report.Parse(string(f.bytes))
		if errors.Is(err, report.ErrNoBlock) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var out []entry
		about := newSheet("serving benchmark", "").about
		for _, b := range parsed.Blocks {
			noted(&about.Backend, b.Before, backendFlag, backendLine)
			noted(&about.Model, b.Before, modelFlag)
			noted(&about.Dataset, b.Before, datasetFlag)
			d := doc{}
			for v := range b.Values() {
				d[v.Key] = v.Number
			}
			s := newSheet("", "")
			s.about = about
			s.flat(d)
			out = append(out, s.entries("figures are rounded to two decimals, as printed")...)
		}
		for i := range out { // notes below the first block apply to all
			out[i].about = about
		}
		return out, nil
	},
}

// Notes that people add to their logs: the command, or the server's name on a separate line.
var (
	backendFlag = regexp.MustCompile(`--backend[ =]"?([\w.-]+)`)
	backendLine = regexp.MustCompile(`(?mi)^\W*(vllm|tgi|sglang|lmdeploy|trt-?llm|tensorrt-?llm|llama\.?cpp|ollama|triton|deepspeed-mii)\W*$`)
	modelFlag   = regexp.MustCompile(`--model[ =]"?([^\s"]+)`)
	datasetFlag = regexp.MustCompile(`--dataset-name[ =]"?([\w.-]+)`)
)

// noted returns the first match of a pattern in the notes.
func noted(to *string, text string, patterns ...*regexp.Regexp) {
	if i := slices.IndexFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) }); i >= 0 && *to == "" {
		*to = strings.ToLower(patterns[i].FindStringSubmatch(text)[1])
		if patterns[i] == modelFlag {
			*to = patterns[i].FindStringSubmatch(text)[1]
		}
	}
}
