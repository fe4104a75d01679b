package predict

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tacho/sim/step"
)

// A knob is a number of a profile that a fit may turn. It is turned on a scale
// of logarithms, and stays above zero.
type knob struct {
	name string // as in the file: api.event_us
	at   func(*step.Profile) *float64
}

// heldStill are the numbers that runs hardly ever tell apart from others: they
// keep what the profile to start from says, and add to the errors of the others.
var heldStill = []string{"host.launch_ms", "host.update_ms", "api.latency_ms", "api.hand_over_ms", "api.close_ms", "api.request_per_token_us"}

// noKnobs are numbers that are no times.
var noKnobs = []string{"host.noise", "cost.noise", "cost.tick_ms"}

// rarelyTold are numbers that show only where many decode beside prompts: where that
// was hardly measured, they would take up what others leave.
var rarelyTold = []string{"cost.mixed_us_per_sequence", "host.per_sequence_us"}

// knobs are the numbers of p that a fit may turn: those above zero.
func knobs(p step.Profile) []knob {
	return slices.DeleteFunc(uncertain(p), func(k knob) bool { return slices.Contains(heldStill, k.name) })
}

// uncertain are the numbers of p that are not known exactly: the knobs, and what is
// held still.
func uncertain(p step.Profile) []knob {
	var out []knob
	for _, section := range []struct {
		name string
		of   func(*step.Profile) reflect.Value
	}{
		{"cost", func(p *step.Profile) reflect.Value { return reflect.ValueOf(&p.Cost).Elem() }},
		{"front_end", func(p *step.Profile) reflect.Value { return reflect.ValueOf(&p.FrontEnd).Elem() }},
		{"host", func(p *step.Profile) reflect.Value { return reflect.ValueOf(&p.Host).Elem() }},
		{"api", func(p *step.Profile) reflect.Value { return reflect.ValueOf(&p.API).Elem() }},
	} {
		t := section.of(&p).Type()
		for i := range t.NumField() {
			name := section.name + "." + t.Field(i).Tag.Get("yaml")
			switch v := section.of(&p).Field(i).Interface().(type) {
			case float64:
				if v > 0 && !slices.Contains(noKnobs, name) {
					out = append(out, knob{name, func(p *step.Profile) *float64 { return section.of(p).Field(i).Addr().Interface().(*float64) }})
				}
			case []step.Knot:
				for j, k := range v {
					out = append(out, knob{fmt.Sprintf("%s at %d", name, k.Tokens), func(p *step.Profile) *float64 {
						return &section.of(p).Field(i).Interface().([]step.Knot)[j].Ms
					}})
				}
			}
		}
	}
	return out
}

// read is where the knobs of p stand.
func read(p *step.Profile, knobs []knob) []float64 {
	out := make([]float64, len(knobs))
	for i, k := range knobs {
		out[i] = math.Log(max(*k.at(p), 1e-9))
	}
	return out
}

// turned is p with its knobs so. Lines never fall: more tokens do not take less
// time.
func turned(p step.Profile, knobs []knob, to []float64) step.Profile {
	for _, line := range []*[]step.Knot{&p.Cost.Step, &p.Cost.Prefill, &p.Cost.Decode} {
		*line = slices.Clone(*line)
	}
	for i, k := range knobs {
		*k.at(&p) = math.Exp(to[i])
	}
	for _, line := range [][]step.Knot{p.Cost.Step, p.Cost.Prefill, p.Cost.Decode} {
		for i := 1; i < len(line); i++ {
			line[i].Ms = max(line[i].Ms, line[i-1].Ms)
		}
	}
	return p
}

// rounded is p with its knobs at four digits: what a file shows is what counts.
func rounded(p step.Profile, knobs []knob) step.Profile {
	p = turned(p, knobs, read(&p, knobs)) // with lines of its own
	for _, k := range knobs {
		v := k.at(&p)
		*v, _ = strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 4, 64), 64) // it was a number
	}
	return p
}

func (k *knob) unit() string {
	switch {
	case strings.HasSuffix(k.name, "_us"), strings.Contains(k.name, "_us_"):
		return "us"
	case strings.Contains(k.name, "_ns_"):
		return "ns"
	}
	return "ms"
}

// hostTimes are the times that p has of its host's processors: what launches steps,
// and what talks to clients.
func hostTimes(p *step.Profile) (out []*float64) {
	for _, section := range []reflect.Value{reflect.ValueOf(&p.Host).Elem(), reflect.ValueOf(&p.API).Elem(), reflect.ValueOf(&p.FrontEnd).Elem()} {
		for i := range section.NumField() {
			name := section.Type().Field(i).Tag.Get("yaml")
			if at, ok := section.Field(i).Addr().Interface().(*float64); ok && (strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_us")) {
				out = append(out, at)
			}
		}
	}
	return out
}
