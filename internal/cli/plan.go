package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/store"
)

// mostPlan is the maximum size of a plan in bytes.
const mostPlan = 1 << 20

// planFlags are the flags of every command that runs a plan.
type planFlags struct {
	file string // path of the plan
	dry  bool
}

func (f *planFlags) bind(fs *pflag.FlagSet, dry string) {
	bindPlan(fs, &f.file)
	fs.BoolVar(&f.dry, "dry-run", false, dry)
}

// read merges the file into the plan.
func (f *planFlags) read(env *Env, p *plan.Plan) error { return readPlan(env, f.file, p) }

func bindPlan(fs *pflag.FlagSet, path *string) {
	fs.StringVar(path, "plan", "", "plan in YAML or JSON, as printed by --dry-run; a run directory, or last; or - for standard input")
}

// readPlan merges a plan file or the plan of a stored run into p, and fills in
// the options of a named workload. Options set by flags keep their values.
func readPlan(env *Env, path string, p *plan.Plan) error {
	if path != "" {
		if err := readPlanFile(env, path, p); err != nil {
			return err
		}
	}
	_, err := p.FillWorkload()
	return err
}

// readPlanFile merges a plan file or the plan of a stored run into p.
func readPlanFile(env *Env, path string, p *plan.Plan) error {
	text, run, err := planText(env, path)
	if err != nil {
		return fmt.Errorf("--plan: %w", err)
	}
	read := func() error { return p.Read(text, env.secrets) }
	if run != "" {
		err = env.borrow(p, run, read)
	} else {
		err = read()
	}
	if err != nil {
		return fmt.Errorf("--plan %s: %w", path, err)
	}
	return nil
}

// planText returns a plan, and the run that stores it if path names a run.
func planText(env *Env, path string) (text []byte, run string, err error) {
	if namesRun(path) {
		if path, err = findRun(env, path); err != nil {
			return nil, "", err
		}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() || filepath.Base(path) == store.ManifestFile {
		text, err := planOfRun(env, path)
		return text, path, err
	}
	was := env.reads.Swap(true) // nothing has started while waiting for a plan
	defer env.reads.Store(was)
	from := env.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, "", err
		}
		defer func() { _ = f.Close() }() // read-only
		from = f
	}
	text, err = io.ReadAll(io.LimitReader(from, mostPlan+1))
	if err == nil && len(text) > mostPlan {
		err = fmt.Errorf("%s is too large for a plan (more than %d bytes)", path, mostPlan)
	}
	return text, "", err
}

func planOfRun(env *Env, path string) ([]byte, error) {
	if filepath.Base(path) == store.ManifestFile {
		path = filepath.Dir(path)
	}
	kept, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(env.Stderr, "Using the plan of %s. Add --seed %d to send the same requests again.\n", path, kept.Manifest.Seed) // informational
	return kept.Manifest.Plan, nil
}

// showPlan prints a valid plan without secrets.
func showPlan(env *Env, p, public plan.Plan) error {
	if err := target.Check(&p, func(line string) { _, _ = fmt.Fprintln(env.Stderr, line) }); err != nil {
		return usage(err)
	}
	text, err := public.YAML()
	if err != nil {
		return err
	}
	_, err = io.WriteString(env.Stdout, string(text)+levelsOf(&public))
	return err
}

// levelsOf lists the levels of a plan as YAML comments.
func levelsOf(p *plan.Plan) string {
	var b strings.Builder
	var names []string
	swept := p.Swept()
	for _, l := range p.Levels() {
		var words []string
		for _, c := range l.Coordinates.Without(swept) {
			words = append(words, " --"+c.Name+" "+c.Value)
		}
		name := strings.Join(words, "")
		if swept == "" && l.Repeat > 0 {
			name += fmt.Sprintf(" repeat %d", l.Repeat)
		}
		if !slices.Contains(names, name) || swept == "" {
			names = append(names, name)
		}
	}
	switch {
	case swept != "" && len(names) == 1 && names[0] == "":
		fmt.Fprintf(&b, "# A sweep of --%s, of up to %d levels.\n", swept, p.SweepPoints)
	case swept != "":
		fmt.Fprintf(&b, "# %d sweeps of --%s, of up to %d levels each:\n", len(names), swept, p.SweepPoints)
	case len(names) > 1:
		fmt.Fprintf(&b, "# %d levels:\n", len(names))
	default:
		return ""
	}
	for _, name := range names {
		if name != "" {
			fmt.Fprintf(&b, "#  %s\n", name)
		}
	}
	return b.String()
}
