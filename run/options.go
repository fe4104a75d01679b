package run

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// An Option is one field of a Plan.
type Option struct {
	Name  string // of the flag
	Group string
	Help  string
	Own   bool // tacho's own: no flag of vllm bench serve
	Value any  // pointer to the field

	secret bool // values after = are not for anybody's eyes
}

// Options are all the options of p, in the order of its fields.
func (p *Plan) Options() []Option {
	var out []Option
	walk(reflect.ValueOf(p).Elem(), "", func(o Option) { out = append(out, o) })
	return out
}

func walk(v reflect.Value, group string, fn func(Option)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, ok := f.Tag.Lookup("flag")
		if !ok {
			if f.Type.Kind() == reflect.Struct {
				if g := f.Tag.Get("group"); g != "" {
					group = g
				}
				walk(v.Field(i), group, fn)
			}
			continue
		}
		help, own := strings.CutPrefix(f.Tag.Get("help"), "+ ")
		fn(Option{Name: name, Group: group, Help: help, Own: own, Value: v.Field(i).Addr().Interface(), secret: f.Tag.Get("secret") != ""})
	}
}

// MarshalJSON writes the plan as one object with an entry for each option that
// is set, secrets taken out.
func (p *Plan) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, o := range p.Options() {
		v := reflect.ValueOf(o.Value).Elem()
		if v.IsZero() {
			continue
		}
		value, err := json.Marshal(o.public())
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", o.Name, err)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", strings.ReplaceAll(o.Name, "-", "_"), value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// public is the value as it may be written down.
func (o *Option) public() any {
	switch v := o.Value.(type) {
	case *[]string:
		if o.secret {
			return redactAll(*v)
		}
		if strings.HasSuffix(o.Name, "-url") {
			return redactURLs(*v)
		}
	case *float64:
		return json.RawMessage(jsonFloat(*v))
	case encoding.TextMarshaler:
		return v
	}
	return o.Value
}

// Set reads a value as a flag would.
func (o *Option) Set(text string) (err error) {
	switch v := o.Value.(type) {
	case *bool:
		*v, err = strconv.ParseBool(text)
	case **bool:
		b, parseErr := strconv.ParseBool(text)
		*v, err = &b, parseErr
	case *string:
		*v = text
	case *int:
		*v, err = strconv.Atoi(text)
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
	case *[]string:
		*v = append(*v, text)
	case encoding.TextUnmarshaler:
		return v.UnmarshalText([]byte(text))
	default:
		return fmt.Errorf("option %s cannot be set here", o.Name)
	}
	if err != nil {
		return fmt.Errorf("%q is not a value for %s", text, o.Name)
	}
	return nil
}

// jsonFloat writes what JSON has no number for as a string.
func jsonFloat(f float64) string {
	if s := formatFloat(f); s == "inf" {
		return `"inf"`
	}
	return formatFloat(f)
}
