package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/internal/rows"
)

var conversation = Kind{
	Name: "conversation", Doc: "conversations whose history grows with the server's own answers: made of random words, or from a file of ShareGPT or OpenAI messages",
	reads:   [][]string{{"messages"}},
	Endless: true, Quotes: true, New: newConversation,
	options: func(d *Dataset, o *Options) {
		o.Input, o.Output, o.IgnoreEOS = d.TurnInputLen, d.TurnOutputLen, d.DatasetPath == ""
	},
}

// talkFlags say how conversations go.
type talkFlags struct {
	MultiTurn     bool    `flag:"multi-turn" help:"+ as vllm-bench has it: conversations of random prompts with --random-input-len and --random-output-len in each turn (3 turns unless --turns is given), or of the file of --dataset-name sharegpt"`
	MinTurns      int     `flag:"multi-turn-min-turns" help:"+ with --multi-turn: least number of turns; each conversation has its own"`
	MaxTurns      int     `flag:"multi-turn-max-turns" help:"+ with --multi-turn: largest number of turns"`
	AllRatio      float64 `flag:"multi-turn-prefix-global-ratio" help:"+ with --multi-turn: share of --random-input-len with which all prompts begin; each turn is then a prompt of its own, without what was said before"`
	OwnRatio      float64 `flag:"multi-turn-prefix-conversation-ratio" help:"+ with --multi-turn: share of --random-input-len which the turns of a conversation have in common, after that; without history likewise"`
	Turns         Length  `flag:"turns" alias:"multi-turn-num-turns" default:"4" help:"+ conversation: number of turns"`
	TurnInputLen  Length  `flag:"turn-input-len" alias:"per-turn-input-len" default:"128" help:"+ conversation: prompt tokens that each turn adds"`
	FirstInputLen Length  `flag:"first-turn-input-len" help:"+ conversation: prompt tokens of the first turn, if different"`
	TurnOutputLen Length  `flag:"turn-output-len" default:"128" help:"+ conversation: output tokens of each turn; with a file, -1 takes the length of the answer in it"`
	ThinkMS       Length  `flag:"think-time-ms" alias:"multi-turn-delay-ms" help:"+ conversation, custom: pause before each turn but the first, in milliseconds"`
	SystemLen     int     `flag:"system-prompt-len" most:"tokens" help:"+ conversation: tokens of the system prompt"`
	Systems       int     `flag:"num-system-prompts" most:"ranks" help:"+ conversation: number of different system prompts; each conversation has one of them (--random-prefix-zipf sets how popular)"`
	ToolTurns     float64 `flag:"tool-turns" help:"+ conversation: share of the turns after the first that carry the result of a tool call"`
	SessionHeader string  `flag:"session-header" help:"+ header that carries the conversation's number, for routers that keep a conversation on one server"`
	SubAgents     int     `flag:"sub-agents" help:"+ conversation: sub-agents that run side by side after the first turn; the second turn waits for all of them"`
}

func (f *talkFlags) talk() TalkOptions {
	return TalkOptions{
		Turns: f.Turns, ThinkMS: f.ThinkMS, System: f.SystemLen, Systems: f.Systems, First: f.FirstInputLen,
		Tools: f.ToolTurns, SubAgents: f.SubAgents, AllRatio: f.AllRatio, OwnRatio: f.OwnRatio,
	}
}

// TalkOptions are the shape of conversations.
type TalkOptions struct {
	Turns     Length  // of one conversation
	ThinkMS   Length  // pause before a turn, in milliseconds
	System    int     // tokens of a system prompt
	Systems   int     // different system prompts; 0 is 1
	First     Length  // prompt tokens of the first turn; 0 is those of the others
	Tools     float64 // share of the later turns that bring the result of a tool
	SubAgents int     // that run side by side after the first turn

	// Shares of the first prompt with which all turns of all conversations begin, and
	// all turns of one conversation. With either a turn has no history.
	AllRatio, OwnRatio float64
}

