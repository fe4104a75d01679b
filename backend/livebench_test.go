package backend

import (
	"testing"
	"time"
)

// BenchmarkLive measures the cost of the live counter per event.
func BenchmarkLive(b *testing.B) {
	event := []byte(`data: {"id":"cmpl-8f1b2c3d4e5f60718293a4b5c6d7e8f9","object":"text_completion","created":1760000000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}` + "\n\n")
	n, sent := 0, int64(1)
	l := liveCounter{marks: vllm.tokenMarks, sent: &sent, tell: func(k int, _ bool, _ time.Duration) { n += k }}
	for b.Loop() {
		l.feed(event, 5)
	}
	if n == 0 {
		b.Error("no token was seen")
	}
}
