package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// knownAgents are the public keys of agents that joined an earlier run with its
// token. Agents waiting for the next run join with their keys alone, because
// each run has its own token.
type knownAgents struct {
	path string

	mu   sync.Mutex
	keys map[string]bool
}

// configFile returns the path of a file in the user's configuration directory.
func configFile(name string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no directory for the coordinator's keys: %w", err)
	}
	return filepath.Join(dir, "tacho", name), nil
}

// openKnownAgents reads the keys, one per line.
func openKnownAgents() (*knownAgents, error) {
	path, err := configFile("agents")
	if err != nil {
		return nil, err
	}
	k := &knownAgents{path: path, keys: map[string]bool{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for key := range strings.FieldsSeq(string(text)) {
		k.keys[key] = true
	}
	return k, nil
}

func (k *knownAgents) has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[key]
}

// add appends a key to the file. If add fails, the agent needs the token of the
// next run.
func (k *knownAgents) add(key string, say func(string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[key] = true
	f, err := os.OpenFile(k.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(key + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		say(fmt.Sprintf("The key of an agent cannot be stored, so it will need the token of the next run: %v.", err))
	}
}
