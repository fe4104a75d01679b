package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// vllmFormat writes one object for one level, like the reference, and an array of
// objects for several levels.
var vllmFormat = Format{
	Name: "vllm", Ext: "vllm.json", Doc: "the result file of vLLM's serving benchmark, or an array of results for several levels; --save-detailed adds every request",
	Render: func(w io.Writer, r *Report) error {
		var results []*VLLMResult
		for run, level := range r.levels() {
			results = append(results, NewVLLMResult(run, level, r.Detailed))
		}
		if len(results) == 1 {
			return results[0].Write(w)
		}
		_, err := io.WriteString(w, "[")
		for i, result := range results {
			if i > 0 && err == nil {
				_, err = io.WriteString(w, ",\n")
			}
			if err == nil {
				err = result.Write(w)
			}
		}
		if err == nil {
			_, err = io.WriteString(w, "]")
		}
		return err
	},
}

// A VLLMResult writes a level as a result file of vLLM's serving benchmark, with the
// same keys in the same order and Python's spelling, so scripts for those files also
// read this one.
type VLLMResult struct {
	*outcome.About
	*outcome.Level
	// Detailed adds all arrays with an entry per request. The arrays of latencies and
	// queue times are in every file, like in the reference.
	Detailed bool
}

// NewVLLMResult returns the result of a level of a run.
func NewVLLMResult(run *outcome.Run, level *outcome.Level, detailed bool) *VLLMResult {
	return &VLLMResult{run.Of(level), level, detailed}
}

const vllmDate = "20060102-150405"

// Write writes the result on one line, without a newline at the end.
func (v *VLLMResult) Write(w io.Writer) error {
	out := &pythonObject{out: bufio.NewWriter(w)}
	v.identity(out)
	pools := v.Summary.Config.Pools
	if pools {
		v.poolingTotals(out)
	} else {
		v.totals(out)
	}
	var list []detail
	if v.Records != nil {
		var err error
		if list, err = v.readDetails(); err == nil {
			err = v.details(out, list)
		}
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
	}
	if !pools {
		v.peaks(out)
	}
	v.serverTimes(out, list)
	v.extras(out)
	v.latencies(out)
	return out.close()
}

func (v *VLLMResult) identity(o *pythonObject) {
	c := &v.Summary.Config
	if c.Predicted { // not a key of the reference, but a prediction must be marked
		o.raw("predicted", "true")
	}
	o.text("date", v.Epoch.Format(vllmDate))
	o.text("endpoint_type", v.Backend)
	o.text("backend", v.Backend)
	o.textOrNull("label", v.Label)
	o.text("model_id", v.Model)
	o.textOrNull("tokenizer_id", cmp.Or(v.Tokenizer, v.Model))
	o.whole("num_prompts", cmp.Or(v.Prompts, v.Summary.Requests)) // the number is not planned if the level is limited by time
	for _, f := range v.Metadata {
		o.text(f.Name, f.Value)
	}
	if c.RequestRate > 0 {
		o.number("request_rate", c.RequestRate)
	} else {
		o.text("request_rate", "inf")
	}
	if c.Burstiness > 0 {
		o.number("burstiness", c.Burstiness)
	} else { // Python's spelling of infinity
		o.raw("burstiness", "Infinity")
	}
	if c.MaxConcurrency > 0 {
		o.whole("max_concurrency", c.MaxConcurrency)
	} else {
		o.raw("max_concurrency", "null")
	}
	if r := v.Ramp; r != nil {
		o.text("ramp_up_strategy", r.Strategy)
		o.whole("ramp_up_start_rps", r.StartRPS)
		o.whole("ramp_up_end_rps", r.EndRPS)
	}
}

func (v *VLLMResult) totals(o *pythonObject) {
	s := &v.Summary
	t := throughputOf(s)
	o.number("duration", s.DurationS)
	o.whole("completed", s.Completed)
	o.whole("failed", s.Failed)
	o.whole("total_input_tokens", s.Tokens.Input)
	o.whole("total_output_tokens", s.Tokens.Output)
	o.number("request_throughput", t.RequestsPerS)
	if len(s.Config.Goodput) > 0 {
		o.number("request_goodput", goodputOf(s))
	} else {
		o.raw("request_goodput", "null")
	}
	o.number("output_throughput", t.OutputTokensPerS)
	o.number("total_token_throughput", t.TotalTokensPerS)
}

