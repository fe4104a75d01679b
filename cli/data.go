package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tacho"
	"tacho/internal/redact"
	"tacho/plan"
	"tacho/run"
	"tacho/token"
	"tacho/workload"
)

// dataFlags are the words of the command besides those of bench.
type dataFlags struct {
	samples int
	block   int
	write   string
}

func newData(env *Env) *cobra.Command {
	p := plan.Default()
	f, from := &dataFlags{}, ""
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Show what bench would send: counts, lengths, shared prefixes, samples",
		Long: `data makes the workload that bench would send and shows what is in it, without
a server. It takes the flags of bench: put data where bench stands.

Prompts are counted by --tokenizer (a file, a folder or a built-in encoding such
as gpt-4o), and estimated without it. The sharing of prefixes is what a cache of
unlimited size would find if the requests came one after the other.

--write keeps the workload as JSON lines that --dataset-name custom reads.`,
		Example: `  tacho data --dataset-name random --random-input-len "lognormal(600,0.8)" --num-prompts 1000
  tacho data --dataset-name mooncake --dataset-path trace.jsonl --trace-window 0-10m --block-size 512
  tacho data --dataset-name conversation --turns 5 --num-prompts 20 --write talks.jsonl`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env.reads.Store(true)
			if err := readPlan(env, from, &p); err != nil {
				return usage(err)
			}
			return f.run(cmd.Context(), env, p)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&f.samples, "samples", 3, "sessions to print")
	fs.IntVar(&f.block, "block-size", 16, "tokens that a prefix cache shares together")
	fs.StringVar(&f.write, "write", "", "file that gets the workload, as lines of JSON")
	bindPlan(fs, &from)
	bind(fs, &p)
	return cmd
}

func (f *dataFlags) run(ctx context.Context, env *Env, p plan.Plan) error {
	if f.block < 1 || f.samples < 0 {
		return usage(fmt.Errorf("--block-size %d, --samples %d: a block has one token at least, and samples are 0 or more", f.block, f.samples))
	}
	seed := uint64(0)
	if p.Seed != nil {
		seed = *p.Seed
	}
	show := newProgress(env, &p)
	hooks := run.Hooks{Ready: show.ready, Fetch: show.fetch, Say: func(line string) {
		show.clear()
		_, _ = fmt.Fprintln(env.Stderr, line) // a broken stderr stops nothing
	}}
	work, counter, err := run.Workload(ctx, &p, seed, run.Env{Secrets: env.secrets, Tokenizers: tokenizers(env)}, hooks)
	show.stop()
	if err != nil {
		return err
	}
	keep, done, err := f.keeper(env)
	if err != nil {
		return err
	}
	each := func(s *tacho.Session) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return keep(s)
	}
	survey, err := workload.Look(work, max(p.Levels()[0].Prompts, 0), f.samples, f.block, each)
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	out := bufio.NewWriter(env.Stdout)
	print := dataPrinter{out}
	print.survey(&p, survey, counter)
	print.arrivals(work, survey.Sessions)
	print.samples(survey.Samples)
	for _, n := range work.Notes() {
		print.line("note: %s", n)
	}
	if f.write != "" {
		print.line("written to %s", f.write)
	}
	return out.Flush()
}

