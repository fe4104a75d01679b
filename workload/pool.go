package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
	"github.com/tacho-bench/tacho/token"
)

// entry is one request or one conversation of a file.
type entry struct {
	Prompt       *string           `json:"prompt,omitempty"`
	IDs          []int32           `json:"prompt_token_ids,omitempty"`
	Messages     []tacho.Message   `json:"messages,omitempty"`
	OutputTokens int               `json:"output_tokens,omitempty"`
	Images       []string          `json:"images,omitempty"`      // files, data URLs or web addresses
	ImageFiles   []string          `json:"image_files,omitempty"` // like Images, for custom_image
	Content      json.RawMessage   `json:"content,omitempty"`     // texts and images in order, for custom_image
	Audio        string            `json:"audio,omitempty"`       // a file or a data URL
	Tools        json.RawMessage   `json:"tools,omitempty"`
	Extra        map[string]any    `json:"extra_body,omitempty"`
	Model        string            `json:"model,omitempty"`
	IgnoreEOS    bool              `json:"ignore_eos,omitempty"` // generate exactly output_tokens
	Labels       map[string]string `json:"labels,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Scorer       string            `json:"scorer,omitempty"`    // compares the answer with Reference
	Reference    json.RawMessage   `json:"reference,omitempty"` // the right answer
	Turns        []entry           `json:"turns,omitempty"`
	ThinkS       float64           `json:"think_s,omitempty"` // of a turn: the pause before it
	AtS          float64           `json:"at_s,omitempty"`    // of a turn: earliest start, relative to the first turn
	After        []int             `json:"after,omitzero"`    // of a turn: turns it waits for

	tokens int
	audio  *tacho.Audio // audio contained in the data
	answer string       // answer in the data, used to count output_tokens
}

// check validates an entry.
func (e *entry) check(wantOutput bool) error {
	if len(e.Turns) > 0 {
		for i := range e.Turns {
			t := &e.Turns[i]
			if len(t.Turns) > 0 || !(t.ThinkS >= 0 && t.ThinkS < maxSeconds) || !(t.AtS >= 0 && t.AtS < maxSeconds) {
				return fmt.Errorf("turn %d has nested turns, or a negative or too long pause (think_s and at_s are seconds)", i)
			}
			if err := e.Turns[i].check(wantOutput); err != nil {
				return fmt.Errorf("turn %d: %w", i, err)
			}
		}
		return nil
	}
	switch {
	case e.Prompt == nil && len(e.Messages) == 0 && len(e.IDs) == 0 && e.Content == nil && e.Audio == "":
		return errors.New(`neither "prompt" nor "messages"`)
	case e.Prompt != nil && *e.Prompt == "":
		return errors.New(`"prompt" is empty`)
	case wantOutput && e.OutputTokens < 1:
		return errors.New(`no "output_tokens" above 0, but an output length of -1 requires it`)
	}
	return e.checkMedia()
}

// maxSeconds limits the pauses in a file.
const maxSeconds = 1e9

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// text returns the text that counts as the entry's prompt.
func (e *entry) text() string {
	var texts []string
	if e.Prompt != nil {
		texts = append(texts, *e.Prompt)
	}
	for _, m := range e.Messages {
		texts = append(texts, m.Content)
	}
	if e.Content != nil {
		texts = append(texts, e.contentText())
	}
	return strings.Join(texts, "\n")
}

// maxKept limits the bytes of a file that a dataset keeps in memory.
const maxKept = 1 << 30

// entryCost is the memory of an entry besides its text. A list that grows is in memory twice.
const entryCost = 1024

// entryList collects the entries of a file, up to a limit.
type entryList struct {
	entries  []entry
	limit    int // maximum number of entries; 0 means all
	bytes    int64
	maxBytes int64
}

// newEntryList returns an empty list. If the entries are not shuffled, the first Count
// are enough.
func (o *Options) newEntryList() *entryList {
	k := &entryList{maxBytes: cmp.Or(o.maxKept, maxKept)}
	if !o.Shuffle {
		k.limit = o.Count
	}
	return k
}

// add appends an entry read from the given number of bytes.
func (k *entryList) add(e entry, bytes int) error {
	if k.bytes += int64(bytes) + entryCost; k.bytes > k.maxBytes {
		return fmt.Errorf("more than %d MiB of requests in the data: %w", k.maxBytes>>20, rows.ErrTooMuch)
	}
	if k.entries = append(k.entries, e); len(k.entries) == k.limit {
		return rows.ErrEnough
	}
	return nil
}

// pool is a workload of entries read from a file.
type pool struct {
	Options
	entries   []entry
	order     []int
	readNotes []string // notes from reading the file

	unmeasured sync.Map // audio of unknown length
	*textFitter
}

// newPool makes a workload of entries. It counts only the entries that will be used.
func newPool(ctx context.Context, o Options, entries []entry, readNotes ...string) (Workload, error) {
	if o.Count > len(entries) && !o.Repeat {
		o.Count = len(entries)
	}
	if o.templateTokens == 0 && o.usesDataLength() {
		if err := o.findTemplate(ctx); err != nil {
			return nil, err
		}
	}
	w := &pool{Options: o, entries: entries, order: make([]int, len(entries)), readNotes: readNotes, textFitter: newTextFitter(ctx, o.Counter)}
	for i := range w.order {
		w.order[i] = i
	}
	if o.Shuffle {
		rngOf(o.Seed, 0).Shuffle(len(w.order), func(a, b int) { w.order[a], w.order[b] = w.order[b], w.order[a] })
	}
	used := len(entries)
	if t := w.total(); t > 0 {
		used = min(used, t)
	}
	return w, w.precompute(used, o.Progress, w.count)
}

// total returns the number of sessions, 0 if unlimited.
func (w *pool) total() int {
	switch {
	case w.Count > 0:
		return w.Count
	case w.Repeat:
		return 0
	default:
		return len(w.entries)
	}
}

// count counts the tokens of the i-th entry in order, once.
func (w *pool) count(i uint64) error {
	e := &w.entries[w.order[i]]
	for t := range e.Turns {
		if err := w.countOne(&e.Turns[t]); err != nil {
			return err
		}
	}
	return w.countOne(e)
}

func (w *pool) countOne(e *entry) (err error) {
	switch {
	case e.tokens > 0 || len(e.Turns) > 0:
	case e.IDs != nil:
		e.tokens = len(e.IDs)
	default:
		e.tokens, err = w.countPrompt(w.ctx, e)
		if err == nil && w.MaxInput > 0 && e.tokens > w.MaxInput && e.Prompt != nil {
			*e.Prompt, e.tokens, err = token.AtMost(w.ctx, w.Counter, *e.Prompt, e.tokens, w.MaxInput)
		}
	}
	if err == nil && e.answer != "" && e.OutputTokens == 0 && w.usesDataLength() {
		e.OutputTokens, err = w.countAnswer(w.ctx, e.answer)
	}
	return err
}

// Session implements tacho.Source. After the last entry it draws random entries again.
func (w *pool) Session(i uint64) (tacho.Session, error) {
	if t := w.total(); t > 0 && i >= uint64(t) {
		return tacho.Session{}, io.EOF
	}
	at := i
	if i >= uint64(len(w.entries)) {
		at = rngOf(w.Seed, i).Uint64N(uint64(len(w.entries)))
	}
	return w.session(i, &w.entries[w.order[at]], "")
}

// Warmup implements Workload. It starts a prompt of the file with words that no prompt of
// the run contains, so that not even the beginning of the prompt is cached.
func (w *pool) Warmup(i uint64) (tacho.Session, error) {
	e := &w.entries[w.order[i%uint64(len(w.entries))]]
	s, err := w.session(warmupBase+i, e, fmt.Sprintf("(warm-up %d.%d) ", w.Seed, i))
	if err == nil {
		s.Turns = s.Turns[:1]
	}
	return s, err
}

func (w *pool) session(i uint64, e *entry, opening string) (tacho.Session, error) {
	turns := e.Turns
	if len(turns) == 0 {
		turns = []entry{*e}
	}
	s := tacho.Session{ID: i, Turns: make([]tacho.Turn, len(turns))}
	for t := range turns {
		q, err := w.request(i, t, &turns[t], opening)
		if err != nil {
			return s, err
		}
		think := seconds(turns[t].ThinkS)
		if think == 0 {
			think = w.think(i, t)
		}
		s.Turns[t] = tacho.Turn{Think: think, After: turns[t].After, At: seconds(turns[t].AtS), Request: q}
	}
	return s, nil
}

func (w *pool) request(i uint64, turn int, e *entry, opening string) (tacho.Request, error) {
	q := tacho.Request{Session: i, Turn: turn, Model: e.Model, InputTokens: e.tokens, IgnoreEOS: w.IgnoreEOS || e.IgnoreEOS, Extra: e.Extra, Scorer: e.Scorer, Reference: cmp.Or(reference(e.Reference), e.answer)}
	q.MaxTokens = w.outputOf(i, turn, e)
	q.Labels, q.Header = labelsOf(e.Labels), labelsOf(e.Headers)
	if e.Tools != nil {
		setExtra(&q, "tools", e.Tools)
	}
	switch {
	case e.IDs != nil:
		q.Input.IDs = slices.Clone(e.IDs)
		if opening != "" { // ids that no prompt of the run starts with
			v := idsBelow(max(w.Vocab, 0))
			q.Input.IDs[0] = int32(v.first + int((i+uint64(q.Input.IDs[0]))%uint64(v.count)))
		}
	case len(e.Images) > 0 || len(e.ImageFiles) > 0 || e.Content != nil || e.Audio != "" || e.audio != nil:
		return q, w.setMedia(&q, e, opening)
	case e.Prompt != nil:
		q.Input.Text = opening + *e.Prompt
	default:
		q.Input.Messages = slices.Clone(e.Messages)
		q.Input.Plain = !w.Messages
		if err := w.countMedia(&q); err != nil {
			return q, err
		}
		if m := &q.Input.Messages[0]; opening != "" && m.Raw == nil {
			m.Content = opening + m.Content
		}
	}
	return q, nil
}

// setMedia puts the images or the audio of a line into a request. Their token counts come
// from the server.
func (w *pool) setMedia(q *tacho.Request, e *entry, opening string) (err error) {
	q.InputTokens = 0
	audio := e.audio
	if e.Audio != "" {
		if audio, err = loadAudio(e.Audio); err != nil {
			return err
		}
	}
	if audio != nil {
		if err := setAudio(q, opening+e.text(), audio, w.Options); err != nil {
			return err
		}
		if q.AudioS == 0 {
			w.unmeasured.Store([2]any{e.Audio, e.audio}, nil)
		}
		return nil
	}
	if !w.Media {
		return errors.New("images need a backend that accepts them in messages, such as openai-chat")
	}
	parts, err := e.mediaParts(opening, w.SendFiles)
	if err != nil {
		return err
	}
	m, err := userMessage(parts)
	q.Input.Messages = []tacho.Message{m}
	return err
}

// countMedia measures the audio in messages. It fails if the backend accepts only text.
func (w *pool) countMedia(q *tacho.Request) error {
	for i := range q.Input.Messages {
		m := &q.Input.Messages[i]
		if !m.HasMedia() {
			continue
		}
		if q.Input.Plain && len(q.Input.Messages) == 1 && w.Media {
			q.Input.Plain = false // some backends accept one message with images, but no conversation
		}
		if q.Input.Plain {
			return errors.New("messages with images need a backend that accepts them, such as openai-chat")
		}
		q.InputTokens = 0
		q.AudioS += messageSeconds(m)
	}
	return nil
}

// labelsOf returns the pairs sorted by key.
func labelsOf(pairs map[string]string) (out tacho.Labels) {
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, tacho.Label{Key: k, Value: pairs[k]})
	}
	return out
}

// outputOf returns the number of output tokens. A distribution is drawn from a random
// stream of the session.
func (w *pool) outputOf(i uint64, turn int, e *entry) int {
	if n, constant := w.Output.Constant(); constant {
		if n < 0 || n == 0 && e.OutputTokens > 0 {
			return e.OutputTokens
		}
		return n
	}
	return w.Output.Draw(rngOf(w.Seed^0x6f7574707574, turnKey(i, turn)), 1)
}

// Notes implements Workload.
func (w *pool) Notes() []string {
	out := slices.Clone(w.readNotes)
	unmeasured := 0
	for range w.unmeasured.Range {
		unmeasured++
	}
	if unmeasured > 0 {
		out = append(out, fmt.Sprintf("the length of %d audio inputs is unknown, so RTFx counts them as 0 s; convert them to %s", unmeasured, audioFormats))
	}
	if t := w.total(); t > len(w.entries) {
		out = append(out, fmt.Sprintf("%d prompts were made from %d in the file, and a cache may serve repeated prompts; use more data or fewer --num-prompts", t, len(w.entries)))
	}
	return out
}

// usesDataLength reports whether output lengths come from the data.
func (o *Options) usesDataLength() bool {
	n, constant := o.Output.Constant()
	return constant && n < 0
}
