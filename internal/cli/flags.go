package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/migrate"
	"github.com/tacho-bench/tacho/plan"
)

// bind registers a flag for every option of the plan.
func bind(fs *pflag.FlagSet, p *plan.Plan) {
	for _, o := range p.Options() {
		f := fs.VarPF(&option{o}, o.Name, "", o.Help)
		if o.Switch() {
			f.NoOptDefVal = "true"
		}
		f.Annotations = map[string][]string{groupNote: {o.Group}}
		if o.Own {
			f.Annotations[ownNote] = []string{"yes"}
		}
		for _, alias := range o.Aliases {
			also := *f
			also.Name, also.Hidden = alias, true
			fs.AddFlag(&also)
		}
	}
}

// option is an option of the plan as a flag.
type option struct{ plan.Option }

func (o *option) String() string {
	if o.Value == nil {
		return "" // pflag calls String on a zero value
	}
	return o.Text()
}

func (o *option) Type() string {
	switch {
	case o.List():
		return listType
	case o.Switch():
		return "bool"
	}
	return "value"
}

// expand rewrites a command line as Python's argparse would parse it:
// underscores become dashes, flags may be abbreviated if unambiguous, and flags
// with several values take all words that follow.
func expand(root *cobra.Command, args []string) ([]string, error) {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root {
		return args, nil //nolint:nilerr // cobra says it better
	}
	var out []string
	for len(args) > 0 && (args[0] != "--" || cmd.Annotations[passesOn] != "") {
		if args[0] == "--" {
			args = args[1:]
			continue
		}
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
		if flag.Name == helpAllFlag {
			out = append(out, "--help") // ends all other parsing
		}
		if hasValue {
			out = append(out, "--"+flag.Name+"="+value)
			continue
		}
		n := values(flag, args)
		if n == 0 && flag.Value.Type() == listType {
			return nil, usage(fmt.Errorf("--%s needs at least one value", flag.Name))
		}
		out, args = append(out, given(flag.Name, args[:n])...), args[n:]
	}
	return append(out, args...), nil
}

// onlyOnce rejects two different values of a flag with one value in an expanded
// command line. A flag takes precedence over a translated one.
func onlyOnce(root *cobra.Command, args, translated []string) error {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root {
		return nil //nolint:nilerr // cobra reports unknown commands
	}
	given := map[pflag.Value]string{} // an alias has the value of its flag
	for _, arg := range args {
		if arg == "--" {
			break
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flag := cmd.Flags().Lookup(name)
		if flag == nil || !strings.HasPrefix(arg, "--") || slices.Contains(translated, arg) || repeatable(flag) {
			continue
		}
		value = cmp.Or(value, flag.NoOptDefVal)
		if before, twice := given[flag.Value]; twice && before != value {
			advice := "keep one"
			if name == "fail-if" || name == "slo" { // values are lists of conditions
				advice = fmt.Sprintf("write --%s '%s,%s'", name, before, value)
			}
			return usage(fmt.Errorf("--%s is given twice, with %s and with %s: %s", name, before, value, advice))
		}
		given[flag.Value] = value
	}
	return nil
}

// repeatable reports whether a flag keeps all its values.
func repeatable(flag *pflag.Flag) bool {
	kind := flag.Value.Type()
	return kind == "count" || strings.HasSuffix(kind, "Array") || strings.HasSuffix(kind, "Slice")
}

// given returns a flag with each of its values, or alone.
func given(name string, values []string) (out []string) {
	if len(values) == 0 {
		return []string{"--" + name}
	}
	for _, v := range values {
		out = append(out, "--"+name+"="+v)
	}
	return out
}

// passesOn marks a command whose flags continue after a --.
const passesOn = "passes-on"

// listType is pflag's type name of a repeatable flag.
const listType = "stringArray"

// values returns how many of the following words are values of a flag: one,
// none for a switch, and for a list all up to the next flag.
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

// flagsOnly rejects positional arguments. It suggests --base-url for an
// address.
func flagsOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if strings.Contains(args[0], "://") && cmd.Flags().Lookup("base-url") != nil {
		hint = ": write --base-url " + args[0]
	} else if way := migrate.Modes[args[0]]; way != "" && cmd.Name() == "bench" {
		hint = ": " + way
	}
	return fmt.Errorf("%s accepts flags only, not %q%s", cmd.Name(), args[0], hint)
}

// resolve finds a flag by its full or abbreviated name.
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
	switch {
	case len(starts) == 1 && len(name) > 1:
		return cmd.Flags().Lookup(starts[0]), nil
	case len(starts) > 1 && len(starts) <= 8:
		return nil, fmt.Errorf("--%s is ambiguous: --%s", name, strings.Join(starts, " or --"))
	}
	return nil, fmt.Errorf("unknown flag --%s%s (tacho %s --help-all lists all)", name, meantFlag(cmd, name, all), cmd.Name())
}
