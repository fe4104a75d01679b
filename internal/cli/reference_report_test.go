//go:build vllm

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
)

// Prefixes of request ids, by which the server distinguishes the clients.
const theirPrefix, ourPrefix = "ref-", "our-"

// Reports and result files of both clients with the same arguments and the same
// server have the same lines, keys and counts, and latencies that match the
// server's.
func (ref *reference) reports(t *testing.T) {
	const lengths = " --random-input-len 20 --random-output-len 10 --num-prompts 8"
	for name, tc := range map[string]struct {
		args    string
		fails   int                // every n-th request fails; 0 for none
		page    func(n int) string // metrics page after n requests
		departs []string           // keys with intentionally different values
	}{
		"plain":       {args: lengths},
		"rate":        {args: lengths + " --request-rate 40 --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 25,50,99.9 --goodput ttft:1000 tpot:1000 --metadata a=b c=d=e --label mine"},
		"missed":      {args: lengths + " --goodput e2el:1 --temperature 0 --top-p 0.5"},
		"limit":       {args: lengths + " --max-concurrency 3 --percentile-metrics ttft,client_queue_time,e2el_including_client_queue"},
		"rate, limit": {args: lengths + " --max-concurrency 1 --request-rate 40 --burstiness inf --percentile-metrics e2el,client_queue_time,e2el_including_client_queue"},
		"linear":      {args: lengths + " --ramp-up-strategy linear --ramp-up-start-rps 5 --ramp-up-end-rps 40"},
		"exponential": {args: lengths + " --ramp-up-strategy exponential --ramp-up-start-rps 8 --ramp-up-end-rps 40 --max-concurrency 4"},
		"bursts":      {args: lengths + " --request-rate 40 --burstiness 0.5"},
		"even":        {args: lengths + " --request-rate 40 --burstiness inf"},
		"probes":      {args: lengths + " --request-rate 20 --probe-request-rate 30"},
		"one token":   {args: " --random-input-len 20 --random-output-len 1 --num-prompts 4"},
		"chat":        {args: lengths + " --backend openai-chat --endpoint /v1/chat/completions"},
		"responses":   {args: lengths + " --backend openai-responses --endpoint /v1/responses"},
		"warm":        {args: lengths + " --num-warmups 2 --ready-check-timeout-sec 10"},
		"embeddings":  {args: lengths + " --backend openai-embeddings --endpoint /v1/embeddings --random-batch-size 3 --max-concurrency 2 --percentile-metrics e2el,ttft,client_queue_time --goodput e2el:1000"},
		"pooling":     {args: lengths + " --backend vllm-pooling --endpoint /pooling --request-rate 40 --probe-request-rate 30"},
		"rerank":      {args: lengths + " --backend vllm-rerank --endpoint /v1/rerank --dataset-name random-rerank --random-batch-size 3"},
		"infinity":    {args: lengths + " --backend infinity-embeddings --endpoint /embeddings"},
		"by messages": {args: lengths + " --backend openai-embeddings-chat --endpoint /v1/embeddings"},
		// For audio, the reference counts the unsent text, but the server
		// counts the audio.
		"audio":      {departs: []string{"total_input_tokens", "input_lens"}, args: " --backend openai-audio --endpoint /v1/audio/transcriptions --dataset-name custom_audio --dataset-path " + ref.sounds(t) + " --custom-output-len 5 --num-prompts 2 --disable-shuffle --skip-chat-template"},
		"drafts":     {args: lengths, page: func(n int) string { return drafts(n) }},
		"canvases":   {args: lengths, page: func(n int) string { return drafts(n) + canvases(n) }},
		"failures":   {args: lengths + " --request-rate 40 --goodput ttft:1000", fails: 3},
		"no success": {args: lengths + " --percentile-metrics ttft,tpot,itl,e2el", fails: 1},
		"no vectors": {args: lengths + " --backend openai-embeddings --endpoint /v1/embeddings", fails: 2},
	} {
		t.Run(name, func(t *testing.T) {
			again(t, func() (late []string) {
				server, url := failing(t, tc.fails, tc.page)
				args := append(strings.Fields(tc.args), "--base-url", url, "--model", "tiny", "--save-result", "--save-detailed", "--result-dir", ref.dir)
				ours := measured{text: ref.tacho(t, slices.Concat(args, []string{"--result-filename", "ours.json", "--request-id-prefix", ourPrefix})...)}
				theirs := measured{text: ref.bench(t, slices.Concat(args, []string{"--result-filename", "theirs.json", "--request-id-prefix", theirPrefix})...)}
				ours.read(t, ref.dir, "ours.json")
				theirs.read(t, ref.dir, "theirs.json")
				compareText(t, theirs.text, ours.text, tc.departs)
				compareResults(t, &theirs, &ours, tc.departs)
				ref.compareFormulas(t, &ours)
				return slices.Concat(compareQueues(&theirs, &ours),
					theirs.compareTruth(t, "the reference", server.Truth(), theirPrefix, math.Inf(1)), ours.compareTruth(t, "tacho", server.Truth(), ourPrefix, 5))
			})
		})
	}
	t.Run("appended", ref.appended)
}