// keeper writes sessions to the file that was asked for, if any.
func (f *dataFlags) keeper(env *Env) (keep func(*tacho.Session) error, done func() error, err error) {
	if f.write == "" {
		return func(*tacho.Session) error { return nil }, func() error { return nil }, nil
	}
	file, err := os.OpenFile(f.write, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // headers are in it
	if err != nil {
		return nil, nil, err
	}
	out := bufio.NewWriter(file)
	return func(s *tacho.Session) error {
			var line bytes.Buffer
			if err := workload.WriteLine(&line, publicHeaders(env.secrets, s)); err != nil {
				return err
			}
			_, err := out.Write(env.secrets.SweepJSON(line.Bytes()))
			return err
		},
		func() error { return errors.Join(out.Flush(), file.Close()) }, nil
}

// dataPrinter writes lines; the writer under it keeps the first error.
type dataPrinter struct{ out io.Writer }

func (p dataPrinter) line(format string, a ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", a...) }

func (p dataPrinter) survey(asked *plan.Plan, s *workload.Survey, counter token.Counter) {
	name := asked.DatasetName
	if len(asked.Mix) > 0 {
		name = "mix"
	}
	by := counter.Name()
	if s.Forms["token ids"] == s.Requests {
		by = "token ids"
	}
	p.line("dataset %s: %d sessions, %d requests, prompts counted by %s", name, s.Sessions, s.Requests, by)
	if s.Requests == 0 {
		return
	}
	for _, form := range slices.Sorted(maps.Keys(s.Forms)) {
		p.line("  sent as %s: %d", form, s.Forms[form])
	}
	if slices.Max(s.Input) > 0 {
		p.histogram("prompt tokens", s.Input)
	} else {
		p.line("prompt tokens: not known; token counts of images and audio come from the server")
	}
	p.histogram("output tokens", s.Output)
	if s.AudioS > 0 {
		p.line("sound: %.2f s in all, %.2f s in a request", s.AudioS, s.AudioS/float64(s.Requests))
	}
	if s.Requests > s.Sessions {
		p.histogram("turns", s.Turns)
	}
	if s.Units > 0 {
		p.line("shared prefixes: %.2f %% of what prompts are made of began an earlier prompt (blocks of %d)", 100*float64(s.Shared)/float64(s.Units), s.Block)
	}
	for _, l := range slices.Sorted(maps.Keys(s.Labels)) {
		p.line("label %s: %d requests", l, s.Labels[l])
	}
}

const (
	histogramBins  = 10
	histogramWidth = 40
)

// histogram draws how values are spread, in bins of equal width.
func (p dataPrinter) histogram(name string, values []int) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	sum := 0
	for _, v := range sorted {
		sum += v
	}
	at := func(q float64) int { return sorted[min(int(q*float64(n)), n-1)] }
	low, high := sorted[0], sorted[n-1]
	p.line("%s: mean %.1f, min %d, p50 %d, p90 %d, p99 %d, max %d, sum %d", name, float64(sum)/float64(n), low, at(.5), at(.9), at(.99), high, sum)
	if low == high {
		return
	}
	width := (high-low)/histogramBins + 1
	counts := make([]int, (high-low)/width+1)
	for _, v := range sorted {
		counts[(v-low)/width]++
	}
	most := slices.Max(counts)
	for i, c := range counts {
		from := low + i*width
		p.line("  %7d-%-7d %7d %s", from, min(from+width-1, high), c, strings.Repeat("#", (c*histogramWidth+most-1)/most))
	}
}

// arrivals tells when the sessions of a trace are due.
func (p dataPrinter) arrivals(work workload.Workload, n int) {
	own, ok := work.(tacho.Pacer)
	if !ok || n == 0 {
		return
	}
	var last time.Duration
	k := 0
	for at := range own.Arrivals() {
		last = at
		if k++; k == n {
			break
		}
	}
	rate := ""
	if last > 0 {
		rate = fmt.Sprintf(", %.3f per second", float64(k-1)/last.Seconds())
	}
	p.line("arrivals of its own: %d in %v%s", k, last, rate)
}

// samples shows the beginnings of the first sessions.
func (p dataPrinter) samples(sessions []tacho.Session) {
	for _, s := range sessions {
		p.line("session %d:", s.ID)
		for i := range s.Turns {
			t := &s.Turns[i]
			pause := ""
			if t.Think > 0 {
				pause = fmt.Sprintf(", after %v", t.Think)
			}
			p.line("  turn %d: %d in, %d out%s: %s", i+1, t.Request.InputTokens, t.Request.MaxTokens, pause, opening(&t.Request.Input))
		}
	}
}

// opening is the beginning of an input, fit for a terminal.
func opening(in *tacho.Input) string {
	const most = 100
	text := in.Text
	if in.IDs != nil {
		text = fmt.Sprint(in.IDs[:min(len(in.IDs), 16)])
	}
	if in.Audio != nil {
		text = fmt.Sprintf("(%s, %d bytes)", in.Audio.Name, len(in.Audio.Data))
	}
	for _, m := range in.Messages {
		content := m.Content
		if m.Answer > 0 {
			content = fmt.Sprintf("(answer of turn %d)", m.Answer)
		}
		if m.HasMedia() {
			content += " (with pictures or sound)"
		}
		text += m.Role + ": " + content + " / "
		if len(text) > most {
			break
		}
	}
	if len(text) > most {
		cut := most
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// publicHeaders is a session whose requests have no secret in their headers.
func publicHeaders(secrets *redact.Secrets, s *tacho.Session) *tacho.Session {
	out := *s
	out.Turns = slices.Clone(s.Turns)
	for i := range out.Turns {
		q := &out.Turns[i].Request
		q.Header = slices.Clone(q.Header)
		for j, h := range q.Header {
			if redact.NamesSecret(h.Key) {
				q.Header[j].Value = secrets.Header(h.Key, h.Value)
			}
		}
	}
	return &out
}
