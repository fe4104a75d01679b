package cli

import (
	"encoding"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tacho/internal/spelling"
	"tacho/run"
)

// bind makes a flag of every option of the plan.
func bind(fs *pflag.FlagSet, p *run.Plan) {
	for _, o := range p.Options() {
		switch v := o.Value.(type) {
		case *bool:
			fs.BoolVar(v, o.Name, *v, o.Help)
		case *string:
			fs.StringVar(v, o.Name, *v, o.Help)
		case *int:
			fs.IntVar(v, o.Name, *v, o.Help)
		case *float64:
			fs.Var(&number{v}, o.Name, o.Help)
		case *[]string:
			fs.StringArrayVar(v, o.Name, nil, o.Help)
		case **float64:
			fs.Var(&maybe[float64]{v, parseFloat}, o.Name, o.Help)
		case **bool:
			fs.Var(&maybe[bool]{v, strconv.ParseBool}, o.Name, o.Help)
			fs.Lookup(o.Name).NoOptDefVal = "true"
		case **int:
			fs.Var(&maybe[int]{v, strconv.Atoi}, o.Name, o.Help)
		case **uint64:
			fs.Var(&maybe[uint64]{v, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }}, o.Name, o.Help)
		case textValue:
			fs.Var(&text{v}, o.Name, o.Help)
		default:
			panic(fmt.Sprintf("option %s has a type no flag has: %T", o.Name, v))
		}
		fs.SetAnnotation(o.Name, "group", []string{o.Group}) //nolint:errcheck // the flag was just made
	}
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// number is a flag that also takes inf, as Python's float does.
type number struct{ v *float64 }

func (n *number) Set(s string) (err error) { *n.v, err = parseFloat(s); return err }
func (n *number) String() string           { return fmt.Sprint(*n.v) }
func (n *number) Type() string             { return "float" }

// maybe is a flag that may be left unset.
type maybe[T any] struct {
	v     **T
	parse func(string) (T, error)
}

func (m *maybe[T]) Set(s string) error {
	t, err := m.parse(s)
	if err != nil {
		return fmt.Errorf("%q is not a %s", s, m.Type())
	}
	*m.v = &t
	return nil
}

func (m *maybe[T]) String() string {
	if m.v == nil || *m.v == nil {
		return ""
	}
	return fmt.Sprint(**m.v)
}

func (m *maybe[T]) Type() string {
	if _, ok := any(*m.v).(*bool); ok {
		return "bool"
	}
	return "number"
}

// text is a flag whose value reads and writes itself.
type text struct{ v textValue }

type textValue interface {
	encoding.TextUnmarshaler
	encoding.TextMarshaler
}

func (t *text) Set(s string) error { return t.v.UnmarshalText([]byte(s)) }
func (t *text) Type() string       { return "value" }
func (t *text) String() string {
	b, err := t.v.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

// expand rewrites a command line the way Python's argparse would read it:
// underscores are dashes, a flag may be cut short where that is clear, and the
// flags that take several values take all that follow.
func expand(root *cobra.Command, args []string) ([]string, error) {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root {
		return args, nil //nolint:nilerr // cobra says it better
	}
	var out []string
	for len(args) > 0 && args[0] != "--" {
		name, ok := strings.CutPrefix(args[0], "--")
		if !ok {
			out, args = append(out, args[0]), args[1:]
			continue
		}
		name, value, hasValue := strings.Cut(name, "=")
		flag, err := resolve(cmd, name)
		if err != nil {
			return nil, usage(err)
		}
		args = args[1:]
		if hasValue {
			out = append(out, "--"+flag.Name+"="+value)
			continue
		}
		n := values(flag, args)
		if n == 0 && flag.Value.Type() == listType {
			return nil, usage(fmt.Errorf("--%s needs at least one value", flag.Name))
		}
		if n == 0 {
			out = append(out, "--"+flag.Name)
		}
		for _, v := range args[:n] {
			out = append(out, "--"+flag.Name+"="+v)
		}
		args = args[n:]
	}
	return append(out, args...), nil
}

// listType is what pflag calls a flag that may be given several times.
const listType = "stringArray"

// values is how many of the words after a flag are its values: one, none for a
// switch, and for a list all up to the next flag.
func values(flag *pflag.Flag, args []string) int {
	switch {
	case flag.Value.Type() == listType:
		n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
		if n < 0 {
			return len(args)
		}
		return n
	case flag.NoOptDefVal != "":
		return 0
	}
	return min(len(args), 1)
}

// resolve finds the flag that is meant.
func resolve(cmd *cobra.Command, name string) (*pflag.Flag, error) {
	cmd.InitDefaultHelpFlag()
	name = strings.ReplaceAll(name, "_", "-")
	if f := cmd.Flags().Lookup(name); f != nil {
		return f, nil
	}
	var starts, all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		all = append(all, f.Name)
		if strings.HasPrefix(f.Name, name) {
			starts = append(starts, f.Name)
		}
	})
	nearest := spelling.Nearest(name, all)
	switch {
	case len(starts) == 1 && len(name) > 1:
		return cmd.Flags().Lookup(starts[0]), nil
	case len(starts) > 1 && len(starts) <= 8:
		return nil, fmt.Errorf("--%s could be --%s", name, strings.Join(starts, " or --"))
	case nearest != "":
		return nil, fmt.Errorf("unknown flag --%s, did you mean --%s? (tacho %s --help lists all)", name, nearest, cmd.Name())
	}
	return nil, fmt.Errorf("unknown flag --%s (tacho %s --help lists all)", name, cmd.Name())
}

// groups are the groups of options in the order of the plan.
func groups(p *run.Plan) []string {
	var out []string
	for _, o := range p.Options() {
		if !slices.Contains(out, o.Group) {
			out = append(out, o.Group)
		}
	}
	return out
}