// forgets says whether each turn is a prompt of its own.
func (o *TalkOptions) forgets() bool { return o.AllRatio > 0 || o.OwnRatio > 0 }

func (o *TalkOptions) check() error {
	switch {
	case !(o.Tools >= 0 && o.Tools <= 1):
		return fmt.Errorf("a share of %v tool turns: it must be from 0 to 1 (--tool-turns)", o.Tools)
	case o.SubAgents < 0 || o.SubAgents > 1000:
		return fmt.Errorf("%d sub-agents: write a number from 0 to 1000 (--sub-agents)", o.SubAgents)
	case o.System < 0 || o.Systems < 0:
		return fmt.Errorf("%d system prompts of %d tokens: neither may be negative (--num-system-prompts, --system-prompt-len)", o.Systems, o.System)
	}
	return nil
}

// mostTurns bounds a conversation.
const mostTurns = 10_000

// think is the pause before a turn of session i.
func (o *Options) think(i uint64, turn int) time.Duration {
	if turn == 0 {
		return 0
	}
	ms := o.Talk.ThinkMS.Draw(rngOf(o.Seed^0x7468696e6b, turnKey(i, turn)), 0)
	return time.Duration(ms) * time.Millisecond
}

func newConversation(ctx context.Context, o Options) (Workload, error) {
	if err := o.Talk.check(); err != nil {
		return nil, fmt.Errorf("conversation: %w", err)
	}
	if o.Path != "" {
		return newTalksOfFile(ctx, o)
	}
	frames, err := framesOf(ctx, o.Counter)
	if err != nil {
		return nil, err
	}
	w := &madeTalks{Options: o, frames: frames, fitted: newFitted(ctx, o.Counter), systems: zipfSums(o.Zipf, max(o.Talk.Systems, 1))}
	if o.Talk.forgets() {
		if w.around, err = aroundText(ctx, o.Counter); err != nil {
			return nil, fmt.Errorf("conversation: %w", err)
		}
	}
	return w, w.ready(o.Count, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// madeTalks are conversations of random words.
type madeTalks struct {
	Options
	systems []float64 // running sums of how popular the system prompts are
	around  int       // tokens around a text, which are in its count
	frames  frames
	*fitted
}

// A thread is one line of a conversation as it grows.
type thread struct {
	history []tacho.Message
	tokens  int   // in history, answers not counted
	asked   bool  // there is a question in it
	last    int   // turn whose answer comes next in it; -1 before the first
	after   []int // turns that the next one waits for; nil is the one before
}

// Session implements tacho.Source.
func (w *madeTalks) Session(i uint64) (tacho.Session, error) {
	rng := rngOf(w.Seed, i)
	n := min(w.Talk.Turns.Draw(rng, 1), mostTurns)
	s := tacho.Session{ID: i}
	main := thread{last: -1}
	if err := w.open(&main, i, rng); err != nil {
		return s, err
	}
	opening := slices.Clone(main.history)
	openingTokens := main.tokens
	for k := range n {
		if k > 0 && w.Talk.forgets() {
			main = thread{history: slices.Clone(opening), tokens: openingTokens, last: -1}
		}
		if err := w.turn(&s, &main, k, rng); err != nil {
			return s, err
		}
		if k > 0 || n == 1 {
			continue
		}
		for range w.Talk.SubAgents {
			sub := thread{history: slices.Clone(opening), tokens: openingTokens, last: -1, after: []int{0}}
			if err := w.turn(&s, &sub, 1, rng); err != nil {
				return s, err
			}
			main.after = append(main.after, sub.last)
		}
		if w.Talk.SubAgents > 0 {
			main.history = append(main.history, tacho.Message{Role: "assistant", Answer: 1})
			for _, a := range main.after {
				main.history = append(main.history, tacho.Message{Role: "user", Answer: a + 1})
			}
			main.tokens += w.frames.further + (len(main.after)-1)*w.frames.extra
			main.last = -1
		}
	}
	return s, nil
}

// open gives a thread its system prompt.
func (w *madeTalks) open(t *thread, i uint64, rng *rand.Rand) error {
	if w.Talk.System == 0 {
		return nil
	}
	group := uint64(pick(w.systems, rng))
	if i >= warmupBase {
		group = i // a system prompt that no session of the run has
	}
	m, tokens, err := w.framed("", prefixIndex-group, w.Talk.System, w.frames.system)
	m.Role = "system"
	t.history, t.tokens = append(t.history, m), tokens
	return err
}

// framed is a message that adds n tokens to a conversation, frame of them
// around it, and how many it really adds: no message is empty. It begins with an
// opening.
func (w *madeTalks) framed(opening string, key uint64, n, frame int) (tacho.Message, int, error) {
	more := w.frames.alone - frame // than it would have on its own
	m, tokens, err := w.wordsAfter(opening, strings.Count(opening, " "), w.Seed, key, max(n+more, w.frames.alone+1))
	return m, tokens - more, err
}

// shared is the text with which the turns of session i begin: one that all
// sessions have, and one of its own.
func (w *madeTalks) shared(i uint64) (text string, err error) {
	first, _ := w.Talk.First.Constant()
	if first == 0 {
		first, _ = w.Input.Constant()
	}
	tokens := 0
	for _, part := range []struct {
		ratio float64
		key   uint64
	}{{w.Talk.AllRatio, sharedKey}, {w.Talk.OwnRatio, turnKey(i, -1)}} {
		n := int(part.ratio * float64(first))
		if n == 0 {
			continue
		}
		if part.key == sharedKey && i >= warmupBase {
			part.key = turnKey(i, -2) // one that no session of the run has
		}
		tokens += n
		m, _, err := w.framed(text, part.key, tokens+w.around, w.frames.alone)
		if err != nil {
			return "", err
		}
		text = m.Content
	}
	return text, nil
}

// sharedKey is the random stream of what all conversations begin with.
const sharedKey = prefixIndex - 1<<50

// nextFrame is what is around the next question of a thread.
func (w *madeTalks) nextFrame(t *thread) int {
	switch {
	case !t.asked:
		return w.frames.alone
	case t.last >= 0:
		return w.frames.further
	}
	return w.frames.extra
}

// turn adds the k-th turn of a thread to the session.
func (w *madeTalks) turn(s *tacho.Session, t *thread, k int, rng *rand.Rand) error {
	at, frame := len(s.Turns), w.nextFrame(t)
	if t.last >= 0 {
		t.history = append(t.history, tacho.Message{Role: "assistant", Answer: t.last + 1})
	}
	length := &w.Input
	if first, constant := w.Talk.First.Constant(); k == 0 && (!constant || first > 0) {
		length = &w.Talk.First
	}
	tool := k > 0 && rng.Float64() < w.Talk.Tools
	opening, err := w.shared(s.ID)
	if err != nil {
		return err
	}
	m, tokens, err := w.framed(opening, turnKey(s.ID, at), length.Draw(rng, 1), frame)
	if err != nil {
		return err
	}
	if tool {
		call, result, err := toolResult(at, m.Content)
		if err != nil {
			return err
		}
		t.history = append(t.history, call)
		m = result
	}
	t.history = append(t.history, m)
	t.tokens += tokens
	q := tacho.Request{
		Session: s.ID, Turn: at, InputTokens: t.tokens, MaxTokens: w.Output.Draw(rng, 1), IgnoreEOS: w.IgnoreEOS,
		Input: tacho.Input{Messages: slices.Clone(t.history), Plain: !w.Messages},
	}
	turn := tacho.Turn{Think: w.think(s.ID, at), Request: q, After: t.after}
	if t.after == nil && t.last >= 0 && t.last != at-1 {
		turn.After = []int{t.last}
	}
	s.Turns = append(s.Turns, turn)
	t.asked, t.last, t.after = true, at, nil
	return nil
}

// toolResult is the call of a tool and what it gave: the messages between two
// answers of the model.
func toolResult(turn int, text string) (call, result tacho.Message, err error) {
	id := fmt.Sprintf("call_%d", turn)
	if call, err = toolCalls("", []toolCall{{id, "function", toolFunction{"lookup", "{}"}}}); err != nil {
		return call, result, err
	}
	result, err = toolAnswer(id, text)
	return call, result, err
}

// A toolCall is what OpenAI's messages say of the call of a tool.
type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// toolCalls is the message by which a model calls tools.
func toolCalls(said string, calls []toolCall) (m tacho.Message, err error) {
	m = tacho.Message{Role: "assistant", Content: said}
	m.Raw, err = json.Marshal(struct {
		Role    string     `json:"role"`
		Content string     `json:"content"`
		Calls   []toolCall `json:"tool_calls"`
	}{m.Role, said, calls})
	return m, err
}

// toolAnswer is the message that brings what a tool gave.
func toolAnswer(id, text string) (m tacho.Message, err error) {
	m = tacho.Message{Role: "tool", Content: text}
	m.Raw, err = json.Marshal(struct {
		Role    string `json:"role"`
		ID      string `json:"tool_call_id"`
		Content string `json:"content"`
	}{m.Role, id, text})
	return m, err
}

// Warmup implements Workload: the first turn of a conversation like the
// others.
func (w *madeTalks) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.Session(warmupBase + i)
	if err == nil {
		s.Turns = s.Turns[:1]
	}
	return s, err
}

// Notes implements Workload.
func (w *madeTalks) Notes() []string { return w.notes() }

// newTalksOfFile makes conversations of a file: its questions are asked, and
// its answers are only the measure of how long an answer may be.
func newTalksOfFile(ctx context.Context, o Options) (Workload, error) {
	list := o.keeping()
	short := 0
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	err := rows.Each(o.Path, &bad, func(row json.RawMessage) error {
		e, err := talkOfRow(row)
		if err != nil {
			return err
		}
		if n := len(e.Turns); n > 0 && e.Turns[n-1].answer == "" && o.wantsData() {
			e.Turns = e.Turns[:n-1] // there is no saying how long the answer would be
		}
		if len(e.Turns) == 0 {
			short++
			return nil
		}
		return list.add(e, len(row))
	})
	if err != nil {
		return nil, fmt.Errorf("conversation: %w", err)
	}
	if len(list.entries) == 0 {
		return nil, fmt.Errorf("conversation: %s has no conversation with a question in it%s", o.Path, bad.Also())
	}
	said := bad.Notes()
	if short > 0 {
		said = append(said, fmt.Sprintf("%d conversations without a question were left out; give them one, or take them out of the file", short))
	}
	return newPool(ctx, o, list.entries, said...)
}

// talkOfRow makes a turn of each question of a conversation.
func talkOfRow(row json.RawMessage) (e entry, err error) {
	var line struct {
		Messages []tacho.Message `json:"messages"`
		shareGPTTalk
	}
	if err := json.Unmarshal(row, &line); err != nil {
		return e, fmt.Errorf(`not a conversation with "messages" or "conversations": %w`, err)
	}
	messages := line.Messages
	if messages == nil {
		if line.Conversations == nil {
			return e, errors.New(`neither "messages" nor "conversations"`)
		}
		messages = line.messages()
	}
	var history []tacho.Message
	for k := 0; k < len(messages); k++ {
		m := messages[k]
		if m.Role != "assistant" {
			history = append(history, m)
			continue
		}
		if len(history) == 0 || len(e.Turns) > 0 && history[len(history)-1].Answer > 0 {
			continue // an answer that nobody asked for
		}
		e.Turns = append(e.Turns, entry{Messages: slices.Clone(history), answer: m.Content})
		history = append(history, tacho.Message{Role: "assistant", Answer: len(e.Turns)})
	}
	if n := len(history); n > 0 && history[n-1].Answer == 0 { // a question without an answer
		e.Turns = append(e.Turns, entry{Messages: history})
	}
	return e, nil
}