// drafts are the counters of a server that drafts three tokens and never
// accepts the second.
func drafts(n int) string {
	return fmt.Sprintf(`vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} %d
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} %d
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} %d
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} %d
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 7
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="2"} %d
`, 5+4*n, 15+12*n, 7+3*n, 2*n, n)
}

// canvases are the counters of a server that writes blocks of 32 tokens.
func canvases(n int) string {
	return fmt.Sprintf(`vllm:diffusion_num_denoising_steps_total{engine="0",model_name="m"} %d
vllm:diffusion_num_canvas_positions_total{engine="0",model_name="m"} %d
vllm:diffusion_num_committed_tokens_total{engine="0",model_name="m"} %d
`, 9*n, 9*32*n, 2*32*n)
}

// failing is a simulated server that rejects every n-th request by the number
// at the end of its id. It may have its own metrics page.
func failing(t *testing.T, every int, page func(int) string) (*sim.Server, string) {
	t.Helper()
	s := must.Get(sim.New(sim.Options{TTFT: 40 * time.Millisecond, ITL: 10 * time.Millisecond, Model: "tiny"}))(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page != nil && r.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, page(int(asked.Load())))
			return
		}
		id := r.Header.Get("X-Request-Id")
		if id != "" {
			asked.Add(1)
		}
		if n, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:]); every > 0 && err == nil && n%every == every-1 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		otherEndpoints(s).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = s.Close()
	})
	return s, server.URL
}

// sounds writes a dataset of two audio files for custom_audio.
func (ref *reference) sounds(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for i, seconds := range []int{1, 3} {
		path := filepath.Join(ref.dir, strconv.Itoa(i)+".wav")
		writeFile(t, path, string(silence(seconds)))
		lines.WriteString(`{"prompt":"w1 w2","audio":"` + path + `"}` + "\n")
	}
	path := filepath.Join(ref.dir, "sounds.jsonl")
	writeFile(t, path, lines.String())
	return path
}

// silence returns a WAV file with 16 bits at 16 kHz.
func silence(seconds int) []byte {
	const rate = 16_000
	size := uint32(2 * rate * seconds)
	number := func(n uint32, bytes int) []byte {
		return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}[:bytes]
	}
	return slices.Concat([]byte("RIFF"), number(36+size, 4), []byte("WAVEfmt "), number(16, 4), number(1, 2), number(1, 2),
		number(rate, 4), number(2*rate, 4), number(2, 2), number(16, 2), []byte("data"), number(size, 4), make([]byte, size))
}

// measured contains the output and the result file of a client.
type measured struct {
	text   string
	keys   []string
	values map[string]any // numbers in their original spelling
}

// infinity matches Python's Infinity, which is not valid JSON.
var infinity = regexp.MustCompile(`: Infinity\b`)

func (m *measured) read(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatalf("%v\n%s", err, m.text)
	}
	m.parse(t, string(text))
}

func (m *measured) parse(t *testing.T, text string) {
	t.Helper()
	text = infinity.ReplaceAllString(text, `: "Infinity"`)
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&m.values); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	d = json.NewDecoder(strings.NewReader(text))
	must.Get(d.Token())(t)
	for d.More() {
		key := must.Get(d.Token())(t)
		m.keys = append(m.keys, key.(string))
		must.Do(t, d.Decode(new(any)))
	}
}

// number returns a value of the result, or 0.
func (m *measured) number(key string) float64 {
	n, _ := m.values[key].(json.Number)
	f, _ := n.Float64()
	return f
}

// numbers returns an array of the result.
func (m *measured) numbers(key string) []float64 {
	list, _ := m.values[key].([]any)
	out := make([]float64, len(list))
	for i, v := range list {
		n, _ := v.(json.Number)
		out[i], _ = n.Float64()
	}
	return out
}

var (
	block   = regexp.MustCompile(`(?s)=+ Serving Benchmark Result =+\n.*?\n={50}\n`)
	decimal = regexp.MustCompile(`^-?\d+\.\d\d *$`)
)

