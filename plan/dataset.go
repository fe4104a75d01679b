package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"

	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/workload"
)

// kinds returns the datasets of the plan: one, or one per class of the mix.
func (p *Plan) kinds() ([]workload.Kind, error) {
	classes, err := p.Classes()
	if err != nil {
		return nil, err
	}
	out := make([]workload.Kind, len(classes))
	for i, c := range classes {
		if out[i], err = workload.Find(c.Plan.DatasetName); err != nil {
			return nil, fmt.Errorf("--dataset-name: %w", err)
		}
	}
	return out, nil
}

// datasets names the datasets of the plan.
func (p *Plan) datasets() string {
	kinds, _ := p.kinds() // an invalid plan has no datasets
	var names []string
	for _, k := range kinds {
		if !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Every reports whether has holds for all datasets of the plan. The result is
// false if the plan is invalid.
func (p *Plan) Every(has func(workload.Kind) bool) bool {
	kinds, err := p.kinds()
	return err == nil && !slices.ContainsFunc(kinds, func(k workload.Kind) bool { return !has(k) })
}

// Some reports whether has holds for any dataset of the plan.
func (p *Plan) Some(has func(workload.Kind) bool) bool {
	kinds, _ := p.kinds() // an invalid plan has no datasets
	return slices.ContainsFunc(kinds, has)
}

// OwnTimes reports whether requests arrive at the times recorded in the trace.
func (p *Plan) OwnTimes() bool {
	rated := p.Given("request-rate") || p.RampUpStrategy != ""
	return p.SelfTimed && !p.NoSelfTimed && len(p.Mix) == 0 && !rated && p.Every(func(k workload.Kind) bool { return k.Timed })
}

// A Class is one part of a mix.
type Class struct {
	Plan     Plan // includes the dataset options of this class
	Weight   float64
	Label    string
	Model    string
	Priority *int
	Header   []tacho.Label
}

// Classes returns the classes of the mix. A plan without a mix has one class,
// the plan itself. If an option is a list, the class gets its first value.
func (p *Plan) Classes() ([]Class, error) {
	if len(p.Mix) == 0 {
		return []Class{{Plan: *p, Weight: 1}}, nil
	}
	var out []Class
	for i, text := range p.Mix {
		c, err := p.class(i, text, func(c *Class, name, value string) error {
			values, err := c.values(name, value)
			if err != nil {
				return err
			}
			return c.set(name, values[0])
		})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Class) bool { return o.Label == c.Label }) {
			return nil, fmt.Errorf("--mix: two classes have the label %s", c.Label)
		}
		out = append(out, c)
	}
	return out, nil
}

// class parses entry i of the mix and calls each for every OPTION=VALUE.
func (p *Plan) class(i int, text string, each func(c *Class, name, value string) error) (Class, error) {
	c := Class{Plan: *p, Weight: 1, Label: fmt.Sprintf("class-%d", i+1)}
	c.Plan.Mix = nil
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return c, fmt.Errorf("--mix: %q should be OPTION=VALUE", word)
		}
		if err := each(&c, strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"), value); err != nil {
			return c, fmt.Errorf("--mix: %s: %w", name, err)
		}
	}
	return c, nil
}

// mixPrefix starts the name of a class option: mix.LABEL.OPTION.
const mixPrefix = "mix."

// mixAxes returns the lists inside the mix.
func (p *Plan) mixAxes() (out []axis) {
	classes, err := p.Classes()
	if err != nil || len(p.Mix) == 0 {
		return nil // Validate reports the error
	}
	for i, text := range p.Mix {
		_, _ = p.class(i, text, func(c *Class, name, value string) error { // Classes has parsed this entry without an error
			if values, err := c.values(name, value); err == nil && len(values) > 1 {
				out = append(out, axis{mixPrefix + classes[i].Label + "." + name, values})
			}
			return nil
		})
	}
	return out
}

// setMix sets an option of one class: name is mix.LABEL.OPTION.
func (p *Plan) setMix(name, value string) error {
	classes, err := p.Classes()
	if err != nil {
		return err
	}
	name = strings.TrimPrefix(name, mixPrefix)
	dot := max(strings.LastIndex(name, "."), 0)
	i := slices.IndexFunc(classes, func(c Class) bool { return c.Label == name[:dot] })
	if i < 0 {
		return errors.New("no class of the mix has this label")
	}
	var words []string
	_, err = p.class(i, p.Mix[i], func(_ *Class, word, old string) error {
		if word == name[dot+1:] {
			old = value
		}
		words = append(words, word+"="+old)
		return nil
	})
	p.Mix = slices.Clone(p.Mix)
	p.Mix[i] = strings.Join(words, " ")
	return err
}

// values expands an option of the class: one value, or all values of a list.
func (c *Class) values(name, value string) ([]string, error) {
	if name == "weight" || name == "priority" {
		return numbers(value)
	}
	if o := c.option(name); o != nil {
		return o.values(value)
	}
	return []string{value}, nil
}

// option returns the dataset option called name, or nil.
func (c *Class) option(name string) *Option {
	for _, o := range c.Plan.Options() {
		if o.Name == name && slices.Contains(datasetGroups, o.Group) {
			return &o
		}
	}
	return nil
}

// optionNames returns the names of all options a class can set.
func (c *Class) optionNames() (out []string) {
	for _, o := range c.Plan.Options() {
		if slices.Contains(datasetGroups, o.Group) {
			out = append(out, o.Name)
		}
	}
	return out
}

// set sets one option of the class.
func (c *Class) set(name, value string) (err error) {
	if header, ok := strings.CutPrefix(name, "header."); ok {
		c.Header = append(c.Header, tacho.Label{Key: header, Value: value})
		return nil
	}
	switch name {
	case "weight":
		c.Weight, err = strconv.ParseFloat(value, 64)
	case "label":
		c.Label = value
	case "model", "lora":
		c.Model = value
	case "priority":
		var n int
		n, err = strconv.Atoi(value)
		c.Priority = &n
	default:
		if o := c.option(name); o != nil {
			return o.Set(value)
		}
		return fmt.Errorf("unknown dataset option%s", spelling.DidYouMean(name, c.optionNames()))
	}
	return err
}

// datasetGroups are the option groups a class of a mix can set.
var datasetGroups = []string{"Dataset", "Conversations", "Traces"}
