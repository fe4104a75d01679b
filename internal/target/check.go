package target

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// Check validates a plan before anything is sent. If the plan names a dataset
// file but no dataset, Check sets the dataset.
func Check(p *plan.Plan, say func(string)) error {
	if err := guessDataset(p, say); err != nil {
		return err
	}
	return cmp.Or(p.Validate(), CheckFiles(p))
}

// guessDataset detects the dataset from the file if only --dataset-path is
// given.
func guessDataset(p *plan.Plan, say func(string)) error {
	if !p.Given("dataset-path") || p.Given("dataset-name") || len(p.Mix) > 0 {
		return nil
	}
	names, err := workload.MatchingKinds(p.DatasetPath, strings.HasPrefix(p.DatasetPath, hubScheme))
	if err != nil {
		return fmt.Errorf("--dataset-path %s: unknown dataset, set --dataset-name (%w)", p.DatasetPath, err)
	}
	switch len(names) {
	case 0:
		return fmt.Errorf("--dataset-path %s: unknown dataset, set --dataset-name (tacho bench --help lists all datasets)", p.DatasetPath)
	case 1:
		p.DatasetName = names[0]
		if say != nil {
			say(fmt.Sprintf("Using --dataset-name %s for %s.", p.DatasetName, p.DatasetPath))
		}
		return nil
	}
	return fmt.Errorf("--dataset-path %s: ambiguous format, set --dataset-name to one of %s", p.DatasetPath, strings.Join(names, ", "))
}

// CheckFiles checks that all files of the plan exist, before any server is
// contacted.
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
		if _, err := atomicfile.Stat(one.DatasetPath); err != nil {
			return fmt.Errorf("--dataset-path: %w", err)
		}
	}
	name := p.Tokenizer
	if _, err := atomicfile.Stat(name); err != nil && (filepath.IsAbs(name) || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".json")) {
		return fmt.Errorf("--tokenizer: %w", err)
	}
	return nil
}
