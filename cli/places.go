package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tacho/internal/wholefile"
	"tacho/plan"
)

// checkPlaces complains about places where nothing can be written, before
// anything is measured that could then not be kept. It leaves nothing behind.
func checkPlaces(p *plan.Plan) error {
	if err := writable(p.RunsDir); err != nil {
		return fmt.Errorf("--runs-dir: %w", err)
	}
	if err := checkOrders(p); err != nil {
		return err
	}
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	file := filepath.Join(p.ResultDir, p.ResultFilename)
	if info, err := os.Stat(file); p.ResultFilename != "" && err == nil && info.IsDir() {
		return fmt.Errorf("--result-filename: %s is a directory: name a file", file)
	}
	dir := p.ResultDir
	if p.ResultFilename != "" {
		dir = filepath.Dir(file)
	}
	if err := writable(dir); err != nil {
		return fmt.Errorf("--result-dir: %w", err)
	}
	return nil
}

// writable says why no file can be made in a directory, which need not be
// there yet.
func writable(dir string) error {
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: choose another place", dir)
	}
	f, err := os.CreateTemp(dir, ".tacho-*")
	if err != nil {
		return fmt.Errorf("nothing can be written in %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// apiKey is the key to show to servers, and where it comes from.
func apiKey(env *Env, p *plan.Plan) (key, from string, err error) {
	switch {
	case p.APIKey != "" && p.APIKeyFile != "":
		return "", "", errors.New("--api-key and --api-key-file: give one of them")
	case p.APIKey != "":
		return p.APIKey, "--api-key", nil
	case p.APIKeyFile != "":
		text, err := wholefile.ReadOnce(p.APIKeyFile)
		if err != nil {
			return "", "", fmt.Errorf("--api-key-file: %w", err)
		}
		key := string(bytes.TrimSpace(text))
		if key == "" || strings.ContainsAny(key, "\r\n") {
			return "", "", fmt.Errorf("--api-key-file %s: it should hold one line, the key", p.APIKeyFile)
		}
		return key, "--api-key-file " + p.APIKeyFile, nil
	}
	return env.Getenv("OPENAI_API_KEY"), "OPENAI_API_KEY", nil
}
