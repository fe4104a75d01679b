package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tacho-bench/tacho/internal/terminal"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
)

func newProgress(env *Env, p *plan.Plan) *terminal.Progress {
	return terminal.NewProgress(progressOptions(env, p))
}

func progressOptions(env *Env, p *plan.Plan) terminal.Options {
	o := terminal.Options{
		Kind: progressKind(env, p), Every: p.ProgressInterval.Duration(), Stderr: env.Stderr, Screen: env.altScreen,
		Width: env.Width, Height: env.Height, Colour: env.Getenv("NO_COLOR") == "", Pen: env.pen(), Sweep: env.secrets.Sweep,
		Quit: func() {
			select {
			case env.quit <- os.Interrupt:
			default: // a second q counts as the first
			}
		},
	}
	if tty, is := env.Stdin.(*os.File); is && o.Kind == terminal.Live && term.IsTerminal(int(tty.Fd())) {
		o.Keyboard = tty
	}
	return o
}

// progressKind chooses the kind of progress. The view needs a terminal with cursor
// movement.
func progressKind(env *Env, p *plan.Plan) terminal.Kind {
	kinds := map[string]terminal.Kind{plan.NoProgress: terminal.None, plan.PlainProgress: terminal.Plain, plan.JSONProgress: terminal.JSON}
	switch kind, is := kinds[p.Progress]; {
	case p.DisableProgress:
		return terminal.None
	case p.Plain:
		return terminal.Plain
	case is:
		return kind
	case !env.able() || p.Progress == plan.AutoProgress && env.Getenv("CI") != "":
		return terminal.Plain
	}
	return terminal.Live
}

// able reports whether stderr is a terminal with cursor movement.
func (e *Env) able() bool {
	kind := e.Getenv("TERM")
	return e.Terminal && kind != "" && kind != "dumb"
}

// coloured reports whether stdout and stderr are a terminal with colours.
func (e *Env) coloured() bool { return e.able() && e.Getenv("NO_COLOR") == "" }

// pen returns the characters the terminal supports: block characters, unless
// the locale lacks them.
func (e *Env) pen() termtext.Pen {
	language := cmp.Or(e.Getenv("LC_ALL"), e.Getenv("LC_CTYPE"), e.Getenv("LANG"))
	return termtext.Pen{ASCII: language != "" && !strings.Contains(strings.ToUpper(strings.ReplaceAll(language, "-", "")), "UTF8")}
}

// print prints a report. Binary formats bypass the screen, which would escape
// them, and are never printed to a terminal.
func (e *Env) print(f report.Format, r *report.Report) error {
	if !f.Binary {
		return f.Render(e.Stdout, r)
	}
	if file, is := e.bare.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return usage(fmt.Errorf("%s is binary, write it to a file with --report %[1]s=PATH", f.Name))
	}
	return f.Render(e.bare, r)
}
