package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"tacho"
	"tacho/internal/rows"
)

var weka = Kind{
	Name: "weka", Doc: "WEKA agentic traces: conversations of requests with hash_ids, think times and sub-agents; a file or directory of JSON or JSON lines. They have no arrivals of their own: give --request-rate (conversations per second) or --max-concurrency (users)",
	Tokens: true, New: newWeka,
	options: func(_ *Dataset, o *Options) { o.IgnoreEOS = true },
}

// wekaBlock is how many tokens a hash id stands for if the trace does not say.
const wekaBlock = 64

// wekaTalk is one conversation of the trace. Times are in seconds.
type wekaTalk struct {
	ID        string        `json:"id"`
	BlockSize int           `json:"block_size"`
	Scope     string        `json:"hash_id_scope"` // local: hash ids mean nothing outside the conversation
	Requests  []wekaRequest `json:"requests"`
}

type wekaRequest struct {
	T        float64       `json:"t"`
	Type     string        `json:"type"`
	Model    string        `json:"model"`
	In       int           `json:"in"`
	Out      int           `json:"out"`
	HashIDs  []int64       `json:"hash_ids"`
	APITime  float64       `json:"api_time"`
	Think    *float64      `json:"think_time"`
	Requests []wekaRequest `json:"requests"` // of a sub-agent
}

// A wekaTurn is a request in its place.
type wekaTurn struct {
	*wekaRequest
	after  []int
	thinkS float64
}

// wekaTrace is a workload of such conversations. Only their places are in memory.
type wekaTrace struct {
	tokenMaker
	Options
	rows   rows.Kept
	places []rows.Place // of the conversations; the tag is the number in its file
	said   []string
}

func newWeka(_ context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("weka: no trace: give a file or directory with --dataset-path")
	}
	files, err := dataFiles(o.Path, o.Subset)
	if err != nil {
		return nil, fmt.Errorf("weka: %w", err)
	}
	w := &wekaTrace{Options: o, tokenMaker: newTokenMaker(o)}
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	for _, path := range files {
		if err := w.find(path, &bad); err != nil {
			return nil, fmt.Errorf("weka: %w", err)
		}
	}
	if len(w.places) == 0 {
		return nil, fmt.Errorf("weka: %s has no conversation in it%s", o.Path, bad.Also())
	}
	w.said = bad.Notes()
	_, _, err = w.talk(0) // tells whether it is such a trace at all
	return w, err
}

// find finds the conversations of a file, as far as they are wanted. Unless bad
// ones are to be skipped, what is wrong with one is told when it is its turn.
func (w *wekaTrace) find(path string, bad *rows.Bad) error {
	if len(w.places) == w.most() && len(w.places) > 0 {
		return nil
	}
	n := uint32(0)
	return w.rows.Each(path, bad, func(row json.RawMessage, offset int64) error {
		n++
		if bad.Skip {
			if _, _, err := w.parse(row); err != nil {
				return err
			}
		}
		place, err := w.rows.Keep(row, offset)
		if err != nil {
			return err
		}
		place.Tag = n
		if w.places = append(w.places, place); len(w.places) == w.most() {
			return rows.ErrEnough
		}
		return nil
	})
}

// most is how many conversations are wanted of the trace; 0 is all.
func (w *wekaTrace) most() int {
	if w.Count > 0 && (w.Trace.Limit == 0 || w.Count < w.Trace.Limit) {
		return w.Count
	}
	return w.Trace.Limit
}

// talk reads a conversation of the trace.
func (w *wekaTrace) talk(at uint64) (*wekaTalk, []wekaTurn, error) {
	place := w.places[at]
	row, err := w.rows.Read(place)
	if err != nil {
		return nil, nil, fmt.Errorf("weka: %w", err)
	}
	talk, turns, err := w.parse(row)
	if err != nil {
		return nil, nil, fmt.Errorf("weka: %s: %w (--bad-lines skip goes on without it)", w.rows.Where(place, place.Tag), err)
	}
	return talk, turns, nil
}

func (w *wekaTrace) parse(text []byte) (*wekaTalk, []wekaTurn, error) {
	var t wekaTalk
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, nil, fmt.Errorf("not a conversation of the trace: %w", err)
	}
	if t.BlockSize == 0 {
		t.BlockSize = wekaBlock
	}
	if w.Trace.Block > 0 {
		t.BlockSize = w.Trace.Block
	}
	if t.BlockSize < 1 {
		return nil, nil, fmt.Errorf("a block_size of %d", t.BlockSize)
	}
	turns, err := t.order()
	if err != nil {
		return nil, nil, err
	}
	if len(turns) == 0 {
		return nil, nil, errors.New(`no "requests" with tokens in and out`)
	}
	return &t, turns, nil
}

// A wekaLine is the requests of a conversation as they are put in line.
type wekaLine struct {
	block   int
	turns   []wekaTurn
	last    int     // turn of the main line; -1 before the first
	running []int   // last turns of the sub-agents under way
	idle    float64 // since when the main line is, on the trace's clock
}