// poolingTotals are the totals of models that generate no tokens, for which the
// reference uses other keys.
func (v *VLLMResult) poolingTotals(o *pythonObject) {
	s := &v.Summary
	t := throughputOf(s)
	o.number("duration", s.DurationS)
	o.whole("completed", s.Completed)
	o.whole("total_input_tokens", s.Tokens.Input)
	o.whole("total_input_sequences", s.Inputs)
	o.number("request_throughput", t.RequestsPerS)
	o.number("input_sequence_throughput", t.InputsPerS)
	o.number("total_token_throughput", t.TotalTokensPerS)
}

func (v *VLLMResult) peaks(o *pythonObject) {
	p := peaksOf(&v.Summary)
	o.number("max_output_tokens_per_s", float64(p.EventsPerS))
	o.whole("max_concurrent_requests", p.TouchingASecond)
	o.number("rtfx", throughputOf(&v.Summary).AudioSPerS)
}

// extras writes the probe requests, the ramp and the counters of the server.
func (v *VLLMResult) extras(o *pythonObject) {
	if p := v.Summary.Probe; p != nil && p.Completed > 0 {
		o.whole("probe_completed", p.Completed)
		o.whole("probe_failed", p.Failed)
		o.number("probe_median_e2el_ms", p.MedianMillis)
		o.number("probe_p99_e2el_ms", p.P99Millis)
		o.number("probe_max_e2el_ms", p.MaxMillis)
	}
	if v.Ramp != nil {
		array(o, "rps_change_events", v.Ramp.Changes, func(b []byte, c *outcome.RateChange) []byte {
			b = strconv.AppendInt(append(b, `{"rps": `...), int64(c.RPS), 10)
			b = appendPythonString(append(b, `, "timestamp": `...), v.Epoch.Add(c.At).Format("2006-01-02T15:04:05.000000"))
			return append(b, '}')
		})
	}
	v.drafting(o)
}

// drafting writes the server's counters of speculative and diffusion decoding.
func (v *VLLMResult) drafting(o *pythonObject) {
	if s := v.Summary.Speculation(); s != nil {
		o.number("spec_decode_acceptance_rate", 100*s.AcceptedShare())
		o.number("spec_decode_acceptance_length", s.Length())
		o.whole("spec_decode_num_drafts", int(s.Drafts))
		o.whole("spec_decode_draft_tokens", int(s.DraftTokens))
		o.whole("spec_decode_accepted_tokens", int(s.Accepted))
		array(o, "spec_decode_per_position_acceptance_rates", s.ShareAt(), func(b []byte, share *float64) []byte {
			return append(b, pythonJSONFloat(*share)...)
		})
	}
	if d := v.Summary.Diffusion(); d != nil {
		o.number("diffusion_committed_throughput", committedPerS(&v.Summary))
		o.number("diffusion_steps_per_canvas", d.StepsPerCanvas())
		o.number("diffusion_committed_per_step", d.CommittedPerStep())
		o.whole("diffusion_committed_tokens", int(d.Committed))
		o.whole("diffusion_denoising_steps", int(d.DenoisingSteps()))
		o.whole("diffusion_canvas_positions", int(d.Positions))
	}
}

func (v *VLLMResult) latencies(o *pythonObject) {
	for i := range metric.Sections {
		section := &metric.Sections[i]
		if !v.Summary.Config.Shows(section) {
			continue
		}
		s := v.Summary.Classic(section.Metric)
		o.number("mean_"+section.Key+"_ms", s.Mean)
		o.number("median_"+section.Key+"_ms", s.Median)
		o.number("std_"+section.Key+"_ms", s.Std)
		for _, p := range v.Summary.Config.Percentiles {
			o.number("p"+percentileWord(p)+"_"+section.Key+"_ms", s.Percentile(p))
		}
	}
}

// A detail is the part of a record that the arrays of numbers need.
type detail struct {
	session         uint64
	turn            int
	read            int // position in the file
	input, output   int
	ttftS, latencyS float64
	startS, waitedS float64
	server          *tacho.ServerTimes
	failure         string
}

