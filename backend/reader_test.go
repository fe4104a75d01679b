package backend

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/transport"
)

// testReader returns a reader of an event stream with status 200, without a connection.
func testReader(k Kind) *reader {
	c := &client{Kind: k, Options: Options{KeepText: true}}
	x := &transport.Exchange{Status: http.StatusOK, Type: "text/event-stream"}
	return newReader(c, x, new(tacho.Record))
}

// read returns the record of a stream. Byte n arrives alone, at n nanoseconds, and the data is handed over in
// pieces cut at the given offsets.
func read(k Kind, stream []byte, cuts ...int) *tacho.Record {
	r := testReader(k)
	start := 0
	for _, end := range append(cuts, len(stream)) {
		if end <= start {
			continue
		}
		var reads []transport.Read
		for i := start; i < end; i++ {
			reads = append(reads, transport.Read{End: i - start + 1, At: int64(i), Recv: uint32(i)})
		}
		data := slices.Clone(stream[start:end])
		r.Consume(data, reads)
		for i := range data {
			data[i] = '#' // the transport may overwrite the data after Consume
		}
		start = end
	}
	r.finish()
	r.client.mark(r.rec, r, nil)
	return r.rec
}

var streams = []string{
	"data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"é😀\",\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":2}}\r\n\r\n: ping\n\ndata: [DONE]\n\n",
	"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\ndata: \"token_ids\":[1,2]}]}\nid: 1\n\ndata: {\"error\":\"no\"}\n\ndata: [DONE]\n",
	"data:{\"token\":{\"text\":\"a\"},\"generated_text\":null}\n\ndata:{\"token\":{\"text\":\"b\",\"special\":true},\"generated_text\":\"a\",\"details\":{\"finish_reason\":\"length\",\"generated_tokens\":2,\"input_length\":3}}\n\n",
	"event: response.created\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"output_tokens\":1}}}\n\n",
	"data: {\"text\":\"a\",\"output_ids\":[1],\"meta_info\":{\"completion_tokens\":1}}\n\ndata: {\"text\":\"ab\",\"output_ids\":[1,2],\"meta_info\":{\"completion_tokens\":2,\"finish_reason\":{\"type\":\"stop\"},\"e2e_latency\":1.5}}\n\n",
	"data: {\"text_output\":\"a\",\"num_output_tokens\":1,\"finish_reason\":null}\n\ndata: {\"text_output\":\"b\"}\n\n",
	"data: {\"content\":\"a\",\"tokens\":[1]}\n\ndata: {\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"timings\":{\"prompt_ms\":1.5}}\n\n",
	"{\"response\":\"a\",\"thinking\":\"b\"}\n{\"message\":{\"content\":\"c\"}}\n{\"done\":true,\"eval_count\":2,\"eval_duration\":12}",
	"data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":1}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
	"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thought\":true}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"thoughtsTokenCount\":3}}\n\n",
	"data: {\"type\":\"transcript.text.delta\",\"delta\":\"a\"}\n\ndata: {\"type\":\"transcript.text.done\",\"text\":\"a\",\"usage\":{\"output_tokens\":1}}\n\n",
	"{\"data\":[{}],\"usage\":{\"prompt_tokens\":1}}",
	"event: error\ndata: {}\n\n", "data: {\n\n", "hello", "",
}

