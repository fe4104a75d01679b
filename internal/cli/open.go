package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/bench"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/report"
)

// pageFile is the page in the directory of every complete run.
const pageFile = "report.html"

func newOpen(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "open [RUN-DIRECTORY|RESULT|FOLDER]",
		Short: "Open the page of a run in the browser",
		Long: `open shows the HTML report of a stored run in the browser, by default of the
newest run. last~1 is the run before it. Results of other tools and folders get a
page in the directory for temporary files. Without a browser, open prints the path
of the page.`,
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

// pageOf returns the stored page of a run, or creates a temporary page.
func pageOf(run string) (string, error) {
	stored := filepath.Join(run, pageFile)
	if _, err := os.Stat(stored); err == nil {
		return stored, nil
	}
	runs, err := archive.All(run, nil)
	if err != nil {
		return "", err
	}
	html, err := report.ParseOutput("html")
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp("", "tacho-*.html")
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(file.Close(), bench.WriteReport(&report.Report{Runs: runs}, &html, file.Name()))
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
