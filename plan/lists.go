package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/outcome"
)

// An axis is an option with several values, one per level. The option's field
// holds the first value.
type axis struct {
	name   string
	values []string // in the form Set accepts
}

// Sweep is the value of an option whose levels the run chooses itself.
const Sweep = "sweep"

// maxLevels rejects typing errors such as 1,2,...,1000000.
const maxLevels = 10_000

// mayBeList reports whether the option accepts a list with one level per value:
// a number or a choice that affects the load, not the report.
func (o *Option) mayBeList() bool {
	switch o.Value.(type) {
	case *[]string, *JSONObject:
		return false
	case *string:
		return o.several == "yes" || len(o.words) > 0 && o.Group != groupOfReports
	}
	return o.several != "no" && o.Group != groupOfReports
}

// groupOfReports contains options of the run, not of a level.
const groupOfReports = "Results"

// values expands command-line text: one value, or all values of a list.
func (o *Option) values(text string) ([]string, error) {
	if !o.mayBeList() || !strings.ContainsAny(text, ",…") {
		return []string{text}, nil
	}
	parts := splitTopLevel(text)
	switch o.Value.(type) {
	case *string:
		return parts, nil
	case *int, **int, *float64, **float64:
		return numbers(text)
	}
	scratch := Default()
	if scratch.Options()[o.at].set(text) == nil {
		return []string{text}, nil // commas belong to the value, as in uniform(1,9)
	}
	if list, err := numbers(text); err == nil {
		return list, nil
	}
	return parts, nil
}

// numbers expands a list of numbers, including the dots.
func numbers(text string) ([]string, error) {
	list, err := parseLevels(text)
	out := make([]string, len(list))
	for i, f := range list {
		if out[i] = formatFloat(f); f < 1<<53 && f > -1<<53 {
			out[i] = strconv.FormatFloat(f, 'f', -1, 64) // integers parse without an exponent only
		}
	}
	return out, err
}

// splitTopLevel splits text at commas outside brackets.
func splitTopLevel(text string) []string {
	depth, from := 0, 0
	var out []string
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

// setAll sets the values of a list, the last one first, so that the field keeps
// the first. Each value is stored as the option formats it.
func (o *Option) setAll(values []string) error {
	list := make([]string, len(values))
	for i, v := range slices.Backward(values) {
		if err := o.set(v); err != nil {
			return err
		}
		list[i] = o.single()
	}
	o.plan.list(o.Name, list)
	return nil
}

// list stores the values of an option; nil removes the list. Plans are copied
// by value, so list never changes a shared slice.
func (p *Plan) list(name string, values []string) {
	p.lists = slices.DeleteFunc(slices.Clone(p.lists), func(a axis) bool { return a.name == name })
	if values != nil {
		p.lists = append(p.lists, axis{name, values})
	}
}

// listed returns the values of an option given as a list, otherwise nil.
func (p *Plan) listed(name string) []string {
	i := slices.IndexFunc(p.lists, func(a axis) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return p.lists[i].values
}

// Values returns all values of an option.
func (p *Plan) Values(name string) []string {
	if list := p.listed(name); list != nil {
		return list
	}
	all := p.Options()
	i := slices.IndexFunc(all, func(o Option) bool { return o.Name == name })
	return []string{all[i].single()}
}

// Swept returns the name of the option set to sweep, or an empty string.
func (p *Plan) Swept() string {
	for _, a := range p.lists {
		if slices.Equal(a.values, []string{Sweep}) {
			return a.name
		}
	}
	return ""
}

// loads are the options that set the amount of load. Their lists are the
// innermost, in this order.
var loads = []string{"request-rate", "max-concurrency", "num-prompts"}

// axes returns the lists of the plan, the outermost first. A sweep starts at 1.
func (p *Plan) axes() (out []axis) {
	all := p.Options()
	if len(p.lists) > 0 {
		for _, o := range all {
			if list := p.listed(o.Name); list != nil && !slices.Contains(loads, o.Name) {
				out = append(out, axis{o.Name, list})
			}
		}
	}
	out = append(out, p.mixAxes()...)
	for _, name := range loads {
		switch list := p.listed(name); {
		case slices.Equal(list, []string{Sweep}):
			out = append(out, axis{name, []string{"1"}})
		case list != nil:
			out = append(out, axis{name, list})
		}
	}
	return out
}

// Set sets an option by name, from command-line text.
func (p *Plan) Set(name, text string) error {
	all := p.Options()
	i := slices.IndexFunc(all, func(o Option) bool { return o.Name == name || slices.Contains(o.Aliases, name) })
	if i < 0 {
		return fmt.Errorf("unknown option %s", name)
	}
	return all[i].Set(text)
}

// With returns the plan for one combination of list values.
func (p *Plan) With(at outcome.Coordinates) (Plan, error) {
	one := *p
	one.lists, one.Repeat = nil, min(p.Repeat, 1)
	for _, c := range at {
		set := one.Set
		if strings.HasPrefix(c.Name, mixPrefix) {
			set = one.setMix
		}
		if err := set(c.Name, c.Value); err != nil {
			return one, fmt.Errorf("--%s %s: %w", c.Name, c.Value, err)
		}
	}
	return one, one.Translate(one.Given)
}
