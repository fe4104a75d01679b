package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/report"
)

func newOpen(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "open [RUN-DIRECTORY|RESULT|FOLDER]",
		Short: "Open the page of a run in the browser",
		Long: `open shows the HTML report of a stored run, a result of another tool, or a folder
in the browser, by default of the newest run. last~1 is the run before it. open
makes the page anew, in the user's cache directory, so that the page of a run from
someone else is safe to open. Without a browser, open prints the path of the page.`,
		Example: `  tacho open
  tacho open last~1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			env.reads.Store(true)
			paths, err := findRuns(env, args)
			if err != nil {
				return err
			}
			return openPage(env, paths[0])
		},
	}
}

// openPage opens the page of a run in the browser, or prints its path.
func openPage(env *Env, run string) error {
	path, err := pageOf(run)
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if env.Browse == nil || env.Browse(path) != nil {
		_, err = fmt.Fprintln(env.Stdout, path)
		return err
	}
	_, _ = fmt.Fprintln(env.Stderr, "Opened "+path) // informational
	return nil
}

// pageOf makes the page of a run or result in a private directory and returns its path. It never uses the page in the
// run directory, because the run may come from a stranger, and the browser would run the scripts of that page with the
// rights of a local file. Each run has one file, so that pages do not accumulate.
func pageOf(run string) (string, error) {
	whole, err := filepath.Abs(run)
	if err != nil {
		return "", err
	}
	runs, err := archive.All(run, nil)
	if err != nil {
		return "", err
	}
	html, err := report.ParseOutput("html")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("make a page: %w (tacho report %s --report html=FILE writes it elsewhere)", err, run)
	}
	dir := filepath.Join(cache, "tacho", "pages")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%.16x.html", sha256.Sum256([]byte(whole))))
	return path, bench.WriteReport(&report.Report{Runs: runs}, &html, path, nil)
}

// browse opens a file in the browser of the desktop.
func browse(path string) error {
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.Command("open", path) //nolint:noctx // returns when the browser has the file
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", path) //nolint:noctx // the same
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("no display")
		}
		cmd = exec.Command("xdg-open", path) //nolint:noctx // the same
	}
	return cmd.Run()
}
