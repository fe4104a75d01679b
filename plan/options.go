package plan

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/workload"
)

// An Option is one field of a Plan.
type Option struct {
	Name   string // flag name
	Group  string
	Help   string
	Own    bool         // not an option of vllm bench serve
	Value  any          // pointer to the field
	Secret redact.Place // where the value contains secrets
	// Aliases are names of the same option in other tools.
	Aliases []string

	standard string   // default from the struct tag
	several  string   // "yes" or "no" if the type does not determine whether lists are allowed
	sweeps   bool     // accepts sweep
	words    []string // allowed values; empty allows any
	most     string   // maximum
	plan     *Plan
	at       int // index in Options
}

// Options returns all options of p in field order.
func (p *Plan) Options() []Option {
	v := reflect.ValueOf(p).Elem()
	out := make([]Option, len(fields()))
	for i, f := range fields() {
		out[i] = f.Option
		out[i].Value, out[i].plan, out[i].at = v.FieldByIndex(f.index).Addr().Interface(), p, i
	}
	return out
}

// A field is an option of any plan and its index path in the struct.
type field struct {
	Option

	index []int
}

// fields are the options of every plan. They are computed once, because reading
// struct tags is slow.
var fields = sync.OnceValue(func() (out []field) {
	walk(reflect.TypeFor[Plan](), nil, "", func(f field) { out = append(out, f) })
	return out
})

// standard are the options with default values; read-only.
var standard = sync.OnceValue(func() []Option {
	p := Default()
	return p.Options()
})

// Given reports whether an option was set, even to its default, or differs from
// its default.
func (p *Plan) Given(name string) bool {
	if slices.Contains(p.given, name) {
		return true
	}
	all := p.Options()
	i := slices.IndexFunc(all, func(o Option) bool { return o.Name == name })
	return i >= 0 && all[i].Given()
}

// Given is Plan.Given for this option.
func (o *Option) Given() bool {
	return slices.Contains(o.plan.given, o.Name) || !reflect.DeepEqual(o.Value, standard()[o.at].Value)
}

func walk(t reflect.Type, index []int, group string, fn func(field)) {
	for i := range t.NumField() {
		f, at := t.Field(i), append(slices.Clip(index), i)
		name, ok := f.Tag.Lookup("flag")
		if !ok {
			if f.Type.Kind() == reflect.Struct {
				if g := f.Tag.Get("group"); g != "" {
					group = g
				}
				walk(f.Type, at, group, fn)
			}
			continue
		}
		help, own := strings.CutPrefix(f.Tag.Get("help"), "+ ")
		aliases := strings.Fields(f.Tag.Get("alias"))
		if len(aliases) > 0 {
			help += " (alias --" + strings.Join(aliases, ", --") + ")"
		}
		fn(field{Option{
			Name: name, Group: group, Help: help, Own: own, Secret: redact.Place(f.Tag.Get("secret")),
			standard: f.Tag.Get("default"), words: strings.Fields(f.Tag.Get("words")), most: f.Tag.Get("most"),
			several: f.Tag.Get("list"), sweeps: f.Tag.Get("list") == Sweep, Aliases: aliases,
		}, at})
	}
}

// Words returns the allowed values; an empty result allows any value.
func (o *Option) Words() []string { return o.words }

// List reports whether the option may be repeated and keeps all values.
func (o *Option) List() bool { _, is := o.Value.(*[]string); return is }

// Switch reports whether the option is a boolean.
func (o *Option) Switch() bool {
	switch o.Value.(type) {
	case *bool, **bool:
		return true
	}
	return false
}

// Set parses a command-line value, or a list of values, and marks the option as
// given.
func (o *Option) Set(text string) error {
	if o.sweeps && text == Sweep {
		o.plan.list(o.Name, []string{Sweep})
		o.markGiven()
		return nil
	}
	values, err := o.values(text)
	if err != nil {
		return err
	}
	if len(values) == 1 {
		o.plan.list(o.Name, nil)
		err = o.set(values[0])
	} else {
		err = o.setAll(values)
	}
	if err == nil {
		o.markGiven()
	}
	return err
}

