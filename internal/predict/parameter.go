package predict

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/sim/step"
)

// A parameter is a free parameter of a profile. It is fitted on a logarithmic scale
// and stays above zero.
type parameter struct {
	name string // as in the file: api.event_us
	at   func(*step.Profile) *float64
}

// heldFixed are numbers that runs hardly ever identify. They keep the values of the
// start profile and add to the errors of the others.
var heldFixed = []string{"host.launch_ms", "host.update_ms", "api.latency_ms", "api.hand_over_ms", "api.close_ms", "api.request_per_token_us"}

// notParameters are numbers other than times.
var notParameters = []string{"host.noise", "cost.noise", "cost.tick_ms"}

// weaklyIdentified are numbers that have an effect only if many sequences decode
// during prefills. If no run shows this, they would absorb the residuals of
// others.
var weaklyIdentified = []string{"cost.mixed_us_per_sequence", "host.per_sequence_us"}

// parameters are the free parameters of p: the numbers above zero.
func parameters(p step.Profile) []parameter {
	return slices.DeleteFunc(uncertain(p), func(k parameter) bool { return slices.Contains(heldFixed, k.name) })
}

// uncertain are the numbers of p with an error: the parameters and the fixed
// numbers.
func uncertain(p step.Profile) []parameter {
	var out []parameter
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
				if v > 0 && !slices.Contains(notParameters, name) {
					out = append(out, parameter{name, func(p *step.Profile) *float64 { return section.of(p).Field(i).Addr().Interface().(*float64) }})
				}
			case []step.Knot:
				for j, k := range v {
					out = append(out, parameter{fmt.Sprintf("%s at %d", name, k.Tokens), func(p *step.Profile) *float64 {
						return &section.of(p).Field(i).Interface().([]step.Knot)[j].Ms
					}})
				}
			}
		}
	}
	return out
}

// read returns the logarithms of the parameters of p.
func read(p *step.Profile, params []parameter) []float64 {
	out := make([]float64, len(params))
	for i, k := range params {
		out[i] = math.Log(max(*k.at(p), 1e-9))
	}
	return out
}

// withValues returns p with the given parameter values. Cost lines never decrease,
// because more tokens do not take less time.
func withValues(p step.Profile, params []parameter, to []float64) step.Profile {
	for _, line := range []*[]step.Knot{&p.Cost.Step, &p.Cost.Prefill, &p.Cost.Decode} {
		*line = slices.Clone(*line)
	}
	for i, k := range params {
		*k.at(&p) = math.Exp(to[i])
	}
	for _, line := range [][]step.Knot{p.Cost.Step, p.Cost.Prefill, p.Cost.Decode} {
		for i := 1; i < len(line); i++ {
			line[i].Ms = max(line[i].Ms, line[i-1].Ms)
		}
	}
	return p
}

// rounded returns p with its parameters rounded to four digits, so that the result
// equals the file.
func rounded(p step.Profile, params []parameter) step.Profile {
	p = withValues(p, params, read(&p, params)) // with its own copy of the lines
	for _, k := range params {
		v := k.at(&p)
		*v, _ = strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 4, 64), 64) // no error: it was formatted as a number
	}
	return p
}

func (k *parameter) unit() string {
	switch {
	case strings.HasSuffix(k.name, "_us"), strings.Contains(k.name, "_us_"):
		return "us"
	case strings.Contains(k.name, "_ns_"):
		return "ns"
	}
	return "ms"
}

// hostTimes are the CPU times of p: launching steps and talking to clients.
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
