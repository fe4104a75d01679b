package workload

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/rows"
)

// MatchingKinds returns the names of the datasets that path can be. For a path on the hub
// these are the kinds that read the hub. Otherwise the extension of the file and the
// columns of its first row decide.
func MatchingKinds(path string, hub bool) (names []string, err error) {
	if hub {
		for _, k := range Kinds {
			if k.Hub {
				names = append(names, k.Name)
			}
		}
		return names, nil
	}
	info, err := atomicfile.Stat(path)
	if err != nil {
		return nil, err
	}
	var row map[string]json.RawMessage
	ending := func(e string) bool { return strings.HasSuffix(strings.ToLower(rows.UncompressedName(path)), e) }
	if !info.IsDir() && !ending(".txt") {
		err = rows.Each(path, &rows.Bad{}, func(text json.RawMessage) error {
			return errors.Join(json.Unmarshal(text, &row), rows.ErrEnough)
		})
	}
	for _, k := range Kinds {
		holds := func(name string) bool { _, has := row[name]; return has || name[0] == '.' && ending(name) }
		if slices.ContainsFunc(k.reads, func(all []string) bool {
			return !slices.ContainsFunc(all, func(name string) bool { return !holds(name) })
		}) {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return nil, err
	}
	return names, nil
}
