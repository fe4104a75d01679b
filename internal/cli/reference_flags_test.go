//go:build vllm

package cli_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// otherDefaults are options with an intentionally different default, with the
// reason.
var otherDefaults = map[string]string{
	"endpoint":                "each backend knows where its requests go",
	"port":                    "each backend knows where its server listens; that of the reference's is 8000 here too",
	"seed":                    "a seed that is always the same would find its prompts in the server's cache",
	"request-id-prefix":       "drawn anew for each run, there and here",
	"ignore-eos":              "what is not given leaves it to the dataset, there and here; here it can also be denied",
	"self-timed":              "a trace is replayed at its own times, there and here; there the default says so later",
	"bfcl-categories":         "the categories that the reference takes where none is given",
	"asr-max-audio-len-sec":   "infinite, spelled as Go spells it",
	"request-rate":            "likewise",
	"max-concurrency":         "0 is no limit, which is none there",
	"random-mm-bucket-config": "the same, without spaces",
}

// notHere are options of the reference that tacho does not have, with the
// reason.
var notHere = map[string]string{
	"h": "cobra makes it", "help": "cobra makes it",
	"plot-dataset-stats": "accepted with a line that it has no effect",
}

// Every option of the reference exists in tacho with the same default and all
// choices. New options of the reference are reported.
func (ref *reference) flags(t *testing.T) {
	var actions []struct {
		Names   []string
		Default any
		Choices []string
	}
	ref.ask(t, map[string]any{"op": "flags"}, &actions)
	if len(actions) < 80 {
		t.Fatalf("the reference has %d options: is that all?", len(actions))
	}
	p := plan.Default()
	ours := map[string]plan.Option{}
	for _, o := range p.Options() {
		ours[o.Name] = o
	}
	departures := maps.Clone(otherDefaults)
	for _, a := range actions {
		for _, name := range a.Names {
			name = strings.TrimLeft(name, "-")
			o, ok := ours[name]
			switch _, excused := notHere[name]; {
			case ok && o.Own:
				t.Errorf("--%s is marked as tacho's own, and the reference has it", name)
			case !ok && !excused:
				t.Errorf("--%s is missing (default %v)", name, a.Default)
			}
			if !ok || strings.HasPrefix(name, "no-") && len(a.Names) > 1 {
				continue
			}
			delete(ours, name)
			same := sameDefault(a.Default, o)
			if _, excused := otherDefaults[name]; excused && !same {
				delete(departures, name)
			} else if !same {
				t.Errorf("--%s is %s by default, there %v", name, defaultOf(o.Value), a.Default)
			}
			for _, choice := range a.Choices {
				if err := takesChoice(name, choice); err != nil {
					t.Errorf("--%s %s: %v", name, choice, err)
				}
			}
		}
	}
	if len(departures) > 0 {
		t.Errorf("these defaults are the reference's after all: %v", slices.Sorted(maps.Keys(departures)))
	}
	// The remaining options must be marked as added by tacho, or belong to
	// another version of the reference.
	var rest []string
	for name, o := range ours {
		if !o.Own {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	if want := "no-self-timed sonnet-input-len sonnet-output-len sonnet-prefix-len structured-output-ratio"; strings.Join(rest, " ") != want {
		t.Errorf("not marked as tacho's own, and not the reference's: %v, want %s", rest, want)
	}
}

// sameDefault reports whether a missing option means the same in both tools.
// None is not zero.
func sameDefault(theirs any, o plan.Option) bool {
	mine := reflect.ValueOf(o.Value).Elem()
	isNumber := mine.CanInt() || mine.CanFloat() || mine.Kind() == reflect.Bool
	switch theirs {
	case nil:
		return mine.IsZero() && !isNumber
	case false, 0.0, "0.0":
		return mine.IsZero() && mine.Kind() != reflect.Pointer
	case "{'image': 255, 'video': 1}":
		theirs = `{"image":255,"video":1}`
	case "1.0":
		theirs = 1
	}
	return strings.Trim(defaultOf(o.Value), " (`)") == fmt.Sprint(theirs)
}

// takesChoice checks that tacho accepts a choice of the reference.
func takesChoice(flag, choice string) error {
	switch flag {
	case "backend":
		_, err := backend.Find(choice)
		return err
	case "dataset-name":
		_, err := workload.Find(choice)
		return err
	case "speed-bench-dataset-subset": // a file name
		return nil
	}
	p := plan.Default()
	for _, o := range p.Options() {
		if o.Name == flag {
			if err := o.Set(choice); err != nil {
				return err
			}
		}
	}
	one := 1.0
	if flag == "ramp-up-strategy" {
		p.RampUpStartRPS, p.RampUpEndRPS = &one, &one
	}
	return p.Validate()
}
