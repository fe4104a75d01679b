package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/hub"
	"github.com/tacho-bench/tacho/internal/rows"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// hubScheme starts a path on the hub, as in hf://datasets/owner/name/file.
const hubScheme = "hf://datasets/"

// convertedRevision is the branch with the hub's own Parquet copy of every
// public dataset, as SUBSET/SPLIT/NUMBER.parquet.
const convertedRevision = "refs/convert/parquet"

// hubName parses the plan's path as a dataset of the hub, optionally with a
// file. ok is false for a local path. Without the scheme, the dataset kind must
// accept the name and no local file may have the same name.
func hubName(p *plan.Plan, kind workload.Kind) (name, file string, ok bool) {
	path := cmp.Or(p.DatasetPath, kind.DefaultHub)
	rest, marked := strings.CutPrefix(path, hubScheme)
	if !marked && !kind.Hub {
		return "", "", false
	}
	if _, err := atomicfile.Stat(path); err == nil && !marked {
		return "", "", false
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 2 || !marked && (len(parts) != 2 || strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ".")) {
		return "", "", false
	}
	if len(parts) == 3 {
		file = parts[2]
	}
	return parts[0] + "/" + parts[1], file, true
}

// locate downloads a dataset of the hub into the local cache, if the plan names
// one, and stores its files in o.
func (f *feed) locate(ctx context.Context, p *plan.Plan, kind workload.Kind, o *workload.Options) error {
	name, file, ok := hubName(p, kind)
	if !ok {
		locateNamed(p, o)
		return nil
	}
	if !kind.Hub && file == "" {
		return &UsageError{fmt.Errorf("--dataset-path %s: %s reads one file, name it as in %sowner/name/file", p.DatasetPath, kind.Name, hubScheme)}
	}
	d := &download{
		setting: f.setting, named: workload.NamedFiles(name, p.BFCLCategories), hub: f.env.Tokenizers.hub(), name: name, subset: p.HFSubset, split: p.HFSplit, whole: p.NoStream, rows: o.Count,
	}
	d.whole = d.whole || len(d.named) > 1 // each file has different rows
	files, err := d.files(ctx, file)
	if err != nil {
		return fmt.Errorf("dataset %s: %w", name, err)
	}
	o.Hub, o.Files = name, files
	if !kind.Hub {
		o.Path = files[0]
	}
	return nil
}

// locateNamed stores the files of a local directory in o, for datasets whose
// files have fixed names.
func locateNamed(p *plan.Plan, o *workload.Options) {
	if info, err := atomicfile.Stat(p.DatasetPath); err == nil && info.IsDir() {
		for _, file := range workload.NamedFiles(o.Hub, p.BFCLCategories) {
			o.Files = append(o.Files, filepath.Join(p.DatasetPath, file))
		}
	}
}

// A download fetches a dataset from the hub.
type download struct {
	*setting
	hub           hub.Hub
	named         []string // file names, for datasets whose files have fixed names
	name          string
	subset, split string
	whole         bool // fetch all files; otherwise stop when there are enough rows
	rows          int  // 0 means all
}

// files returns local paths of the dataset: the named file, or all files of the
// subset and split. Cached files are used without network access. The hub's
// Parquet files are tried first, because their names contain subset and split.
func (d *download) files(ctx context.Context, file string) ([]string, error) {
	converted := hub.Repo{Dataset: true, Name: d.name, Revision: convertedRevision}
	original := hub.Repo{Dataset: true, Name: d.name}
	repos := []hub.Repo{converted, original}
	if file != "" {
		d.named = []string{file}
	}
	if d.named != nil {
		repos = repos[1:]
	}
	local, err := d.fromAny(ctx, repos, false)
	if err == nil || ctx.Err() != nil || !isChoice(err) && !errors.Is(err, fs.ErrNotExist) {
		return local, err
	}
	if d.hub.Offline {
		return nil, fmt.Errorf("%w; %w", err, hub.ErrOffline)
	}
	files, err := d.fromAny(ctx, repos, true)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("not a local file or directory, and not available as a dataset: %w", err)
	}
	return files, err
}

// fromAny returns the files of the first repository that has them. If all
// repositories fail, a choiceError takes precedence over "not found".
func (d *download) fromAny(ctx context.Context, repos []hub.Repo, online bool) (files []string, err error) {
	for _, repo := range repos {
		var next error
		if files, next = d.from(ctx, repo, online); next == nil {
			return files, nil
		}
		if !isChoice(err) {
			err = next
		}
		if ctx.Err() != nil || !errors.Is(next, fs.ErrNotExist) && (online || !isChoice(next)) {
			break
		}
	}
	return nil, err
}

// A choiceError lists the available subsets, splits or files.
type choiceError struct{ error }

