package backend

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var sglangNative = Kind{
	Name:        "sglang",
	Aliases:     []string{"sglang-native"},
	Doc:         "SGLang's own endpoint: text or token ids, exact output lengths, token counts in every event",
	Endpoint:    wire.SGLangGeneratePath,
	Port:        30000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	supports:    allSampling,
	about:       "/get_server_info",
	signatures:  []signature{certain(wire.OpenAIModelsPath, `"owned_by":"sglang"`), likely("/get_model_info", `"tokenizer_path"`), likely("/metrics", "sglang:")},
	encode:      encodeSGLang,
	decoder:     func(*Options) decoder { return new(sglangDecoder) },
	tokenMarks:  completionMarks,
	models:      openAIModels,
	count:       countPromptTokens,
	flush: func(ctx context.Context, c *client) error {
		return c.query(ctx, http.MethodPost, wire.SGLangFlushCachePath+"?timeout=30", nil, nil)
	},
}

func encodeSGLang(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	// The server reads sampling parameters and extra fields from a separate object.
	p, err := marshalWith(&wire.SGLangSamplingParams{
		MaxNewTokens: r.MaxTokens, IgnoreEOS: r.IgnoreEOS, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK,
	}, s.fields("min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"), o.Extra, r.Extra)
	if err != nil {
		return nil, err
	}
	q := map[string]any{"sampling_params": rawJSON(p), "stream": true}
	if r.ID != "" {
		q["rid"] = r.ID
	}
	if r.Model != "" && r.Model != o.Model {
		q["lora_path"] = r.Model
	}
	if r.Input.IDs != nil {
		q["input_ids"] = r.Input.IDs
	} else {
		q["text"] = r.Input.Text
	}
	return marshal(q)
}

// An sglangDecoder decodes events with the complete text so far or, if the server is configured to stream
// increments, with the new text. The second event shows which, because the number of ids equals either all tokens
// or the new tokens.
type sglangDecoder struct {
	scan scanner

	text, before []byte // text of this event and of the latest event with a longer text
	hasText      bool   // this event contains a text
	length       int    // length of the longest text so far
	ids          int    // number of ids in this event
	meta         sglangMeta
	completion   int  // tokens generated up to the previous event
	events       int  // number of events with tokens
	mute         bool // the tokens so far have neither text nor ids
	broken       bool // counts are wrong: a text came without a token
	deltas       bool
}

type sglangMeta struct {
	usage   tacho.Usage
	counted bool
	finish  []byte
	why     []byte

	// Durations in seconds; with --enable-metrics, also the times when the scheduler started and finished the
	// prompt.
	total, queue, began, through float64
}

func (m *sglangMeta) times() (t tacho.ServerTimes) {
	t.Total, t.Queue = duration(m.total, time.Second), duration(m.queue, time.Second)
	if m.began > 0 && m.through > m.began {
		t.Prefill = duration(m.through-m.began, time.Second)
	}
	return t
}

func (d *sglangDecoder) decode(payload []byte, c *chunk) error {
	if string(payload) == wire.OpenAIDone {
		c.end = true
		return nil
	}
	d.text, d.hasText, d.ids = d.text[:0], false, 0
	d.meta = sglangMeta{finish: d.meta.finish[:0], why: d.meta.why[:0]}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	m := &d.meta
	d.tokens(c)
	if m.counted {
		c.counted, c.usage = true, m.usage
	}
	if m.total > 0 {
		c.timed, c.times = true, m.times()
	}
	c.finish, c.end = m.finish, len(m.finish) > 0
	if string(m.finish) == "abort" && len(m.why) > 0 {
		c.failed, c.message = true, m.why
	}
	return nil
}

// tokens computes the tokens this event adds.
func (d *sglangDecoder) tokens(c *chunk) {
	total := d.meta.usage.Completion
	if !d.meta.counted {
		total = d.ids
		if d.deltas {
			total += d.completion
		}
	}
	if d.events > 0 && d.ids > 0 && d.meta.counted {
		d.deltas = d.ids < total
	}
	// The complete text so far cannot become shorter.
	d.deltas = d.deltas || d.hasText && len(d.text) < d.length
	grown := false
	switch {
	case !d.hasText:
	case d.deltas:
		c.text, grown = d.text, len(d.text) > 0
	default:
		c.text, c.whole, d.length = d.text, true, len(d.text)
		grown = !bytes.Equal(d.text, d.before)
		d.before = append(d.before[:0], d.text...)
	}
	n := max(total-d.completion, 0)
	d.completion += n
	d.broken = d.broken || d.mute && grown && n == 0
	switch {
	case d.broken || !d.meta.counted && d.ids == 0: // without counts, only a longer text indicates a token
		c.token = grown
	case n > 0:
		c.token, c.tokens = true, n
	}
	c.mute = !grown && d.ids == 0
	if c.token {
		d.mute = c.mute && (d.mute || d.events == 0)
		d.events++
	}
}

func (d *sglangDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "text":
		d.text, d.hasText = s.String(d.text[:0])
	case "output_ids":
		d.ids = s.Len()
	case "meta_info":
		s.Object(d.metaMember)
	}
}

func (d *sglangDecoder) metaMember(key []byte) {
	s, m := &d.scan, &d.meta
	switch string(key) {
	case "prompt_tokens":
		m.usage.Prompt = s.Natural()
	case "completion_tokens":
		m.usage.Completion, m.counted = s.Natural(), true
	case "cached_tokens":
		s.NaturalIfPresent(&m.usage.Cached, &m.usage.TellsCached)
	case "reasoning_tokens":
		m.usage.Reasoning = s.Natural()
	case "e2e_latency":
		m.total = s.Float()
	case "queue_time":
		m.queue = s.Float()
	case "forward_entry_time":
		m.began = s.Float()
	case "prefill_finished_time":
		m.through = s.Float()
	case "finish_reason":
		s.Object(func(key []byte) {
			switch string(key) {
			case "type":
				m.finish, _ = s.String(m.finish[:0])
			case "message":
				m.why, _ = s.String(m.why[:0])
			case "matched": // a string or a token id
				if s.Type() == '"' {
					if m.why, _ = s.String(m.why[:0]); string(m.why) == wire.NaNHappened {
						m.finish = append(m.finish[:0], m.why...)
					}
				}
			}
		})
	}
}
