package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tacho/outcome"
)

// An axis is an option with several values: a level for each. The option's
// field holds the first of them.
type axis struct {
	name   string
	values []string // as Set takes them
}

// Sweep is the value of an option that finds its own levels.
const Sweep = "sweep"

// mostLevels keeps a slip of the pen (1,2,...,1000000) from being a plan.
const mostLevels = 10_000

// mayBeList says whether the option may be a list, with a level for each value:
// it is a number or a choice, and of the load, not of the report.
func (o *Option) mayBeList() bool {
	switch o.Value.(type) {
	case *[]string, *JSONObject:
		return false
	case *string:
		return o.several == "yes" || len(o.words) > 0 && o.Group != groupOfReports
	}
	return o.several != "no" && o.Group != groupOfReports
}

// groupOfReports are options of the run as a whole.
const groupOfReports = "Results"

// values are what a text on a command line stands for: one value, or those of a
// list.
func (o *Option) values(text string) ([]string, error) {
	if !o.mayBeList() || !strings.ContainsAny(text, ",…") {
		return []string{text}, nil
	}
	parts := outside(text)
	switch o.Value.(type) {
	case *string:
		return parts, nil
	case *int, **int, *float64, **float64:
		return numbers(text)
	}
	if o.scratch().set(text) == nil {
		return []string{text}, nil // its commas are its own, as in uniform(1,9)
	}
	if list, err := numbers(text); err == nil {
		return list, nil
	}
	return parts, nil
}

// numbers are those of a list, the dots filled in.
func numbers(text string) ([]string, error) {
	list, err := parseLevels(text)
	out := make([]string, len(list))
	for i, f := range list {
		if out[i] = formatFloat(f); f < 1<<53 && f > -1<<53 {
			out[i] = strconv.FormatFloat(f, 'f', -1, 64) // whole numbers are read without an exponent
		}
	}
	return out, err
}

// outside splits a text at the commas that are in no brackets.
func outside(text string) []string {
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

// scratch is the same option of a plan that nobody needs.
func (o *Option) scratch() *Option {
	p := Default()
	return &p.Options()[o.at]
}

// setAll takes the values of a list, the last first: the field keeps the first.
// Each becomes the text that the option itself writes.
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

// list notes the values of an option; nil is one value only. Plans are copied, and
// share nothing that is changed.
func (p *Plan) list(name string, values []string) {
	p.lists = slices.DeleteFunc(slices.Clone(p.lists), func(a axis) bool { return a.name == name })
	if values != nil {
		p.lists = append(p.lists, axis{name, values})
	}
}

// listed are the values of an option that is a list; nil where it is none.
func (p *Plan) listed(name string) []string {
	i := slices.IndexFunc(p.lists, func(a axis) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return p.lists[i].values
}

// Values are those of an option: of its list, or the only one.
func (p *Plan) Values(name string) []string {
	if list := p.listed(name); list != nil {
		return list
	}
	all := p.Options()
	i := slices.IndexFunc(all, func(o Option) bool { return o.Name == name })
	return []string{all[i].single()}
}

// Swept names the option that finds its own levels; empty is none.
func (p *Plan) Swept() string {
	for _, a := range p.lists {
		if slices.Equal(a.values, []string{Sweep}) {
			return a.name
		}
	}
	return ""
}

// loads are the options that say how much load there is: the innermost of the
// lists, in this order.
var loads = []string{"request-rate", "max-concurrency", "num-prompts"}

// axes are the lists of the plan, the outermost first. An option that finds its
// own levels begins with one at a time.
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

// Set takes an option by its name, as a command line has it.
func (p *Plan) Set(name, text string) error {
	all := p.Options()
	i := slices.IndexFunc(all, func(o Option) bool { return o.Name == name || slices.Contains(o.Aliases, name) })
	if i < 0 {
		return fmt.Errorf("no option is called %s", name)
	}
	return all[i].Set(text)
}

// With is the plan at a point of its lists: no option has several values.
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