// readDetails reads the records and sorts them in the order of the workload.
func (v *VLLMResult) readDetails() ([]detail, error) {
	var list []detail
	for r, err := range v.Records() {
		if err != nil {
			return nil, err
		}
		d := v.newDetail(r)
		d.read = len(list)
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b detail) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.turn, b.turn), cmp.Compare(a.read, b.read))
	})
	return list, nil
}

// inOrder reads the records again and yields them in the order of list. Token times and
// texts are therefore never all in memory. A record that is read before its turn is
// buffered; about as many records are buffered as were in flight.
func (v *VLLMResult) inOrder(list []detail) iter.Seq2[*tacho.Record, error] {
	place := make([]int, len(list))
	for i := range list {
		place[list[i].read] = i
	}
	return func(yield func(*tacho.Record, error) bool) {
		waiting := map[int]*tacho.Record{}
		read, next := 0, 0
		for r, err := range v.Records() {
			if err != nil {
				yield(nil, err)
				return
			}
			if read == len(place) {
				return // the file grew after the first read
			}
			waiting[place[read]] = r
			read++
			for ; waiting[next] != nil; next++ {
				if !yield(waiting[next], nil) {
					return
				}
				delete(waiting, next)
			}
		}
	}
}

// newDetail follows the reference: a failed request counts without output and latency,
// but with the times of the tokens before the failure. If the model generates no tokens,
// the prompt length of a failed request is 0, too.
func (v *VLLMResult) newDetail(r *tacho.Record) detail {
	d := detail{session: r.Session, turn: r.Turn}
	started := r.Due
	for _, at := range []time.Duration{r.Slot, r.Start, r.Sent} {
		if at != tacho.Never {
			started = at
		}
	}
	d.waitedS = seconds(started - r.Due)
	switch {
	case !r.OK():
	case len(r.Events) == 0:
		d.latencyS = seconds(r.End - started)
	default:
		d.latencyS = seconds(r.Last() - started)
	}
	if !v.Detailed {
		return d
	}
	d.startS, d.server = v.Monotonic+seconds(started), r.Server
	if r.OK() || !v.Summary.Config.Pools {
		d.input = metric.InputTokens(r)
	}
	if first := r.First(); first != tacho.Never {
		d.ttftS = seconds(first - started)
	}
	if r.OK() {
		d.output = r.Output
	} else {
		d.failure = r.Failure.Error()
	}
	return d
}

// details writes the arrays with an entry for each request.
func (v *VLLMResult) details(o *pythonObject, list []detail) error {
	generated := v.Detailed && !v.Summary.Config.Pools
	if v.Detailed {
		wholes(o, "input_lens", list, func(d *detail) int { return d.input })
	}
	if generated {
		wholes(o, "output_lens", list, func(d *detail) int { return d.output })
		numbers(o, "ttfts", list, func(d *detail) float64 { return d.ttftS })
		if err := arrayOf(o, "itls", v.inOrder(list), appendGaps); err != nil {
			return err
		}
	}
	numbers(o, "latencies", list, func(d *detail) float64 { return d.latencyS })
	if generated {
		numbers(o, "start_times", list, func(d *detail) float64 { return d.startS })
	}
	numbers(o, "queue_times", list, func(d *detail) float64 { return d.waitedS })
	if generated {
		text := func(b []byte, r *tacho.Record) []byte { return appendPythonString(b, r.Text) }
		if err := arrayOf(o, "generated_texts", v.inOrder(list), text); err != nil {
			return err
		}
	}
	if v.Detailed {
		array(o, "errors", list, func(b []byte, d *detail) []byte { return appendPythonString(b, d.failure) })
	}
	return nil
}

// serverTimes writes the server's own times of each request, if the server sent any and the arrays are asked for.
func (v *VLLMResult) serverTimes(o *pythonObject, list []detail) {
	if !v.Detailed || !slices.ContainsFunc(list, func(d detail) bool { return d.server != nil && (d.server.Queue > 0 || d.server.TTFT > 0) }) {
		return
	}
	times := func(key string, of func(*tacho.ServerTimes) time.Duration) {
		array(o, key, list, func(b []byte, d *detail) []byte {
			if d.server == nil || of(d.server) == 0 {
				return append(b, "null"...)
			}
			return append(b, pythonJSONFloat(seconds(of(d.server)))...)
		})
	}
	times("server_queue_times", func(t *tacho.ServerTimes) time.Duration { return t.Queue })
	times("server_ttfts", func(t *tacho.ServerTimes) time.Duration { return t.TTFT })
}