// The record does not depend on how the response is cut into pieces, and the time of an event is the arrival time
// of the newline of its last data line.
func FuzzRecordIgnoresCuts(f *testing.F) {
	for i, s := range streams {
		f.Add([]byte(s), uint16(i*7), uint16(i*31))
	}
	f.Fuzz(func(t *testing.T, stream []byte, i, j uint16) {
		x, y := int(i)%(len(stream)+1), int(j)%(len(stream)+1)
		bytewise := make([]int, len(stream))
		for i := range bytewise {
			bytewise[i] = i
		}
		for _, k := range Kinds {
			whole := read(k, stream)
			for _, cuts := range [][]int{{min(x, y), max(x, y)}, bytewise} {
				if diff := cmp.Diff(whole, read(k, stream, cuts...)); diff != "" {
					t.Fatalf("%s cut at %v (-whole +cut):\n%s", k.Name, cuts, diff)
				}
			}
			for _, e := range whole.Events {
				if stream[e.At] != '\n' && stream[e.At] != '\r' && (k.framing == serverSent || int(e.At) != len(stream)-1) {
					t.Errorf("%s: an event at byte %d, which does not end a line", k.Name, e.At)
				}
			}
		}
	})
}

// Events received in one read share a timestamp, which is exact only for the last of them.
func TestCoalesced(t *testing.T) {
	token, usage := "data: {\"choices\":[{\"text\":\"a\"}]}\n\n", "data: {\"choices\":[],\"usage\":{\"completion_tokens\":5}}\n\n"
	stream := token + token + token + usage + token + token + usage
	n := len(token)
	r := testReader(vllm)
	r.epoch = 1000
	// The first three events arrive in one receive, in two reads; the fourth arrives alone; the fifth arrives with
	// the usage.
	r.Consume([]byte(stream), []transport.Read{
		{End: n + 5, At: 2000, Lag: 7, Since: 1e6, Recv: 4},
		{End: 3*n + len(usage), At: 2000, Lag: 8, Since: 2e6, Recv: 4},
		{End: 4*n + len(usage), At: 3000, Lag: 9, Recv: 5},
		{End: len(stream), At: 4000, Lag: 10, Recv: 6},
	})
	r.finish()
	want := tacho.Events{
		{At: 1000, ReadLag: 7, Slack: tacho.SlackOf(time.Millisecond)},
		{At: 1000, ReadLag: 8, Slack: tacho.SlackOf(2 * time.Millisecond)},
		{At: 1000, ReadLag: 8},
		{At: 2000, ReadLag: 9},
		{At: 3000, ReadLag: 10},
	}
	if diff := cmp.Diff(want, r.rec.Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A last token read together with the end of the answer arrived right before the end, unless the client was late to
// read.
func TestLastTokenReadWithTheEnd(t *testing.T) {
	token, usage := "data: {\"choices\":[{\"text\":\"a\"}]}\n\n", "data: {\"choices\":[],\"usage\":{\"completion_tokens\":5}}\n\n"
	const since = 20 * time.Millisecond
	for late, want := range map[bool]tacho.Slack{false: 0, true: tacho.SlackOf(since)} {
		for _, wire := range []bool{false, true} {
			r := testReader(vllm)
			r.Consume([]byte(token+token+usage), []transport.Read{
				{End: len(token), At: 2000, Recv: 1, Wire: wire},
				{End: 2*len(token) + len(usage), At: 3000, Since: int32(since), Late: late, Recv: 2, Wire: wire},
			})
			r.finish()
			if wire {
				want = 0
			}
			if e := r.rec.Events; len(e) != 2 || e[0].Slack != 0 || e[1].Slack != want {
				t.Errorf("late %v, wire %v: %+v, want the last to be off by %v", late, wire, e, want.Duration())
			}
		}
	}
}

// Segments with wire timestamps have separate times, and events in one segment arrived together. Token events
// without a wire timestamp are counted.
func TestWireTimes(t *testing.T) {
	token := "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
	n := len(token)
	for _, c := range []struct {
		clock tacho.Clock
		left  bool
		want  int
	}{{tacho.WireClock, true, 2}, {tacho.WireClock, false, 3}, {tacho.KernelClock, false, 0}} {
		r := testReader(vllm)
		r.Consume([]byte(strings.Repeat(token, 5)), []transport.Read{
			{End: 2 * n, At: 2000, Recv: 4, Wire: true},
			{End: 4 * n, At: 3000, Recv: 5},
			{End: 5 * n, At: 4000, Recv: 6, Wire: true},
		})
		r.finish()
		r.exchange.Clock, r.exchange.Left = c.clock, c.left
		r.client.mark(r.rec, r, nil)
		var coalesced []int
		for i, e := range r.rec.Events {
			if e.Coalesced() {
				coalesced = append(coalesced, i)
			}
		}
		if diff := cmp.Diff([]int{2}, coalesced); diff != "" || r.rec.FellBack != c.want {
			t.Errorf("%+v: %d fell back; coalesced (-want +got):\n%s", c, r.rec.FellBack, diff)
		}
	}
}

func TestManyTokensInAnEventSaturate(t *testing.T) {
	ids := strings.TrimSuffix(strings.Repeat("1,", 40000), ",")
	rec := read(vllm, []byte("data: {\"choices\":[{\"text\":\"a\",\"token_ids\":["+ids+"]}]}\n\ndata: [DONE]\n\n"))
	if len(rec.Events) != 1 || rec.Events[0].Tokens != math.MaxInt16 {
		t.Errorf("events %+v", rec.Events)
	}
}

func TestClockStep(t *testing.T) {
	for _, tc := range []struct{ wall, monotonic, want time.Duration }{
		{time.Second, time.Second, 0},
		{time.Second + time.Millisecond, time.Second, 0},
		{3 * time.Second, time.Second, 2 * time.Second},
		{-time.Second, time.Second, -2 * time.Second},
	} {
		if got := clockStep(tc.wall, tc.monotonic); got != tc.want {
			t.Errorf("wall %v, monotonic %v: step %v, want %v", tc.wall, tc.monotonic, got, tc.want)
		}
	}
}

func TestOffset(t *testing.T) {
	r := &reader{epoch: 100}
	if got := r.offset(0); got != tacho.Never {
		t.Errorf("a moment that did not come is at %v", got)
	}
	if got := r.offset(130); got != 30*time.Nanosecond {
		t.Errorf("offset %v, want 30ns", got)
	}
}

func TestLiveCounter(t *testing.T) {
	stream := ": \"text\":\"x\"\n\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\": \"b\"}]}\r\n\r\n" +
		"data: {\"choices\":[{\"text\":\"\"}]}\n\ndata: {\"choices\":[{\"index\":0,\"text\":\"\"},{\"text\":\"\\\"\"}]}\n\ndata: [DONE]\n\n"
	for _, size := range []int{1, 2, 7, len(stream)} {
		got, firsts, sent, at := 0, 0, int64(1000), int64(5000)
		passed := time.Duration(0)
		l := liveCounter{marks: vllm.tokenMarks, sent: &sent, tell: func(n int, first bool, after time.Duration) {
			got, passed = got+n, passed+after
			if first {
				firsts++
			}
		}}
		for piece := range slices.Chunk([]byte(stream), size) {
			at++
			l.feed(piece, at)
		}
		if got != 3 || firsts != 1 || passed != time.Duration(l.last-sent) {
			t.Errorf("in pieces of %d: %d token events, want 3; %d are the first; %v passed of %v", size, got, firsts, passed, time.Duration(l.last-sent))
		}
	}
	l := liveCounter{marks: vllm.tokenMarks, sent: new(int64), tell: func(int, bool, time.Duration) {}}
	for range 100 {
		l.feed(make([]byte, 4<<10), 1)
	}
	if cap(l.partial) > 2*maxLine {
		t.Errorf("an endless line takes %d bytes", cap(l.partial))
	}
}

func TestClip(t *testing.T) {
	c := &client{Options: Options{Secrets: &redact.Secrets{}}}
	c.Secrets.Add("sk-1234567890")
	long := strings.Repeat("é", 400)
	for in, want := range map[string]string{
		" a \n\t b\x00c ": "a b c",
		long:              strings.Repeat("é", maxMessage/2) + "…",
		strings.Repeat("x", 295) + "sk-1234567890": strings.Repeat("x", 295) + "[reda…",
		"\xff": "\uFFFD",
	} {
		if got := c.clip(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// BenchmarkConsume measures the cost of one event of a completions stream: splitting, decoding and recording.
func BenchmarkConsume(b *testing.B) {
	const events = 1000
	event := `data: {"id":"cmpl-2f6f6a0b7d5e4c3a9b8c7d6e5f4a3b2c","object":"text_completion","created":1763171717,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"text":" the","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}` + "\n\n"
	stream := []byte(strings.Repeat(event, events))
	var reads []transport.Read
	for i := range events {
		reads = append(reads, transport.Read{End: (i + 1) * len(event), At: int64(i), Recv: uint32(i)})
	}
	r := testReader(vllm)
	r.client.KeepText = false
	b.ReportAllocs()
	for b.Loop() {
		r.rec.Events = r.rec.Events[:0]
		r.Consume(stream, reads)
	}
	if len(r.rec.Events) != events {
		b.Fatal(fmt.Sprint(len(r.rec.Events), " events"))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
}

// If the thread is preempted between reading the two clocks, no clock step is reported.
func TestPreemptionIsNotAClockStep(t *testing.T) {
	const lost = 3 * time.Millisecond
	for slow := range 3 {
		n := 0
		c := quickest(func() clocks {
			at := time.Duration(n) * time.Second
			n++
			if n-1 == slow {
				return clocks{at, at + lost}
			}
			return clocks{at, at}
		})
		if step := clockStep(c.wall, c.monotonic); step != 0 {
			t.Errorf("reading %d was slow, and the clock seems to be set by %v", slow, step)
		}
	}
	if c := quickest(readClocks); time.Since(clockStart) < c.monotonic || time.Now().UnixNano() < int64(c.wall) {
		t.Errorf("%v is yet to come", c)
	}
}

// In all protocols with counts in events, a count without text, token ids or log probabilities is no first token. A text
// that follows without a new count is one.
func TestCountIsNoFirstToken(t *testing.T) {
	sgl := func(text string, n int) string {
		return fmt.Sprintf(`{"text":%q,"meta_info":{"completion_tokens":%d}}`, text, n)
	}
	llama := func(text, ids string, n int) string {
		return fmt.Sprintf(`{"content":%q,"tokens":[%s],"tokens_predicted":%d}`, text, ids, n)
	}
	tri := func(text string, n int) string {
		return fmt.Sprintf(`{"text_output":%q,"num_output_tokens":%d}`, text, n)
	}
	tgi := func(text, score string) string {
		return fmt.Sprintf(`{"token":{"id":0,"text":%q,"logprob":%s,"special":false}}`, text, score)
	}
	for name, tc := range map[string]struct {
		kind          *Kind
		stream        []string
		first, tokens int // index of the first token event; number of token events
		opening       int
	}{
		"SGLang, announced":             {&sglangNative, []string{sgl("", 0), sgl("a", 1), sgl("ab", 2)}, 1, 2, 0},
		"SGLang, half a character":      {&sglangNative, []string{sgl("", 1), sgl("a", 2), sgl("ab", 3)}, 1, 2, 1},
		"SGLang, counted early":         {&sglangNative, []string{sgl("", 1), sgl("a", 1), sgl("ab", 2)}, 1, 2, 1},
		"SGLang, all counted at first":  {&sglangNative, []string{sgl("", 3), sgl("a", 3), sgl("ab", 3), sgl("abc", 3)}, 1, 3, 1},
		"SGLang, ids":                   {&sglangNative, []string{`{"text":"","output_ids":[7],"meta_info":{"completion_tokens":1}}`, sgl("a", 2)}, 0, 2, 0},
		"SGLang, half during":           {&sglangNative, []string{sgl("a", 1), sgl("a", 2), sgl("ab", 3)}, 0, 3, 0},
		"llama.cpp, counted early":      {&llamaCPP, []string{llama("", "", 1), llama("a", "7", 1), llama("b", "7", 2)}, 1, 2, 1},
		"llama.cpp, ids":                {&llamaCPP, []string{llama("", "7", 1), llama("a", "7", 2)}, 0, 2, 0},
		"Triton, counted early":         {&tritonVLLM, []string{tri("", 1), tri("a", 1), tri("b", 1)}, 1, 2, 1},
		"TGI, without log probability":  {&textGeneration, []string{tgi("", "null"), tgi("a", "-1"), tgi("b", "-1")}, 1, 2, 1},
		"TGI, half a character":         {&textGeneration, []string{tgi("", "-1"), tgi("a", "-1")}, 0, 2, 0},
		"TGI, log probabilities absent": {&textGeneration, []string{tgi("a", "null"), tgi("", "null"), tgi("b", "null")}, 0, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := testReader(*tc.kind)
			for i, payload := range tc.stream {
				payload = "data: " + payload + "\n\n"
				must.Do(t, r.Consume([]byte(payload), []transport.Read{{End: len(payload), At: int64(i), Recv: uint32(i)}}))
			}
			r.finish()
			if rec := r.rec; int(rec.First()) != tc.first || len(rec.Events) != tc.tokens || len(rec.Opening) != tc.opening {
				t.Errorf("first token in event %d, %d token events, %d before: want %d, %d, %d", rec.First(), len(rec.Events), len(rec.Opening), tc.first, tc.tokens, tc.opening)
			}
		})
	}
}

// An event without text, token ids or log probabilities before the first text is never the first token, whatever the
// server counts, in that event or at the end. It stays in the record. The live view does not take it for a token either.
func TestEmptyFirstEvent(t *testing.T) {
	const (
		empty  = `{"choices":[{"text":""}]}`
		token  = `{"choices":[{"text":"a"}]}`
		delta  = `{"choices":[{"delta":{"content":"a"}}]}`
		role   = `{"choices":[{"delta":{"role":"assistant","content":""}}]}`
		beat   = `{"choices":[{"delta":{"content":""}}]}`
		id     = `{"choices":[{"text":"","token_ids":[5]}]}`
		logged = `{"choices":[{"text":"","logprobs":{"tokens":["\u00e2"],"token_logprobs":[-0.5]}}]}`
		talk   = `{"choices":[{"delta":{"content":""},"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}`
		none   = `{"choices":[{"delta":{"content":""},"logprobs":{"content":[]}}]}`
		stop   = `{"choices":[{"text":"","finish_reason":"stop"}]}`
		apart  = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
		done   = `[DONE]`
	)
	usage := func(n int) string {
		return fmt.Sprintf(`{"choices":[],"usage":{"completion_tokens":%d}}`, n)
	}
	counted := func(text string, n int) string {
		return fmt.Sprintf(`{"choices":[{"text":%q}],"usage":{"completion_tokens":%d}}`, text, n)
	}
	for name, tc := range map[string]struct {
		stream  []string
		first   int // index of the first token event
		events  int
		opening int
	}{
		"not counted":                      {[]string{empty, token, token, usage(2)}, 1, 2, 1},
		"counted, or a pair":               {[]string{empty, token, token, usage(3)}, 1, 2, 1},
		"one of two counted":               {[]string{empty, empty, token, usage(2)}, 2, 1, 2},
		"no count":                         {[]string{empty, token, token}, 1, 2, 1},
		"a count of 0":                     {[]string{empty, token, token, usage(0)}, 1, 2, 1},
		"several in an event":              {[]string{empty, token, token, usage(8)}, 1, 2, 1},
		"during the answer":                {[]string{token, empty, token, usage(3)}, 0, 3, 0},
		"a heartbeat between token ids":    {[]string{id, empty, id, usage(2)}, 0, 2, 0},
		"a heartbeat between counts":       {[]string{counted("a", 1), counted("", 1), counted("a", 2)}, 0, 2, 0},
		"token ids":                        {[]string{id, token, usage(2)}, 0, 2, 0},
		"log probabilities":                {[]string{logged, token, usage(2)}, 0, 2, 0},
		"log probabilities, chat":          {[]string{talk, delta, usage(2)}, 0, 2, 0},
		"no log probabilities":             {[]string{none, delta, usage(2)}, 1, 1, 1},
		"a count in each event":            {[]string{counted("", 1), counted("a", 2)}, 1, 1, 1},
		"a count before the text":          {[]string{counted("", 1), counted("a", 1), counted("a", 2)}, 1, 2, 1},
		"all tokens counted at first":      {[]string{counted("", 2), counted("a", 2), counted("a", 2)}, 1, 2, 1},
		"a count during the answer":        {[]string{counted("a", 1), counted("", 2), counted("a", 3)}, 0, 3, 0},
		"a count in each event, announced": {[]string{counted("", 0), counted("a", 1), counted("a", 2)}, 1, 2, 1},
		"a role":                           {[]string{role, delta, usage(2)}, 1, 1, 0},
		"heartbeats":                       {[]string{role, beat, beat, beat, delta, delta, apart, usage(5), done}, 4, 2, 3},
		"a pair and an end":                {[]string{empty, token, token, stop, usage(3)}, 1, 2, 1},
		"a counted end":                    {[]string{empty, token, token, stop, usage(4)}, 1, 3, 1},
		"no text, the end counted":         {[]string{empty, stop, usage(2)}, 1, 1, 1},
		"no text, the end not counted":     {[]string{empty, stop, usage(1)}, 1, 1, 1},
		"no text and no count":             {[]string{empty, stop, done}, 1, 1, 1},
		"no text and no end":               {[]string{empty, empty, usage(2), done}, 3, 1, 2},
		"nothing":                          {[]string{stop, usage(0), done}, -1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := testReader(vllm)
			shown, sent := -1, int64(0)
			live := liveCounter{marks: slices.Concat(vllm.tokenMarks, openAIChat.tokenMarks), sent: &sent, tell: func(_ int, first bool, after time.Duration) {
				if first {
					shown = int(after) - 1
				}
			}}
			for i, payload := range tc.stream {
				payload = "data: " + payload + "\n\n"
				live.feed([]byte(payload), int64(i+1))
				must.Do(t, r.Consume([]byte(payload), []transport.Read{{End: len(payload), At: int64(i), Recv: uint32(i)}}))
			}
			r.finish()
			rec := r.rec
			if int(rec.First()) != tc.first || len(rec.Events) != tc.events || len(rec.Opening) != tc.opening {
				t.Errorf("first token in event %d, %d token events, %d before: want %d, %d, %d", rec.First(), len(rec.Events), len(rec.Opening), tc.first, tc.events, tc.opening)
			}
			want := tc.first
			if want >= 0 && (want == len(tc.stream) || !strings.Contains(tc.stream[want], `"a"}`)) {
				want = slices.IndexFunc(tc.stream, func(s string) bool { return strings.Contains(s, `"a"}`) }) // the live view needs text
			}
			if shown != want {
				t.Errorf("the live view has the first token in event %d, want %d", shown, want)
			}
		})
	}
}

// Nothing after [DONE] belongs to the answer.
func TestJunkAfterDone(t *testing.T) {
	for _, junk := range []string{"oops", `{"choices":[{"text":"b"}]}`, `{"error":{"message":"late"}}`, "[DONE]", ""} {
		rec := read(vllm, []byte("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\ndata: "+junk+"\n\n"))
		if rec.Failure != nil || len(rec.Events) != 1 {
			t.Errorf("%q after the end: %v, %d events", junk, rec.Failure, len(rec.Events))
		}
	}
}
