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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// dataFlags are the flags of data besides those of bench.
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
		Short: "Show the requests of bench: counts, lengths, shared prefixes, samples",
		Long: `data creates the requests of bench without a server and describes them. It
accepts the flags of bench: replace bench with data.

--tokenizer counts prompts (a file, a directory or a built-in encoding such as
gpt-4o); without it lengths are estimates. Prefix sharing is the hit rate of an
unlimited cache for sequential requests.

--write stores the requests as JSON lines for --dataset-name custom.`,
		Example: `  tacho data --dataset-name random --random-input-len "lognormal(600,0.8)" --num-prompts 1000
  tacho data --workload chat
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
	fs.IntVar(&f.samples, "samples", 3, "number of sessions to print")
	fs.IntVar(&f.block, "block-size", 16, "tokens per block of a prefix cache")
	fs.StringVar(&f.write, "write", "", "JSON lines file for the requests")
	bindPlan(fs, &from)
	bind(fs, &p)
	return cmd
}

func (f *dataFlags) run(ctx context.Context, env *Env, p plan.Plan) error {
	if f.block < 1 || f.samples < 0 {
		return usage(fmt.Errorf("--block-size %d, --samples %d: want a block size of at least 1 and samples of at least 0", f.block, f.samples))
	}
	seed := uint64(0)
	if p.Seed != nil {
		seed = *p.Seed
	}
	show := newProgress(env, &p)
	work, counter, err := run.Workload(ctx, &p, seed, run.Env{Secrets: env.secrets, Tokenizers: tokenizers(env), Observer: show})
	show.Stop()
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
	survey, err := workload.NewSurvey(work, max(p.Levels()[0].Prompts, 0), f.samples, f.block, each)
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	out := bufio.NewWriter(env.Stdout)
	print := dataPrinter{out}
	print.definition(&p)
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

// keeper returns a function that writes sessions to the file of --write, if
// set.
func (f *dataFlags) keeper(env *Env) (keep func(*tacho.Session) error, done func() error, err error) {
	if f.write == "" {
		return func(*tacho.Session) error { return nil }, func() error { return nil }, nil
	}
	file, err := os.OpenFile(f.write, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // may contain secret headers
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

// dataPrinter prints lines; the writer below keeps the first error.
type dataPrinter struct{ out io.Writer }

func (p dataPrinter) line(format string, a ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", a...) }

// definition prints the definition of a named workload.
func (p dataPrinter) definition(given *plan.Plan) {
	for _, w := range plan.NamedWorkloads {
		if w.Name != given.Workload {
			continue
		}
		p.line("workload %s: %s", w.Name, w.About)
		p.line("  source: %s", w.Source)
		for _, o := range w.Options {
			p.line("  --%s %s", o[0], outcome.Quoted(o[1]))
		}
		if w.SLO != "" {
			p.line("  SLO of the source: --slo %s", outcome.Quoted(w.SLO))
		}
		if w.Ours != "" {
			p.line("  choice of tacho: %s", w.Ours)
		}
	}
}

func (p dataPrinter) survey(given *plan.Plan, s *workload.Survey, counter token.Counter) {
	name := given.DatasetName
	if len(given.Mix) > 0 {
		name = "mix"
	}
	by := counter.Name()
	if s.Forms["token ids"] == s.Requests {
		by = "token ids"
	}
	p.line("dataset %s: %d sessions, %d requests, token counts by %s", name, s.Sessions, s.Requests, by)
	if s.Requests == 0 {
		return
	}
	for _, form := range slices.Sorted(maps.Keys(s.Forms)) {
		p.line("  sent as %s: %d", form, s.Forms[form])
	}
	if slices.Max(s.Input) > 0 {
		p.histogram("prompt tokens", s.Input)
	} else {
		p.line("prompt tokens: unknown, because the server counts images and audio")
	}
	p.histogram("output tokens", s.Output)
	if s.AudioS > 0 {
		p.line("audio: %.2f s in total, %.2f s per request", s.AudioS, s.AudioS/float64(s.Requests))
	}
	if s.Requests > s.Sessions {
		p.histogram("turns", s.Turns)
	}
	if s.Units > 0 {
		p.line("shared prefixes: %s of prompt tokens (blocks of %d)", metric.Percent(float64(s.Shared)/float64(s.Units)), s.Block)
	}
	for _, l := range slices.Sorted(maps.Keys(s.Labels)) {
		p.line("label %s: %d requests", l, s.Labels[l])
	}
}

// histogram prints the distribution of values in bins of equal width.
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
	width := (high-low)/10 + 1
	counts := make([]int, (high-low)/width+1)
	for _, v := range sorted {
		counts[(v-low)/width]++
	}
	most := slices.Max(counts)
	for i, c := range counts {
		from := low + i*width
		p.line("  %7d-%-7d %7d %s", from, min(from+width-1, high), c, strings.Repeat("#", (c*40+most-1)/most))
	}
}

// arrivals prints the arrivals of a trace.
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
	p.line("arrivals of the trace: %d in %v%s", k, last, rate)
}

// samples prints the start of the first sessions.
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

// opening returns the start of an input, safe for a terminal.
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
			content += " (with images or audio)"
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

// publicHeaders returns the session without secrets in request headers.
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
