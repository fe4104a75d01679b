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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var conversation = Kind{
	Name: "conversation", Doc: "conversations whose history contains the server's own answers: random words, or a file of ShareGPT or OpenAI messages",
	reads:   [][]string{{"messages"}},
	Endless: true, Quotes: true, New: newConversation,
	options: func(d *Dataset, o *Options) {
		o.Input, o.Output, o.IgnoreEOS = d.TurnInputLen, d.TurnOutputLen, d.DatasetPath == ""
	},
}

// conversationFlags are the options of conversations.
type conversationFlags struct {
	MultiTurn         bool    `flag:"multi-turn" help:"+ like vllm-bench: conversations of random prompts with --random-input-len and --random-output-len in each turn (3 turns unless --turns is set), or of the file of --dataset-name sharegpt"`
	MinTurns          int     `flag:"multi-turn-min-turns" help:"+ with --multi-turn: minimum number of turns, drawn for each conversation"`
	MaxTurns          int     `flag:"multi-turn-max-turns" help:"+ with --multi-turn: maximum number of turns"`
	GlobalRatio       float64 `flag:"multi-turn-prefix-global-ratio" help:"+ with --multi-turn: fraction of --random-input-len shared by all prompts; turns are then sent without the earlier turns"`
	ConversationRatio float64 `flag:"multi-turn-prefix-conversation-ratio" help:"+ with --multi-turn: the same, shared by the turns of a conversation, after the global prefix"`
	Turns             Length  `flag:"turns" alias:"multi-turn-num-turns" default:"4" help:"+ conversation: number of turns"`
	TurnInputLen      Length  `flag:"turn-input-len" alias:"per-turn-input-len" default:"128" help:"+ conversation: prompt tokens that each turn adds"`
	FirstInputLen     Length  `flag:"first-turn-input-len" help:"+ conversation: prompt tokens of the first turn, if different"`
	TurnOutputLen     Length  `flag:"turn-output-len" default:"128" help:"+ conversation: output tokens of each turn; with a file, -1 uses the length of the answer in the file"`
	ThinkMS           Length  `flag:"think-time-ms" alias:"multi-turn-delay-ms" help:"+ conversation, custom: pause before each turn except the first, in milliseconds"`
	SystemLen         int     `flag:"system-prompt-len" most:"tokens" help:"+ conversation: tokens of the system prompt"`
	Systems           int     `flag:"num-system-prompts" most:"ranks" help:"+ conversation: number of different system prompts; each conversation uses one (--random-prefix-zipf sets their popularity)"`
	ToolTurns         float64 `flag:"tool-turns" help:"+ conversation: fraction of the turns after the first with the result of a tool call"`
	SessionHeader     string  `flag:"session-header" help:"+ header for the number of the conversation, for routers that keep a conversation on one server"`
	SubAgents         int     `flag:"sub-agents" help:"+ conversation: sub-agents that run in parallel after the first turn; the second turn waits for all of them"`
}

func (f *conversationFlags) conversation() ConversationOptions {
	return ConversationOptions{
		Turns: f.Turns, ThinkMS: f.ThinkMS, System: f.SystemLen, Systems: f.Systems, First: f.FirstInputLen,
		Tools: f.ToolTurns, SubAgents: f.SubAgents, GlobalRatio: f.GlobalRatio, ConversationRatio: f.ConversationRatio,
	}
}

// ConversationOptions describe the shape of conversations.
type ConversationOptions struct {
	Turns     Length  // turns per conversation
	ThinkMS   Length  // pause before a turn in milliseconds
	System    int     // tokens of a system prompt
	Systems   int     // number of different system prompts; 0 means 1
	First     Length  // prompt tokens of the first turn; 0 means the same as other turns
	Tools     float64 // fraction of the later turns with the result of a tool call
	SubAgents int     // sub-agents that run in parallel after the first turn

	// GlobalRatio is the fraction of the first prompt shared by all turns of all
	// conversations, ConversationRatio the fraction shared by the turns of one
	// conversation. If either is set, turns carry no history.
	GlobalRatio, ConversationRatio float64
}

// withoutHistory reports whether each turn is a prompt without the earlier turns.
func (o *ConversationOptions) withoutHistory() bool {
	return o.GlobalRatio > 0 || o.ConversationRatio > 0
}

func (o *ConversationOptions) check() error {
	switch {
	case !(o.Tools >= 0 && o.Tools <= 1):
		return fmt.Errorf("--tool-turns %v: must be from 0 to 1", o.Tools)
	case o.SubAgents < 0 || o.SubAgents > 1000:
		return fmt.Errorf("--sub-agents %d: must be from 0 to 1000", o.SubAgents)
	case o.System < 0 || o.Systems < 0:
		return fmt.Errorf("%d system prompts of %d tokens: neither may be negative (--num-system-prompts, --system-prompt-len)", o.Systems, o.System)
	}
	return nil
}

