package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tacho"

	"tacho/internal/spelling"
	"tacho/workload"
)

// kinds are the datasets of the plan: one, or those of its mix.
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

// Datasets names the datasets of the plan.
func (p *Plan) Datasets() string {
	kinds, _ := p.kinds() // a plan that cannot be read has none
	var names []string
	for _, k := range kinds {
		if !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Every says whether all datasets of the plan have a property; a plan that
// cannot be read has none.
func (p *Plan) Every(has func(workload.Kind) bool) bool {
	kinds, err := p.kinds()
	return err == nil && !slices.ContainsFunc(kinds, func(k workload.Kind) bool { return !has(k) })
}

// Some says whether a dataset of the plan has a property.
func (p *Plan) Some(has func(workload.Kind) bool) bool {
	kinds, _ := p.kinds() // a plan that cannot be read has none
	return slices.ContainsFunc(kinds, has)
}

// OwnTimes says whether arrivals are the trace's own.
func (p *Plan) OwnTimes() bool {
	rated := p.Given("request-rate") || p.RampUpStrategy != ""
	return p.SelfTimed && !p.NoSelfTimed && len(p.Mix) == 0 && !rated && p.Every(func(k workload.Kind) bool { return k.Timed })
}

// A Class is one part of a mix.
type Class struct {
	Plan     Plan // with the dataset options of this class
	Weight   float64
	Label    string
	Model    string
	Priority *int
	Header   []tacho.Label
}

// Classes are the parts of the mix. A plan without a mix is its only part. Of a
// list of values a class has the first.
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

// class reads part i of the mix, a word after the other.
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

// mixPrefix begins the name of an option of a class: mix.LABEL.OPTION.
const mixPrefix = "mix."

// mixAxes are the lists in the mix.
func (p *Plan) mixAxes() (out []axis) {
	classes, err := p.Classes()
	if err != nil || len(p.Mix) == 0 {
		return nil // Validate tells
	}
	for i, text := range p.Mix {
		_, _ = p.class(i, text, func(c *Class, name, value string) error { // it was read before
			if values, err := c.values(name, value); err == nil && len(values) > 1 {
				out = append(out, axis{mixPrefix + classes[i].Label + "." + name, values})
			}
			return nil
		})
	}
	return out
}

// setMix takes one value of a list in the mix.
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

// values are what a word of a class stands for: one value, or those of a list.
func (c *Class) values(name, value string) ([]string, error) {
	if name == "weight" || name == "priority" {
		return numbers(value)
	}
	if o := c.option(name); o != nil {
		return o.values(value)
	}
	return []string{value}, nil
}

// option is the one of a dataset that has this name; nil if there is none.
func (c *Class) option(name string) *Option {
	for _, o := range c.Plan.Options() {
		if o.Name == name && slices.Contains(datasetGroups, o.Group) {
			return &o
		}
	}
	return nil
}

// optionNames are the options that a class may have.
func (c *Class) optionNames() (out []string) {
	for _, o := range c.Plan.Options() {
		if slices.Contains(datasetGroups, o.Group) {
			out = append(out, o.Name)
		}
	}
	return out
}

// set takes one option of a class.
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
		return fmt.Errorf("no option of a dataset has this name%s", spelling.Meant(name, c.optionNames()))
	}
	return err
}

// datasetGroups are the groups of options that each class of a mix can set.
var datasetGroups = []string{"Dataset", "Conversations", "Traces"}