func isChoice(err error) bool { return errors.As(err, new(choiceError)) }

// from returns the files of one repository, listed by the cache or the hub.
func (d *download) from(ctx context.Context, repo hub.Repo, online bool) ([]string, error) {
	var list hub.Listing
	var err error
	if online {
		list, err = d.hub.List(ctx, repo)
	} else {
		list, err = d.hub.Local(repo)
	}
	if err != nil {
		return nil, err
	}
	want := d.named
	if want == nil {
		if want, err = d.choose(list.Files, repo.Revision == convertedRevision); err != nil {
			return nil, err
		}
	}
	return d.fetch(ctx, repo, list.Commit, want)
}

// fetch downloads files in order until they contain enough rows.
func (d *download) fetch(ctx context.Context, repo hub.Repo, commit string, want []string) ([]string, error) {
	var out []string
	have := 0
	for i, file := range want {
		if _, ok := d.hub.Cached(repo, commit, file); !ok && !d.hub.Offline {
			d.say("Downloading %s of dataset %s (file %d of %d).", file, d.name, i+1, len(want))
		}
		local, err := d.hub.Fetch(ctx, repo, commit, file, func(done, all int64) {
			d.env.Observer.Progress(path.Base(file), done, all)
		})
		if errors.Is(err, hub.ErrOffline) && len(out) > 0 {
			d.say("Using the first %d of %d files of dataset %s, because the others are not in the cache and %v.", i, len(want), d.name, hub.ErrOffline)
			break
		} else if err != nil {
			return nil, err
		}
		out = append(out, local)
		if d.whole || d.rows == 0 || len(want) == 1 {
			continue
		}
		n, err := rows.Count(local)
		if err != nil {
			return nil, err
		}
		if have += n; have >= d.rows {
			break
		}
	}
	return out, nil
}

// choose selects the files of the subset and split.
func (d *download) choose(files []string, converted bool) ([]string, error) {
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !rows.IsData(f) })
	slices.Sort(files)
	if len(files) == 0 {
		return nil, fmt.Errorf("no parquet, json, jsonl or csv file on the hub: %w", fs.ErrNotExist)
	}
	if converted {
		return d.chooseConverted(files)
	}
	for _, word := range []string{d.subset, d.split} {
		kept := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.Contains(f, word) })
		if len(kept) == 0 {
			return nil, choiceError{fmt.Errorf("no file name contains %q (--hf-subset, --hf-split), available are %s", word, strings.Join(files[:min(len(files), 20)], ", "))}
		}
		files = kept
	}
	if d.split == "" {
		files = preferred(files, workload.DefaultSplit(d.name))
	}
	return files, nil
}

// chooseConverted selects from files named SUBSET/SPLIT/NUMBER.parquet.
func (d *download) chooseConverted(files []string) ([]string, error) {
	tree := map[string]map[string][]string{}
	for _, f := range files {
		parts := strings.Split(f, "/")
		if len(parts) != 3 {
			continue
		}
		subset, split := parts[0], strings.TrimPrefix(parts[1], "partial-")
		if tree[subset] == nil {
			tree[subset] = map[string][]string{}
		}
		tree[subset][split] = append(tree[subset][split], f)
	}
	if len(tree) == 0 {
		return nil, fmt.Errorf("no Parquet files on the hub: %w", fs.ErrNotExist)
	}
	subset, err := oneOf("--hf-subset", d.subset, []string{"default", workload.DefaultSubset(d.name)}, slices.Sorted(maps.Keys(tree)))
	if err != nil {
		return nil, err
	}
	splits := tree[subset]
	split, err := oneOf("--hf-split", d.split, []string{workload.DefaultSplit(d.name), "train", "test"}, slices.Sorted(maps.Keys(splits)))
	if err != nil {
		return nil, err
	}
	return splits[split], nil
}

// oneOf returns the requested name, the only available name, or the first usual
// name.
func oneOf(flag, wanted string, usual, have []string) (string, error) {
	if len(have) == 1 && wanted == "" {
		return have[0], nil
	}
	if wanted != "" {
		usual = []string{wanted}
	}
	for _, name := range usual {
		if slices.Contains(have, name) {
			return name, nil
		}
	}
	if wanted == "" {
		return "", choiceError{fmt.Errorf("choose one of %s with %s", strings.Join(have, ", "), flag)}
	}
	return "", choiceError{fmt.Errorf("%s %s: available are %s", flag, wanted, strings.Join(have, ", "))}
}

// preferred returns the files with word in their names, or all files if no name
// contains word.
func preferred(files []string, word string) []string {
	kept := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.Contains(f, word) })
	if len(kept) == 0 {
		return files
	}
	return kept
}
