package backend

import (
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// A server with --enable-metrics reports detailed timings, a server without only the total. Implausible timings are
// dropped.
func TestSGLangTimes(t *testing.T) {
	const ms = time.Millisecond
	for meta, want := range map[string]tacho.ServerTimes{
		`"e2e_latency":0.5`: {Total: 500 * ms},
		`"e2e_latency":0.5,"queue_time":0.125,"forward_entry_time":1000.25,"prefill_finished_time":1000.5`: {Total: 500 * ms, Queue: 125 * ms, Prefill: 250 * ms},
		`"e2e_latency":0.5,"queue_time":null,"forward_entry_time":1000.25,"prefill_finished_time":0`:       {Total: 500 * ms},
		`"e2e_latency":0.5,"queue_time":-3,"forward_entry_time":1000.25,"prefill_finished_time":1000.125`:  {Total: 500 * ms},
		`"queue_time":0.125,"forward_entry_time":1000.25`:                                                  {},
	} {
		var c chunk
		d := &sglangDecoder{}
		must.Do(t, d.decode([]byte(`{"text":"a","meta_info":{"finish_reason":{"type":"length"},`+meta+`}}`), &c))
		if c.times != want || c.timed != (want != tacho.ServerTimes{}) {
			t.Errorf("%s: %+v, want %+v", meta, c.times, want)
		}
	}
}
