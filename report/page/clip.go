package page

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

const (
	mostText    = 300  // characters of one text from a server or a user
	mostCommand = 4000 // characters of the command
	mostList    = 500  // items of a list
)

// Clip shortens a text to the length that a page shows.
func Clip(text string) string { return clipAt(text, mostText) }

func clipAt(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}

// Clipped encodes v as JSON and shortens every text and list to the length that a page
// shows.
func Clipped(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // cannot happen, because summaries are free of NaN
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // keep the digits of numbers
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return json.RawMessage("null")
	}
	text, err = json.Marshal(clipTree(tree))
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

func clipTree(v any) any {
	switch v := v.(type) {
	case string:
		return Clip(v)
	case []any:
		v = v[:min(len(v), mostList)]
		for i := range v {
			v[i] = clipTree(v[i])
		}
		return v
	case map[string]any:
		for key, value := range v {
			v[key] = clipTree(value)
		}
	}
	return v
}

// trimmed returns a summary with at most most items in each list that could make the
// page long.
func trimmed(s metric.Summary, most int) metric.Summary {
	s.Failures = s.Failures[:min(len(s.Failures), most)]
	s.Endpoints = s.Endpoints[:min(len(s.Endpoints), most)]
	s.Finishes = s.Finishes[:min(len(s.Finishes), most)]
	s.Instruments = s.Instruments[:min(len(s.Instruments), most)]
	kinds := map[string]int{}
	for i := range s.Groups {
		kinds[s.Groups[i].By] = 0
	}
	var groups []metric.Group
	for i := range s.Groups {
		by := s.Groups[i].By
		if kinds[by]++; kinds[by] <= max(most/len(kinds), 1) && len(groups) < most {
			g := s.Groups[i]
			g.Dists = measuredDists(g.Dists[:min(len(g.Dists), len(metric.Classic))])
			groups = append(groups, g)
		}
	}
	s.Groups = groups
	classic := min(len(s.Dists), len(metric.Classic))
	s.Dists = slices.Concat(s.Dists[:classic], measuredDists(s.Dists[classic:]))
	return s
}

// measuredDists returns the distributions with values, without intervals, for metrics
// whose intervals the page does not show.
func measuredDists(all metric.Dists) (out metric.Dists) {
	for _, d := range all {
		if d.Stats != nil {
			d.Stats = withoutIntervals(*d.Stats)
			out = append(out, d)
		}
	}
	return out
}

func withoutIntervals(s metric.Stats) *metric.Stats {
	s.MeanInterval, s.MedianInterval = nil, nil
	s.Percentiles = slices.Clone(s.Percentiles)
	for i := range s.Percentiles {
		s.Percentiles[i].Interval = nil
	}
	return &s
}

// command returns the command line that repeats the run.
func command(args []string) string {
	if len(args) == 0 {
		return ""
	}
	words := []string{"tacho"}
	for _, a := range args {
		words = append(words, outcome.Quoted(a))
	}
	line := strings.Join(words, " ")
	if len(line) > mostCommand {
		return "" // a truncated command is useless; the manifest contains the full one
	}
	return line
}