// order puts the requests in line. Each follows the one before it. Sub-agents
// start where they stand in the main line and run side by side; the next request
// of the main line waits for all of them.
func (t *wekaTalk) order() ([]wekaTurn, error) {
	line := &wekaLine{block: t.BlockSize, last: -1}
	for i := range t.Requests {
		r := &t.Requests[i]
		add := line.main
		if r.Type == "subagent" {
			add = line.branch
		}
		if err := add(r); err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
	}
	return line.turns, nil
}

// main adds a request of the main line.
func (l *wekaLine) main(r *wekaRequest) error {
	at, err := l.add(r, slices.Concat(after(l.last), l.running), l.idle)
	if at >= 0 {
		l.last, l.running, l.idle = at, nil, r.T+r.APITime
	}
	return err
}

// branch adds the requests of a sub-agent, one after the other.
func (l *wekaLine) branch(r *wekaRequest) error {
	last, idle := l.last, l.idle
	for k := range r.Requests {
		one := &r.Requests[k]
		at, err := l.add(one, after(last), idle)
		if err != nil {
			return fmt.Errorf("sub-agent, request %d: %w", k, err)
		}
		if at >= 0 {
			last, idle = at, one.T+one.APITime
		}
	}
	if last != l.last {
		l.running = append(l.running, last)
	}
	return nil
}

// after is the list of one turn, or nil for none.
func after(turn int) []int {
	if turn < 0 {
		return nil
	}
	return []int{turn}
}

// add adds a request that waits for others and then for its think time: the
// trace's, or else the time since idle. It returns its turn, -1 if the request
// has no tokens.
func (l *wekaLine) add(r *wekaRequest, after []int, idle float64) (int, error) {
	if r.In < 1 || r.Out < 1 {
		return -1, nil
	}
	if err := cmpErr(checkTokens(r.In, r.Out), checkBlocks(&traceRow{Input: r.In, Blocks: len(r.HashIDs)}, l.block)); err != nil {
		return -1, err
	}
	think := max(r.T-idle, 0)
	if r.Think != nil {
		think = *r.Think
	}
	if !(think >= 0 && think < mostSeconds) {
		return -1, fmt.Errorf("a think time of %v s", think)
	}
	l.turns = append(l.turns, wekaTurn{r, after, think})
	return len(l.turns) - 1, nil
}

// total is how many conversations there are, 0 if there is no end.
func (w *wekaTrace) total() uint64 {
	n := uint64(len(w.places))
	switch {
	case w.Repeat && w.Count > 0:
		n = uint64(w.Count)
	case w.Repeat && w.Trace.Limit > 0:
		n = uint64(w.Trace.Limit)
	case w.Repeat:
		return 0
	case w.Count > 0:
		n = min(n, uint64(w.Count))
	}
	if w.Trace.Limit > 0 {
		n = min(n, uint64(w.Trace.Limit))
	}
	return n
}

// Session implements tacho.Source. A conversation that is used again has other
// tokens.
func (w *wekaTrace) Session(i uint64) (tacho.Session, error) {
	if n := w.total(); n > 0 && i >= n {
		return tacho.Session{}, io.EOF
	}
	n := uint64(len(w.places))
	return w.session(i, i%n, w.Seed+i/n)
}

func (w *wekaTrace) session(i, at, seed uint64) (tacho.Session, error) {
	talk, turns, err := w.talk(at)
	if err != nil {
		return tacho.Session{}, err
	}
	if talk.Scope == "local" {
		seed ^= hashOf(fmt.Sprintf("%d %s", at, talk.ID))
	}
	s := tacho.Session{ID: i, Turns: make([]tacho.Turn, len(turns))}
	for k, t := range turns {
		q := tacho.Request{Session: i, Turn: k, MaxTokens: t.Out, IgnoreEOS: w.IgnoreEOS}
		w.fill(&q, turnKey(i, k), t.In, t.HashIDs, talk.BlockSize, seed)
		think := seconds(t.thinkS)
		after := t.after
		if after == nil && k > 0 {
			after = []int{}
		}
		s.Turns[k] = tacho.Turn{Think: w.Trace.scale(think), After: after, Request: q}
	}
	return s, nil
}

// Warmup implements Workload.
func (w *wekaTrace) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.session(warmupBase+i, i%uint64(len(w.places)), w.Seed^(warmupBase+i))
	if err == nil {
		s.Turns = s.Turns[:1]
	}
	return s, err
}

// Notes implements Workload.
func (w *wekaTrace) Notes() []string {
	out := append(w.said, w.notes()...)
	if n, have := w.total(), uint64(len(w.places)); n > have {
		out = append(out, fmt.Sprintf("%d conversations were made of the %d in the trace, each time of other tokens; for the trace's own load ask for at most that many (--num-prompts)", n, have))
	}
	return out
}
