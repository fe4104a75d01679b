package run

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/redact"
)

// fileOptions are the options of a plan that name files.
var fileOptions = []string{"dataset-path", "tokenizer", "replay", "ca-cert", "client-cert", "client-key", "api-key-file"}

// fileInside finds files that are named inside other values: @FILE and file(HISTOGRAM).
var fileInside = regexp.MustCompile(`(?:@|\bfile\()([^\s,)]+)`)

// Files returns the names in a task that may be files on the agent's machine. Nothing is
// opened, because decoding a plan already reads some of the files.
func (t *Task) Files() ([]string, error) {
	var options map[string]any
	if err := json.Unmarshal(t.Plan, &options); err != nil {
		return nil, fmt.Errorf("decode the plan: %w", err)
	}
	for _, c := range t.Coordinates { // values that the level adds
		options[c.Name] = c.Value
	}
	var files []string
	for name, value := range options {
		files = append(files, filesIn(strings.ReplaceAll(name, "_", "-"), value)...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// filesIn returns the files that the value of an option names.
func filesIn(option string, value any) (files []string) {
	switch value := value.(type) {
	case string:
		if value != "" && slices.Contains(fileOptions, option) { // the coordinator clears --api-key-file
			files = append(files, value)
		}
		for _, m := range fileInside.FindAllStringSubmatch(value, -1) {
			files = append(files, m[1])
		}
		if option == "mix" { // a list of OPTION=VALUE
			for word := range strings.FieldsSeq(value) {
				name, value, _ := strings.Cut(word, "=")
				files = append(files, filesIn(strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"), value)...)
			}
		}
	case []any:
		for _, one := range value {
			files = append(files, filesIn(option, one)...)
		}
	case map[string]any:
		for name, one := range value {
			files = append(files, filesIn(strings.ReplaceAll(name, "_", "-"), one)...)
		}
	}
	return files
}

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
