package run

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/redact"
)

// Addresses returns the servers that the plan of a task names, whatever Targets says.
func (t *Task) Addresses() ([]string, error) {
	l, err := t.level(&redact.Secrets{})
	if err != nil {
		return nil, err
	}
	p := l.Plan
	if err := insidePath(p.Endpoint); err != nil {
		return nil, err
	}
	all := p.BaseURLs()
	for _, address := range slices.Concat(p.MetricsURL, p.GPUMetricsURL) {
		if strings.Contains(address, "://") {
			all = append(all, address)
		}
	}
	for _, address := range all {
		if err := insidePath(address); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// insidePath refuses a path that leaves its directory.
func insidePath(text string) error {
	plain := strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", `\`, "/").Replace(text)
	for part := range strings.SplitSeq(plain, "/") {
		if part == ".." {
			return fmt.Errorf("the path %s contains ..: write it without", path.Clean(plain))
		}
	}
	return nil
}