func (o *Option) set(text string) (err error) {
	list := ""
	if o.mayBeList() {
		list = ", or a list like 1,2,4"
	}
	switch v := o.Value.(type) {
	case *bool:
		*v, err = parse(text, strconv.ParseBool, "true or false")
	case **bool:
		*v, err = maybe(text, strconv.ParseBool, "true or false")
	case *string:
		*v = text
	case *int:
		*v, err = parse(text, parseInt, "a whole number"+list)
	case **int:
		*v, err = maybe(text, parseInt, "a whole number"+list)
	case **uint64:
		*v, err = maybe(text, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }, "a whole number from 0")
	case *float64:
		*v, err = parse(text, parseFloat, "a number"+list)
	case **float64:
		*v, err = maybe(text, parseFloat, "a number"+list)
	case *[]string:
		if !slices.Contains(o.plan.given, o.Name) {
			*v = nil // the first given value replaces the default
		}
		*v = append(slices.Clip(*v), text)
	case encoding.TextUnmarshaler:
		err = v.UnmarshalText([]byte(text))
	default:
		panic(fmt.Sprintf("option %s has an unsupported type: %T", o.Name, v))
	}
	if err != nil {
		return err
	}
	return o.bounded()
}

// markGiven marks the option as given.
func (o *Option) markGiven() {
	if !slices.Contains(o.plan.given, o.Name) {
		o.plan.given = append(slices.Clip(o.plan.given), o.Name) // plans are copied by value
	}
}

// TakeSLO removes --slo from the plan and returns it, for commands that judge levels themselves.
func (p *Plan) TakeSLO() string {
	slo := p.SLO
	p.SLO, p.given = "", slices.DeleteFunc(slices.Clone(p.given), func(name string) bool { return name == "slo" })
	return slo
}

// Text formats the value, or the list of values, for Set. The result is empty
// if there is no value or if the option was repeated.
func (o *Option) Text() string {
	if list := o.plan.listed(o.Name); list != nil {
		return strings.Join(list, ",")
	}
	return o.single()
}

func (o *Option) single() string {
	if f, ok := o.Value.(*float64); ok {
		return formatFloat(*f)
	}
	if m, ok := o.Value.(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return ""
		}
		return string(text)
	}
	v := reflect.ValueOf(o.Value).Elem()
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice:
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// parseInt also parses 1e3 as 1000.
func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if f, other := strconv.ParseFloat(s, 64); err != nil && other == nil && f == math.Trunc(f) && !math.IsInf(f, 0) {
		return int(max(min(f, 1<<62), -1<<62)), nil // larger than the limit of any option
	}
	return n, err
}

func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if math.IsNaN(f) {
		err = strconv.ErrSyntax
	}
	return f, err
}

func parse[T any](text string, read func(string) (T, error), what string) (T, error) {
	v, err := read(text)
	if err != nil {
		return v, fmt.Errorf("%q is not %s", text, what)
	}
	return v, nil
}

func maybe[T any](text string, read func(string) (T, error), what string) (*T, error) {
	v, err := parse(text, read, what)
	return &v, err
}

// defaultMax is the default maximum of integers. Requested items are kept in
// memory or created together, so values too large for any machine are rejected
// by name.
const defaultMax = 100_000_000

// bounded returns an error if a number is too large for the option.
func (o *Option) bounded() error {
	var all []int
	switch v := o.Value.(type) {
	case *int:
		all = []int{*v}
	case **int:
		all = []int{**v}
	}
	most := defaultMax
	switch o.most {
	case "":
	case "tokens":
		most = workload.MaxTokens
	case "ranks":
		most = workload.MaxRanks
	default:
		most, _ = strconv.Atoi(o.most) // 0 if the tag is not a number
	}
	for _, n := range all {
		if n > most {
			return fmt.Errorf("%d is too large, at most %d", n, most)
		}
	}
	return nil
}
