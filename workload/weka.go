package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var weka = Kind{
	Name: "weka", Doc: "WEKA agentic traces: conversations of requests with hash_ids, think times and sub-agents; a file or directory of JSON or JSON lines. They have no arrival times: set --request-rate (conversations per second) or --max-concurrency (users)",
	Tokens: true, New: newWeka,
	options: func(_ *Dataset, o *Options) { o.IgnoreEOS = true },
}

// wekaBlock is the default number of tokens per hash id.
const wekaBlock = 64

// wekaConversation is one conversation of the trace. Times are in seconds.
type wekaConversation struct {
	ID        string        `json:"id"`
	BlockSize int           `json:"block_size"`
	Scope     string        `json:"hash_id_scope"` // local: hash ids are only valid within the conversation
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
	Requests []wekaRequest `json:"requests"` // requests of a sub-agent
}

// wekaTurn is a request with its dependencies.
type wekaTurn struct {
	*wekaRequest
	after  []int
	thinkS float64
}

// wekaTrace replays the conversations of a trace. Only their positions are in memory.
type wekaTrace struct {
	tokenMaker
	Options
	rows      rows.Store
	places    []rows.Ref // one for each conversation; Tag is its number in the file
	readNotes []string
}

func newWeka(_ context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("weka: no trace; set a file or directory with --dataset-path")
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
		return nil, fmt.Errorf("weka: %s contains no conversation%s", o.Path, bad.Also())
	}
	w.readNotes = bad.Notes()
	_, _, err = w.conversation(0) // fails if the file is not such a trace
	return w, err
}

// find collects the conversations of a file, up to limit. Unless bad conversations are
// skipped, errors in a conversation are reported when it is due.
func (w *wekaTrace) find(path string, bad *rows.Bad) error {
	if len(w.places) == w.limit() && len(w.places) > 0 {
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
		if w.places = append(w.places, place); len(w.places) == w.limit() {
			return rows.ErrEnough
		}
		return nil
	})
}

// limit returns the maximum number of conversations to read; 0 means all.
func (w *wekaTrace) limit() int {
	if w.Count > 0 && (w.Trace.Limit == 0 || w.Count < w.Trace.Limit) {
		return w.Count
	}
	return w.Trace.Limit
}

// conversation reads a conversation of the trace.
func (w *wekaTrace) conversation(at uint64) (*wekaConversation, []wekaTurn, error) {
	place := w.places[at]
	row, err := w.rows.Read(place)
	if err != nil {
		return nil, nil, fmt.Errorf("weka: %w", err)
	}
	conversation, turns, err := w.parse(row)
	if err != nil {
		return nil, nil, fmt.Errorf("weka: %s: %w (use --bad-lines skip to skip it)", w.rows.Location(place, place.Tag), err)
	}
	return conversation, turns, nil
}

func (w *wekaTrace) parse(text []byte) (*wekaConversation, []wekaTurn, error) {
	var t wekaConversation
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
		return nil, nil, fmt.Errorf("block_size %d must be at least 1", t.BlockSize)
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

// wekaBuilder orders the requests of a conversation.
type wekaBuilder struct {
	block   int
	turns   []wekaTurn
	last    int     // latest turn of the main thread; -1 before the first
	running []int   // last turns of the running sub-agents
	idle    float64 // time at which the main thread became idle, on the clock of the trace
}

// order returns the requests with their dependencies. Each request follows the previous
// one. Sub-agents start at their position in the main thread and run in parallel. The
// next request of the main thread waits for all of them.
func (t *wekaConversation) order() ([]wekaTurn, error) {
	line := &wekaBuilder{block: t.BlockSize, last: -1}
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

// main adds a request of the main thread.
func (l *wekaBuilder) main(r *wekaRequest) error {
	at, err := l.add(r, slices.Concat(after(l.last), l.running), l.idle)
	if at >= 0 {
		l.last, l.running, l.idle = at, nil, r.T+r.APITime
	}
	return err
}

// branch adds the requests of a sub-agent in sequence.
func (l *wekaBuilder) branch(r *wekaRequest) error {
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

// after returns a list of one turn, or nil if turn is negative.
func after(turn int) []int {
	if turn < 0 {
		return nil
	}
	return []int{turn}
}

// add adds a request that waits for other turns and then for its think time. If the trace
// has no think time, add uses the time since idle. It returns the turn, or -1 if the
// request is empty.
func (l *wekaBuilder) add(r *wekaRequest, after []int, idle float64) (int, error) {
	if r.In < 1 || r.Out < 1 {
		return -1, nil
	}
	if err := firstError(checkTokens(r.In, r.Out), checkBlocks(&traceRow{Input: r.In, Blocks: len(r.HashIDs)}, l.block)); err != nil {
		return -1, err
	}
	think := max(r.T-idle, 0)
	if r.Think != nil {
		think = *r.Think
	}
	if !(think >= 0 && think < maxSeconds) {
		return -1, fmt.Errorf("think time %v s is out of range", think)
	}
	l.turns = append(l.turns, wekaTurn{r, after, think})
	return len(l.turns) - 1, nil
}

// total returns the number of conversations, 0 if unlimited.
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

// Session implements tacho.Source. A repeated conversation gets different tokens.
func (w *wekaTrace) Session(i uint64) (tacho.Session, error) {
	if n := w.total(); n > 0 && i >= n {
		return tacho.Session{}, io.EOF
	}
	n := uint64(len(w.places))
	return w.session(i, i%n, w.Seed+i/n)
}

func (w *wekaTrace) session(i, at, seed uint64) (tacho.Session, error) {
	conversation, turns, err := w.conversation(at)
	if err != nil {
		return tacho.Session{}, err
	}
	if conversation.Scope == "local" {
		seed ^= hashOf(fmt.Sprintf("%d %s", at, conversation.ID))
	}
	s := tacho.Session{ID: i, Turns: make([]tacho.Turn, len(turns))}
	for k, t := range turns {
		q := tacho.Request{Session: i, Turn: k, MaxTokens: t.Out, IgnoreEOS: w.IgnoreEOS}
		w.fill(&q, turnKey(i, k), t.In, t.HashIDs, conversation.BlockSize, seed)
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
	out := append(w.readNotes, w.notes()...)
	if n, have := w.total(), uint64(len(w.places)); n > have {
		out = append(out, fmt.Sprintf("%d conversations were made from %d in the trace, with different tokens each time; for the load of the trace set --num-prompts to at most that number", n, have))
	}
	return out
}
