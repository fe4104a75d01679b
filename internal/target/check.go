package target

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tacho/plan"
	"tacho/workload"
)

// Check says what is wrong with a plan before anything is sent. Where it names
// only the file of a dataset, the dataset is filled in.
func Check(p *plan.Plan, say func(string)) error {
	if err := guessDataset(p, say); err != nil {
		return err
	}
	return cmp.Or(p.Validate(), CheckFiles(p))
}

// guessDataset chooses the dataset by the file where only the file is named:
// whoever names a file wants it read.
func guessDataset(p *plan.Plan, say func(string)) error {
	if !p.Given("dataset-path") || p.Given("dataset-name") || len(p.Mix) > 0 {
		return nil
	}
	names, err := workload.Fitting(p.DatasetPath, strings.HasPrefix(p.DatasetPath, hubScheme))
	if err != nil {
		return fmt.Errorf("--dataset-path %s: what is this? name it with --dataset-name: %w", p.DatasetPath, err)
	}
	switch len(names) {
	case 0:
		return fmt.Errorf("--dataset-path %s: what is this? name it with --dataset-name (tacho bench --help lists the datasets)", p.DatasetPath)
	case 1:
		p.DatasetName = names[0]
		if say != nil {
			say(fmt.Sprintf("%s is taken for --dataset-name %s.", p.DatasetPath, p.DatasetName))
		}
		return nil
	}
	return fmt.Errorf("--dataset-path %s can be read as several datasets: name one with --dataset-name: %s", p.DatasetPath, strings.Join(names, ", "))
}

// CheckFiles complains about files that are not there, before any server is
// asked for anything.
func CheckFiles(p *plan.Plan) error {
	classes, err := p.Classes()
	if err != nil {
		return err
	}
	for _, c := range classes {
		one := &c.Plan
		kind, err := workload.Find(one.DatasetName)
		if err != nil || one.DatasetPath == "" {
			continue
		}
		if _, _, hub := hubName(one, kind); hub {
			continue
		}
		if _, err := os.Stat(one.DatasetPath); err != nil {
			return fmt.Errorf("--dataset-path: %w", err)
		}
	}
	name := p.Tokenizer
	if _, err := os.Stat(name); err != nil && (filepath.IsAbs(name) || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".json")) {
		return fmt.Errorf("--tokenizer: %w", err)
	}
	return nil
}