// compareText checks that both reports have the same lines, and the same counts
// if they do not depend on time.
func compareText(t *testing.T, theirs, ours string, departs []string) {
	t.Helper()
	want, got := strings.Split(block.FindString(theirs), "\n"), strings.Split(block.FindString(ours), "\n")
	if len(want) < 8 {
		t.Fatalf("no report in\n%s", theirs)
	}
	var shapes [2][]string
	for side, lines := range [][]string{want, got} {
		for _, line := range lines {
			const column = 41
			if strings.HasPrefix(line, "Probe requests completed:") || departs != nil && strings.HasPrefix(line, "Total input tokens:") {
				line = line[:column] + "N"
			} else if len(line) > column && decimal.MatchString(line[column:]) {
				// A number that fits its column keeps the line 51 characters
				// wide.
				line = line[:column] + "0.00 of " + strconv.Itoa(max(len(line), 51))
			}
			shapes[side] = append(shapes[side], line)
		}
	}
	if diff := cmp.Diff(shapes[0], shapes[1]); diff != "" {
		t.Errorf("the report (-theirs +ours):\n%s", diff)
	}
}

// byTime matches values that differ between any two runs.
var byTime = regexp.MustCompile(`^(date|duration|.*_ms|.*throughput|request_goodput|ttfts|itls|latencies|start_times|queue_times|max_.*|rtfx|` +
	`probe_completed|generated_texts|errors|rps_change_events)$`)

// compareResults checks that both results have the same keys in the same order
// with the same types, and the same values if they do not depend on time.
func compareResults(t *testing.T, theirs, ours *measured, departs []string) {
	t.Helper()
	if diff := cmp.Diff(theirs.keys, ours.keys); diff != "" {
		t.Errorf("the keys of the result (-theirs +ours):\n%s", diff)
	}
	for _, key := range theirs.keys {
		want, got := theirs.values[key], ours.values[key]
		if w, g := typeOf(want), typeOf(got); w != g {
			t.Errorf("%s is %s, there %s", key, g, w)
		}
		if key != "max_concurrency" && byTime.MatchString(key) {
			continue
		}
		if diff := cmp.Diff(want, got); (diff != "") != slices.Contains(departs, key) {
			t.Errorf("%s, which should differ: %v (-theirs +ours):\n%s", key, slices.Contains(departs, key), diff)
		}
	}
	seconds := func(m *measured) float64 { return math.Round(1e6 * m.number("rtfx") * m.number("duration")) }
	if seconds(theirs) != seconds(ours) {
		t.Errorf("%v us of sound, there %v", seconds(ours), seconds(theirs))
	}
	if diff := cmp.Diff(failed(theirs), failed(ours)); diff != "" {
		t.Errorf("which requests failed (-theirs +ours):\n%s", diff)
	}
	if diff := cmp.Diff(rates(theirs), rates(ours)); diff != "" {
		t.Errorf("the rates that a ramp passed (-theirs +ours):\n%s", diff)
	}
}

// compareQueues compares the queues of both clients. Random arrivals, and
// arrivals that wait for a slot, are not comparable.
func compareQueues(theirs, ours *measured) (late []string) {
	for _, key := range []string{"median_client_queue_time_ms", "median_e2el_including_client_queue_ms"} {
		want, got := theirs.number(key), ours.number(key)
		if theirs.values["burstiness"] == "Infinity" && math.Abs(want-got) > 20+want/10 {
			late = append(late, fmt.Sprintf("%s is %.2f, there %.2f", key, got, want))
		}
	}
	return late
}

// typeOf returns the Python type of a value, and for a list the type of its
// first element.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case json.Number:
		if strings.ContainsAny(v.String(), ".e") {
			return "float"
		}
		return "int"
	case string:
		return "text"
	case []any:
		for _, item := range v {
			if of := typeOf(item); of != "list" { // an empty list has no element type
				return "list of " + of
			}
		}
		return "list"
	}
	return "object"
}

func failed(m *measured) []bool {
	list, _ := m.values["errors"].([]any)
	out := make([]bool, len(list))
	for i, e := range list {
		out[i] = e != ""
	}
	return out
}

func rates(m *measured) (out []any) {
	list, _ := m.values["rps_change_events"].([]any)
	for _, e := range list {
		out = append(out, e.(map[string]any)["rps"])
	}
	return out
}