// maxTurns limits the turns of a conversation.
const maxTurns = 10_000

// think returns the pause before a turn of session i.
func (o *Options) think(i uint64, turn int) time.Duration {
	if turn == 0 {
		return 0
	}
	ms := o.Conversation.ThinkMS.Draw(rngOf(o.Seed^0x7468696e6b, turnKey(i, turn)), 0)
	return time.Duration(ms) * time.Millisecond
}

func newConversation(ctx context.Context, o Options) (Workload, error) {
	if err := o.Conversation.check(); err != nil {
		return nil, fmt.Errorf("conversation: %w", err)
	}
	if o.Path != "" {
		return newFileConversations(ctx, o)
	}
	template, err := measureTemplate(ctx, o.Counter)
	if err != nil {
		return nil, err
	}
	w := &randomConversations{Options: o, template: template, textFitter: newTextFitter(ctx, o.Counter), systems: zipfSums(o.Zipf, max(o.Conversation.Systems, 1))}
	if o.Conversation.withoutHistory() {
		if w.overhead, err = textOverhead(ctx, o.Counter); err != nil {
			return nil, fmt.Errorf("conversation: %w", err)
		}
	}
	return w, w.precompute(o.Count, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// randomConversations makes conversations of random words.
type randomConversations struct {
	Options
	systems  []float64 // cumulative popularity of the system prompts
	overhead int       // tokens the counter adds to a text
	template templateTokens
	*textFitter
}

// thread is one sequence of turns in a conversation: the main thread or a sub-agent.
type thread struct {
	history     []tacho.Message
	tokens      int   // tokens in history without answers
	hasQuestion bool  // history contains a question
	last        int   // turn whose answer comes next; -1 before the first turn
	after       []int // turns the next turn waits for; nil means the previous turn
}

// Session implements tacho.Source.
func (w *randomConversations) Session(i uint64) (tacho.Session, error) {
	rng := rngOf(w.Seed, i)
	n := min(w.Conversation.Turns.Draw(rng, 1), maxTurns)
	s := tacho.Session{ID: i}
	main := thread{last: -1}
	if err := w.open(&main, i, rng); err != nil {
		return s, err
	}
	opening := slices.Clone(main.history)
	openingTokens := main.tokens
	for k := range n {
		if k > 0 && w.Conversation.withoutHistory() {
			main = thread{history: slices.Clone(opening), tokens: openingTokens, last: -1}
		}
		if err := w.turn(&s, &main, k, rng); err != nil {
			return s, err
		}
		if k > 0 || n == 1 {
			continue
		}
		for range w.Conversation.SubAgents {
			sub := thread{history: slices.Clone(opening), tokens: openingTokens, last: -1, after: []int{0}}
			if err := w.turn(&s, &sub, 1, rng); err != nil {
				return s, err
			}
			main.after = append(main.after, sub.last)
		}
		if w.Conversation.SubAgents > 0 {
			main.history = append(main.history, tacho.Message{Role: "assistant", Answer: 1})
			for _, a := range main.after {
				main.history = append(main.history, tacho.Message{Role: "user", Answer: a + 1})
			}
			main.tokens += w.template.further + (len(main.after)-1)*w.template.extra
			main.last = -1
		}
	}
	return s, nil
}

// open adds the system prompt to a thread.
func (w *randomConversations) open(t *thread, i uint64, rng *rand.Rand) error {
	if w.Conversation.System == 0 {
		return nil
	}
	group := uint64(pick(w.systems, rng))
	if i >= warmupBase {
		group = i // a system prompt that no session of the run uses
	}
	m, tokens, err := w.message("", prefixIndex-group, w.Conversation.System, w.template.system)
	m.Role = "system"
	t.history, t.tokens = append(t.history, m), tokens
	return err
}

// message returns a message that adds n tokens to a conversation, of which frame are
// template tokens. It also returns the number of tokens really added, because a message
// is never empty. The message starts with opening.
func (w *randomConversations) message(opening string, key uint64, n, frame int) (tacho.Message, int, error) {
	more := w.template.alone - frame // template tokens saved compared with a message alone
	m, tokens, err := w.wordsAfter(opening, strings.Count(opening, " "), w.Seed, key, max(n+more, w.template.alone+1))
	return m, tokens - more, err
}

// shared returns the common prefix of the turns of session i: a part shared by all
// sessions, then a part of its own.
func (w *randomConversations) shared(i uint64) (text string, err error) {
	first, _ := w.Conversation.First.Constant()
	if first == 0 {
		first, _ = w.Input.Constant()
	}
	tokens := 0
	for _, part := range []struct {
		ratio float64
		key   uint64
	}{{w.Conversation.GlobalRatio, sharedKey}, {w.Conversation.ConversationRatio, turnKey(i, -1)}} {
		n := int(part.ratio * float64(first))
		if n == 0 {
			continue
		}
		if part.key == sharedKey && i >= warmupBase {
			part.key = turnKey(i, -2) // a prefix that no session of the run uses
		}
		tokens += n
		m, _, err := w.message(text, part.key, tokens+w.overhead, w.template.alone)
		if err != nil {
			return "", err
		}
		text = m.Content
	}
	return text, nil
}

// sharedKey is the random stream of the prefix shared by all conversations.
const sharedKey = prefixIndex - 1<<50

// nextFrame returns the number of template tokens around the next question of a thread.
func (w *randomConversations) nextFrame(t *thread) int {
	switch {
	case !t.hasQuestion:
		return w.template.alone
	case t.last >= 0:
		return w.template.further
	}
	return w.template.extra
}

// turn adds turn k of a thread to the session.
func (w *randomConversations) turn(s *tacho.Session, t *thread, k int, rng *rand.Rand) error {
	at, frame := len(s.Turns), w.nextFrame(t)
	if t.last >= 0 {
		t.history = append(t.history, tacho.Message{Role: "assistant", Answer: t.last + 1})
	}
	length := &w.Input
	if first, constant := w.Conversation.First.Constant(); k == 0 && (!constant || first > 0) {
		length = &w.Conversation.First
	}
	tool := k > 0 && rng.Float64() < w.Conversation.Tools
	opening, err := w.shared(s.ID)
	if err != nil {
		return err
	}
	m, tokens, err := w.message(opening, turnKey(s.ID, at), length.Draw(rng, 1), frame)
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
	t.hasQuestion, t.last, t.after = true, at, nil
	return nil
}

// toolResult returns the messages between two answers of the model: a tool call and its
// result.
func toolResult(turn int, text string) (call, result tacho.Message, err error) {
	id := fmt.Sprintf("call_%d", turn)
	if call, err = toolCalls("", []toolCall{{id, "function", toolFunction{"lookup", "{}"}}}); err != nil {
		return call, result, err
	}
	result, err = toolAnswer(id, text)
	return call, result, err
}

// toolCall is a tool call in OpenAI's format.
type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// toolCalls returns the assistant message that calls tools.
func toolCalls(text string, calls []toolCall) (m tacho.Message, err error) {
	m = tacho.Message{Role: "assistant", Content: text}
	m.Raw, err = json.Marshal(struct {
		Role    string     `json:"role"`
		Content string     `json:"content"`
		Calls   []toolCall `json:"tool_calls"`
	}{m.Role, text, calls})
	return m, err
}

// toolAnswer returns the message with the result of a tool call.
func toolAnswer(id, text string) (m tacho.Message, err error) {
	m = tacho.Message{Role: "tool", Content: text}
	m.Raw, err = json.Marshal(struct {
		Role    string `json:"role"`
		ID      string `json:"tool_call_id"`
		Content string `json:"content"`
	}{m.Role, id, text})
	return m, err
}

// Warmup implements Workload. It returns only the first turn of a conversation.
func (w *randomConversations) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.Session(warmupBase + i)
	if err == nil {
		s.Turns = s.Turns[:1]
	}
	return s, err
}

// Notes implements Workload.
func (w *randomConversations) Notes() []string { return w.notes() }

// newFileConversations reads conversations from a file. The run asks the questions of the
// file; the answers in the file only set the output lengths.
func newFileConversations(ctx context.Context, o Options) (Workload, error) {
	list := o.newEntryList()
	short := 0
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	err := rows.Each(o.Path, &bad, func(row json.RawMessage) error {
		e, err := conversationOfRow(row)
		if err != nil {
			return err
		}
		if n := len(e.Turns); n > 0 && e.Turns[n-1].answer == "" && o.usesDataLength() {
			e.Turns = e.Turns[:n-1] // without an answer the output length is unknown
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
		return nil, fmt.Errorf("conversation: %s contains no conversation with a question%s", o.Path, bad.Also())
	}
	readNotes := bad.Notes()
	if short > 0 {
		readNotes = append(readNotes, fmt.Sprintf("%d conversations without a question were left out; add a question or remove them from the file", short))
	}
	return newPool(ctx, o, list.entries, readNotes...)
}

// conversationOfRow makes one turn of each question in a row.
func conversationOfRow(row json.RawMessage) (e entry, err error) {
	var line struct {
		Messages []tacho.Message `json:"messages"`
		shareGPTConversation
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
			continue // an answer without a question
		}
		e.Turns = append(e.Turns, entry{Messages: slices.Clone(history), answer: m.Content})
		history = append(history, tacho.Message{Role: "assistant", Answer: len(e.Turns)})
	}
	if n := len(history); n > 0 && history[n-1].Answer == 0 { // a question without an answer
		e.Turns = append(e.Turns, entry{Messages: history})
	}
	return e, nil
}