// appendGaps appends the times between the tokens of a request as a list.
func appendGaps(b []byte, r *tacho.Record) []byte {
	b = append(b, '[')
	for i := 1; i < len(r.Events); i++ {
		if i > 1 {
			b = append(b, ", "...)
		}
		b = append(b, pythonJSONFloat(seconds(r.Events[i].At-r.Events[i-1].At))...)
	}
	return append(b, ']')
}

func wholes(o *pythonObject, key string, list []detail, of func(*detail) int) {
	array(o, key, list, func(b []byte, d *detail) []byte { return strconv.AppendInt(b, int64(of(d)), 10) })
}

func numbers(o *pythonObject, key string, list []detail, of func(*detail) float64) {
	array(o, key, list, func(b []byte, d *detail) []byte { return append(b, pythonJSONFloat(of(d))...) })
}

func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

// FileName returns the reference's name for the file of this result.
func (v *VLLMResult) FileName() string {
	c := &v.Summary.Config
	rate := "inf"
	if c.RequestRate > 0 {
		rate = pythonFloat(c.RequestRate)
	}
	load := rate + "qps"
	if r := v.Ramp; r != nil {
		load = fmt.Sprintf("ramp-up-%s-%dqps-%dqps", r.Strategy, r.StartRPS, r.EndRPS)
	}
	if c.MaxConcurrency > 0 {
		load += "-concurrency" + strconv.Itoa(c.MaxConcurrency)
	}
	model := v.Model[strings.LastIndexByte(v.Model, '/')+1:]
	return sanitize.FileName(cmp.Or(v.Label, v.Backend) + "-" + load + "-" + model + "-" + v.Epoch.Format(vllmDate) + ".json")
}

// A pythonObject writes one JSON object like Python's json.dump. Its writer keeps the
// first error.
type pythonObject struct {
	out   *bufio.Writer
	begun bool
}

func (o *pythonObject) key(name string) {
	opening := ", "
	if !o.begun {
		opening, o.begun = "{", true
	}
	_, _ = o.out.WriteString(opening)
	_, _ = o.out.Write(appendPythonString(nil, name))
	_, _ = o.out.WriteString(": ")
}

func (o *pythonObject) raw(key, value string) {
	o.key(key)
	_, _ = o.out.WriteString(value)
}

func (o *pythonObject) text(key, value string)           { o.raw(key, string(appendPythonString(nil, value))) }
func (o *pythonObject) number(key string, value float64) { o.raw(key, pythonJSONFloat(value)) }
func (o *pythonObject) whole(key string, value int)      { o.raw(key, strconv.Itoa(value)) }

func (o *pythonObject) textOrNull(key, value string) {
	if value == "" {
		o.raw(key, "null")
		return
	}
	o.text(key, value)
}

func (o *pythonObject) close() error {
	_, _ = o.out.WriteString("}")
	return o.out.Flush()
}

// array writes a list.
func array[T any](o *pythonObject, key string, items []T, appendItem func([]byte, *T) []byte) {
	all := func(yield func(*T, error) bool) {
		for i := range items {
			if !yield(&items[i], nil) {
				return
			}
		}
	}
	_ = arrayOf(o, key, all, appendItem) // items cannot fail
}

// arrayOf writes a list item by item, because detailed results are large.
func arrayOf[T any](o *pythonObject, key string, items iter.Seq2[*T, error], appendItem func([]byte, *T) []byte) error {
	o.raw(key, "[")
	var buf []byte
	for item, err := range items {
		if err != nil {
			return err
		}
		between := ""
		if buf != nil {
			between = ", "
		}
		buf = appendItem(append(buf[:0], between...), item)
		_, _ = o.out.Write(buf)
	}
	_, _ = o.out.WriteString("]")
	return nil
}
