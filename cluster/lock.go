package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"tacho/internal/solely"
)

// lockSpool keeps other agents of this machine away from a spool: they would take
// what is being written there for what was left behind.
func lockSpool(root string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w (choose another place with --spool)", err)
	}
	if err := solely.Lock(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("another agent uses the spool %s: give each a --name or a --spool of its own", root)
	}
	return func() { _ = f.Close() }, nil
}
