package score

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// A Book keeps the answers of a level until its end. Adding an answer copies no text. It is safe for concurrent use.
type Book struct {
	// Text reports whether prompts and answers are real text. Otherwise loops and equal answers are normal.
	Text bool
	// Source returns the requests again, with their references; nil if they are not needed.
	Source tacho.Source
	// Scorer overrides the scorers of the requests; may be nil.
	Scorer *Scorer
	// Whole keeps all answers, because they are scored or compared. Otherwise memory is bounded.
	Whole bool

	mu    sync.Mutex
	kept  []kept
	bytes int
	seen  int // successful requests
}

// Bounds of a book that is not Whole, so that a run of a million requests does not need more memory for its checks than
// for its records. The report counts the answers beyond them as not checked.
const (
	maxBytes   = 64 << 20
	maxAnswers = 100_000
)

// A key identifies a request of a level.
type key struct {
	session uint64
	turn    int
}

// kept is what a book keeps of a request.
type kept struct {
	key
	Answer
	output, asked int
	exact         bool // the request asked for exactly asked tokens
	counted       bool // output is a count of the server
	text          bool // the text was kept
	failed        bool
	broken        bool // a check of this answer found something
	labels        tacho.Labels

	result Result // if it was scored
	scored bool
}

// Add keeps a record's answer.
func (b *Book) Add(r *tacho.Record) {
	if b == nil || r.Probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.OK() {
		b.seen++
	}
	if !b.Whole && len(b.kept) == maxAnswers {
		return
	}
	k := kept{
		key: key{r.Session, r.Turn}, failed: !r.OK(), output: r.Output, asked: r.Asked, exact: r.Exact, labels: r.Labels,
		counted: r.OutputFrom == tacho.FromUsage || r.OutputFrom == tacho.FromTokens,
		Answer:  Answer{Finish: r.Finish},
	}
	if r.OK() {
		size := len(r.Text)
		empty := r.Output == 0 || len(r.Events) == 0 || r.Output == 1 && (b.Text || b.Whole) // not a text that was not kept
		if (b.Whole || b.bytes+size <= maxBytes) && (size > 0 || empty) {
			b.bytes += size
			k.Text, k.Content, k.Calls, k.text = r.Text, r.Answer, r.Calls, true
		}
	}
	b.kept = append(b.kept, k)
}

// Judge checks and scores the answers. It returns nil if there is nothing to judge.
func (b *Book) Judge() *metric.Answers {
	if b == nil || b.seen == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortFunc(b.kept, func(x, y kept) int { return cmp.Or(cmp.Compare(x.session, y.session), cmp.Compare(x.turn, y.turn)) })
	out := b.check()
	out.Score = b.score()
	return out
}

// request returns the request of an answer again, or nil.
func (b *Book) request(k key, sessions map[uint64]*tacho.Session) *tacho.Request {
	if b.Source == nil {
		return nil
	}
	s, known := sessions[k.session]
	if !known {
		if found, err := b.Source.Session(k.session); err == nil {
			s = &found
		}
		clear(sessions) // answers are in the order of sessions
		sessions[k.session] = s
	}
	if s == nil || k.turn >= len(s.Turns) {
		return nil
	}
	return &s.Turns[k.turn].Request
}

// prompt identifies the prompt of an answer, with the earlier prompts of its session.
func (b *Book) prompt(k key, sessions map[uint64]*tacho.Session) (sum [sha256.Size]byte, known bool) {
	if b.request(k, sessions) == nil {
		return sum, false
	}
	var all []any
	for _, t := range sessions[k.session].Turns[:k.turn+1] {
		all = append(all, t.Request.Input, t.Request.Extra, t.Request.Reference)
	}
	text, err := json.Marshal(all)
	return sha256.Sum256(text), err == nil
}

// score scores all answers, or returns nil if no request has a scorer.
func (b *Book) score() *metric.Score {
	out := &metric.Score{}
	why, groups := map[string]int{}, map[string]*metric.GroupScore{}
	sessions := map[uint64]*tacho.Session{}
	names, found := map[string]bool{}, false
	for i := range b.kept {
		k := &b.kept[i]
		q := b.request(k.key, sessions)
		if q == nil {
			continue
		}
		scorer := b.scorerOf(q)
		if scorer == nil || k.failed && scorer.Missing != Wrong {
			continue
		}
		k.result, k.scored = k.scoreBy(scorer, q), true
		found = true
		if k.result.Mark != LeftOut { // a name that is not known scores nothing
			names[scorer.Name] = true
		}
		count(out, k, why, groups)
	}
	if !found {
		return nil
	}
	out.Scorer = joined(names)
	if n := out.Right + out.Wrong; n > 0 {
		share := float64(out.Right) / float64(n)
		low, high := stat.WilsonInterval(out.Right, n, z95)
		out.Share, out.Interval = &share, &metric.Limits{Low: low, High: high}
	}
	for _, name := range slices.Sorted(maps.Keys(why)) {
		out.Why = append(out.Why, metric.NamedCount{Name: name, Count: why[name]})
	}
	if len(groups) > 1 {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			out.Groups = append(out.Groups, *groups[name])
		}
	}
	return out
}

// scorerOf returns the scorer of a request, or nil.
func (b *Book) scorerOf(q *tacho.Request) *Scorer {
	if b.Scorer != nil || q.Scorer == "" {
		return b.Scorer
	}
	scorer, err := Named(q.Scorer)
	if err != nil {
		return &Scorer{Name: q.Scorer, of: func(*Answer, *tacho.Request) Result { return Result{Mark: LeftOut, Why: err.Error()} }}
	}
	return scorer
}

func (k *kept) scoreBy(scorer *Scorer, q *tacho.Request) Result {
	switch {
	case scorer.Keyed && q.Reference == "":
		return Result{Mark: LeftOut, Why: "no reference"}
	case k.text:
		return scorer.Score(&k.Answer, q)
	}
	return Result{Mark: scorer.Missing, Why: "no answer"}
}

// count adds the result of an answer.
func count(out *metric.Score, k *kept, why map[string]int, groups map[string]*metric.GroupScore) {
	switch k.result.Mark {
	case Right:
		out.Right++
	case Wrong:
		out.Wrong++
	case NoAnswer:
		out.NoAnswer++
	case LeftOut:
		out.LeftOut++
	}
	if k.result.Unparsed {
		out.Unparsed++
	}
	if k.NoReasoning {
		out.Thought++
	}
	if k.result.Why != "" {
		why[k.result.Why]++
	}
	for _, l := range k.labels {
		name := l.Key + "=" + l.Value
		if groups[name] == nil {
			groups[name] = &metric.GroupScore{Label: name}
		}
		switch k.result.Mark {
		case Right:
			groups[name].Right++
		case Wrong:
			groups[name].Wrong++
		}
	}
}

func joined(names map[string]bool) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if text != "" {
			text += ", "
		}
		text += name
	}
	return text
}

// z95 is the normal quantile of two-sided 95 % intervals.
const z95 = 1.959964