// compareTruth compares a client's medians with the server's records. A
// tolerance of some milliseconds plus 10 % covers the network and a late
// client. It returns the values beyond the tolerance.
func (m *measured) compareTruth(t *testing.T, who string, truths []sim.Truth, prefix string, offMillis float64) (late []string) {
	t.Helper()
	if len(truths) == 0 {
		return nil // a transcription is recorded
	}
	var ttft, tpot, itl, e2el []float64
	for _, truth := range truths {
		if n := len(truth.Writes); strings.HasPrefix(truth.ID, prefix) && truth.Status == http.StatusOK && n > 0 && !isExtra(truth.ID) {
			ttft = append(ttft, float64(truth.Writes[0]-truth.Arrival)/1e6)
			e2el = append(e2el, float64(truth.Writes[n-1]-truth.Arrival)/1e6)
			if n > 1 {
				tpot = append(tpot, float64(truth.Writes[n-1]-truth.Writes[0])/1e6/float64(n-1))
			}
			for i := 1; i < n; i++ {
				itl = append(itl, float64(truth.Writes[i]-truth.Writes[i-1])/1e6)
			}
		}
	}
	if got := int(m.number("completed")); got != len(ttft) {
		t.Errorf("%s completed %d requests, the server %d", who, got, len(ttft))
	}
	for key, want := range map[string][]float64{"median_ttft_ms": ttft, "median_itl_ms": itl, "median_tpot_ms": tpot, "median_e2el_ms": e2el} {
		if len(want) == 0 || m.values[key] == nil {
			continue
		}
		slices.Sort(want)
		truth, got := want[len(want)/2], m.number(key)
		if math.Abs(got-truth) > offMillis+truth/10 {
			late = append(late, fmt.Sprintf("%s of %s is %.2f, the server's %.2f", key, who, got, truth))
		}
		t.Logf("%-14s %-13s %7.2f, the server's %7.2f", key, who, got, truth)
	}
	return late
}

// isExtra reports whether a request was a warm-up, a probe or similar.
func isExtra(id string) bool {
	return strings.ContainsAny(strings.TrimPrefix(strings.TrimPrefix(id, ourPrefix), theirPrefix), "abcdefghijklmnopqrstuvwxyz")
}

// compareFormulas computes the reference's metrics from tacho's requests and
// compares them.
func (ref *reference) compareFormulas(t *testing.T, m *measured) {
	t.Helper()
	percentiles, goodput := []float64{99}, map[string]float64{}
	if m.values["p25_ttft_ms"] != nil {
		percentiles = []float64{25, 50, 99.9}
	}
	if m.values["request_goodput"] != nil {
		goodput["e2el"] = 1
		if m.number("request_goodput") > 0 {
			goodput["e2el"] = 1e6
		}
	}
	var want map[string]any
	ref.ask(t, map[string]any{"op": "metrics", "result": m.values, "percentiles": percentiles, "goodput": goodput}, &want)
	flat := map[string]float64{}
	for key, v := range want {
		switch v := v.(type) {
		case float64:
			flat[key] = v
		case []any: // percentiles of one latency
			for _, pair := range v {
				p := pair.([]any)
				name := "p" + strconv.FormatFloat(p[0].(float64), 'f', -1, 64) + "_" + strings.TrimPrefix(key, "percentiles_")
				flat[name] = p[1].(float64)
			}
		}
	}
	flat["total_input_tokens"], flat["total_output_tokens"] = flat["total_input"], flat["total_output"]
	maps.Copy(flat, waits(m))
	compared := 0
	for key, w := range flat {
		// A sum of values that the arrays do not contain.
		if m.values[key] == nil || key == "rtfx" || strings.HasPrefix(key, "total_input_seq") || strings.HasPrefix(key, "input_seq") {
			continue
		}
		compared++
		if got := m.number(key); math.Abs(got-w) > 1e-6*(1+math.Abs(w)) {
			t.Errorf("%s is %v; the reference makes %v of the same requests", key, got, w)
		}
	}
	if compared < 6 {
		t.Errorf("only %d numbers compared", compared)
	}
}

// waits returns the means of the sections about the client's queue, by the
// names of the reference.
func waits(m *measured) map[string]float64 {
	queue, whole, n := 0.0, 0.0, 0.0
	latencies := m.numbers("latencies")
	for i, q := range m.numbers("queue_times") {
		if !failed(m)[i] {
			queue, whole, n = queue+1000*q, whole+1000*(q+latencies[i]), n+1
		}
	}
	return map[string]float64{"mean_client_queue_time_ms": queue / n, "mean_e2el_including_client_queue_ms": whole / n}
}

// appended checks the short form of the result, one line per run.
func (ref *reference) appended(t *testing.T) {
	_, url := failing(t, 0, nil)
	args := strings.Fields("--random-input-len 20 --random-output-len 4 --num-prompts 3 --append-result --model tiny --result-filename appended.json --base-url " + url)
	var files [2]string
	for side, bench := range []func(*testing.T, ...string) string{ref.bench, ref.tacho} {
		path := filepath.Join(ref.dir, "appended.json")
		for range 2 {
			bench(t, args...)
		}
		text := must.Get(os.ReadFile(path))(t)
		files[side] = string(text)
		must.Do(t, os.Remove(path))
	}
	theirs, ours := strings.Split(files[0], "\n"), strings.Split(files[1], "\n")
	if len(theirs) != 2 || len(ours) != 2 {
		t.Fatalf("%d lines, there %d", len(ours), len(theirs))
	}
	for i := range theirs {
		var a, b measured
		a.parse(t, theirs[i])
		b.parse(t, ours[i])
		compareResults(t, &a, &b, nil)
	}
}
