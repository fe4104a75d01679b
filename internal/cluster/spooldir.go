package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tacho-bench/tacho/internal/filelock"
)

// lockSpool prevents two agents from using one spool. Each would deliver what the other is
// writing.
func lockSpool(root string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w (choose another place with --spool)", err)
	}
	if err := filelock.Lock(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("another agent uses the spool %s: give each agent its own --name or --spool", root)
	}
	return func() { _ = f.Close() }, nil
}

// keyFile holds the key of the agent that uses a spool.
const keyFile = "agent.nk"

// spoolIdentity returns the key of the agent that uses a spool, and creates one for a new
// spool. A restarted agent has the same key, so the coordinator accepts records of the earlier
// process.
func spoolIdentity(root string) (*Identity, error) {
	path := filepath.Join(root, keyFile)
	seed, err := os.ReadFile(path)
	switch {
	case err == nil:
		i, err := ReadIdentity(seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return i, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	i, err := NewIdentity()
	if err != nil {
		return nil, err
	}
	if seed, err = i.Seed(); err != nil {
		return nil, err
	}
	return i, os.WriteFile(path, seed, 0o600)
}
