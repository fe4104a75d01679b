package workload

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strings"
	"sync"

	// the poems

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var sonnet = Kind{
	Name: "sonnet", Doc: "lines of Shakespeare's sonnets or of your own text, after lines shared by all prompts",
	reads:   [][]string{{".txt"}},
	Endless: true, Chat: true, New: newSonnet,
	options: func(d *Dataset, o *Options) {
		o.Input, o.Output, o.Prefix = d.SonnetInputLen, d.SonnetOutputLen, d.SonnetPrefixLen
	},
}

// sonnetFlags are the options of sonnet.
type sonnetFlags struct {
	SonnetInputLen  Length `flag:"sonnet-input-len" default:"550" help:"sonnet: maximum prompt tokens"`
	SonnetOutputLen Length `flag:"sonnet-output-len" default:"150" help:"sonnet: output tokens"`
	SonnetPrefixLen int    `flag:"sonnet-prefix-len" default:"200" most:"tokens" help:"sonnet: prompt tokens shared by all prompts (part of the input length)"`
}

//go:embed sonnets.txt
var sonnets string

const (
	sonnetBase  = "Pick as many lines as you can from these poem lines:\n"
	sonnetTries = 200 // draws before a length counts as unreachable
)

// sonnetWorkload makes prompts of complete lines. Prompts have at most the requested
// length; longer draws are discarded.
type sonnetWorkload struct {
	Options
	ctx    context.Context // context of the run, because counting may call a server
	lines  []string
	prefix string // the instruction and the shared lines
	more   int    // number of lines to draw
	mu     sync.Mutex
	known  map[uint64]sonnetDraw
	*textFitter
}

// sonnetDraw is the first draw of a session that was short enough.
type sonnetDraw struct{ try, tokens int }

func newSonnet(ctx context.Context, o Options) (Workload, error) {
	text := sonnets
	if o.Path != "" {
		var err error
		var cut bool
		if text, cut, err = rows.ReadText(o.Path, o.maxText()); err != nil {
			return nil, fmt.Errorf("sonnet: %w", err)
		}
		if cut {
			return nil, fmt.Errorf("sonnet: %s has more than %d MiB; use a shorter text, or --dataset-name book", o.Path, o.maxText()>>20)
		}
	}
	w := &sonnetWorkload{Options: o, ctx: ctx, known: map[uint64]sonnetDraw{}, textFitter: newTextFitter(ctx, o.Counter)}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			w.lines = append(w.lines, strings.TrimRight(line, "\r\n")+"\n")
		}
	}
	if err := w.measure(); err != nil {
		return nil, fmt.Errorf("sonnet: %w", err)
	}
	return w, w.precompute(o.Count, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// measure computes the number of lines for the requested lengths from the average line.
func (w *sonnetWorkload) measure() error {
	input, constant := w.Input.Constant()
	if !constant || w.Prefix > input {
		return fmt.Errorf("prompts of %v tokens with %d shared; --sonnet-input-len must be a number of at least --sonnet-prefix-len", w.Input, w.Prefix)
	}
	if len(w.lines) == 0 {
		return fmt.Errorf("%s has no lines", w.Path)
	}
	base, err := w.Counter.Count(w.ctx, sonnetBase)
	if err != nil {
		return err
	}
	sample := w.lines[:min(len(w.lines), 200)]
	all, err := w.Counter.Count(w.ctx, strings.Join(sample, ""))
	if err != nil {
		return err
	}
	if input < base {
		return fmt.Errorf("prompts of %d tokens are too short because the instruction alone has %d; increase --sonnet-input-len", input, base)
	}
	average := max(float64(all)/float64(len(sample)), 1e-9)
	lines := int(max(math.Round(float64(input-base)/average), 1))
	shared := int(max(math.Round(float64(w.Prefix-base)/average), 0))
	w.more = max(lines-shared, 0)
	w.prefix = sonnetBase
	for k := range shared {
		w.prefix += w.lines[k%len(w.lines)]
	}
	return nil
}

// Session implements tacho.Source.
func (w *sonnetWorkload) Session(i uint64) (tacho.Session, error) {
	w.mu.Lock()
	found, ok := w.known[i]
	w.mu.Unlock()
	limit, _ := w.Input.Constant()
	for !ok {
		tokens, err := w.Counter.Count(w.ctx, w.draw(i, found.try))
		if err != nil {
			return tacho.Session{}, err
		}
		if found.tokens = tokens; tokens <= limit {
			break
		}
		if found.try++; found.try == sonnetTries {
			return tacho.Session{}, fmt.Errorf("sonnet: none of %d draws of %d lines has at most %d tokens; increase --sonnet-input-len", sonnetTries, w.more, limit)
		}
	}
	if !ok {
		w.mu.Lock()
		w.known[i] = found
		w.mu.Unlock()
	}
	rng := rngOf(w.Seed^0x6f7574707574, i)
	q := tacho.Request{InputTokens: found.tokens, MaxTokens: w.Output.Draw(rng, 1), IgnoreEOS: w.IgnoreEOS}
	q.Input.Text = w.draw(i, found.try)
	return single(i, q), nil
}

// draw returns draw n of session i.
func (w *sonnetWorkload) draw(i uint64, n int) string {
	rng := rngOf(w.Seed+uint64(n)*0x9e3779b97f4a7c15, i)
	var b strings.Builder
	b.WriteString(w.prefix)
	for range w.more {
		b.WriteString(w.lines[rng.IntN(len(w.lines))])
	}
	return b.String()
}

// Warmup implements Workload.
func (w *sonnetWorkload) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.Session(warmupBase + i)
	if err == nil {
		q := &s.Turns[0].Request
		q.Input.Text = fmt.Sprintf("(warm-up %d.%d) ", w.Seed, i) + q.Input.Text
	}
	return s, err
}

// Notes implements Workload.
func (w *sonnetWorkload) Notes() []string { return nil }
