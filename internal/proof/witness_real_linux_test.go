//go:build real

package proof

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// An answerPattern configures the answers of the witness.
type answerPattern struct {
	TTFT, Gap time.Duration
	Burst     int           // this many tokens in a row, then a pause of as many gaps
	Together  bool          // one write per burst
	Jitter    float64       // relative variation of gaps
	HoldAt    int           // token before which each answer pauses
	Hold      time.Duration // duration of the pause; overdue tokens follow
	Spin      time.Duration // CPU time before each write
	EndLate   time.Duration // between the last token and the end of the answer
	Nagle     bool
	TLS       bool
	IPv6      bool

	Opening string        // event without text before the first text: "announce", "count" or "role", at once, or "half" for a first token without text
	Beat    time.Duration // between heartbeats, events without text, until the first token
	Beats   bool          // heartbeats also between tokens
	Halves  int           // one token without text after this number of tokens
	Pairs   string        // events with two tokens: "one" in an answer, "once" in the run, "some" or "all"
	Uncount string        // "none": no usage; "zero": a usage of 0 tokens
	Chat    bool
}

// The roles are added before TestMain looks for them.
var _ = addRoles(map[string]func(args []string) error{"witness": witness, "relay": relay, "busy": busyLoop, "churn": churn, "compile": compile})

func addRoles(more map[string]func(args []string) error) (all map[string]func(args []string) error) {
	maps.Copy(platformRoles, more)
	return platformRoles
}

// witness is the role of a server that knows when its tokens were sent: the
// kernel timestamps its segments at the network device. args are an answerPattern and a
// file, which gets one serverRecord per answer when the input ends.
func witness(args []string) error {
	runtime.GOMAXPROCS(1)
	w := &witnessing{}
	if err := json.Unmarshal([]byte(args[0]), &w.answerPattern); err != nil {
		return err
	}
	host := "127.0.0.1"
	if w.answerPattern.IPv6 {
		host = "::1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	var config *tls.Config
	if w.answerPattern.TLS {
		if config, err = selfSigned(); err != nil {
			return err
		}
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c.(*net.TCPConn), config)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	w.answering.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := json.Marshal(w.told)
	return errors.Join(err, os.WriteFile(args[1], b, 0o600))
}

// A serverRecord contains the kernel timestamps of a request: its arrival and the
// departure of its tokens.
type serverRecord struct {
	ID       string
	Received int64
	Left     []int64
	End      int64 // departure of the end of the answer
	Tokens   int
	Writes   []write // one for each of Left
}

// A write holds the server's own times before and after it wrote an event.
type write struct{ Before, After int64 }

type witnessing struct {
	answerPattern answerPattern
	answering     sync.WaitGroup

	paired atomic.Bool // an answer has the only pair

	mu   sync.Mutex
	told []serverRecord
}

func (w *witnessing) serve(tcp *net.TCPConn, config *tls.Config) {
	defer func() { _ = tcp.Close() }() // everything was written
	_ = tcp.SetNoDelay(!w.answerPattern.Nagle)
	s, err := newSworn(tcp)
	if err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		return
	}
	var c net.Conn = s
	if config != nil {
		secure := tls.Server(s, config)
		if secure.Handshake() != nil { // the request follows the handshake
			return
		}
		c = secure
	}
	in := bufio.NewReader(c)
	for {
		s.first = 0
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if w.answer(s, c, req) != nil {
			return
		}
	}
}

// answer sends all tokens of an answer and records their departures.
func (w *witnessing) answer(s *stampedConn, c net.Conn, req *http.Request) error {
	var asked struct {
		MaxTokens  int `json:"max_tokens"`
		ChatTokens int `json:"max_completion_tokens"`
	}
	if req.URL.Path == "/metrics" {
		return w.metrics(c)
	}
	if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
		_, err = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		return err
	}
	n := max(asked.MaxTokens, asked.ChatTokens)
	w.answering.Add(1)
	defer w.answering.Done()
	received := s.first
	out := bufio.NewWriterSize(c, 64<<10)
	say := event
	if req.ProtoMinor == 0 { // the default of proxies
		say = bareEvent
		fmt.Fprint(out, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
	} else {
		fmt.Fprint(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	}
	if err := out.Flush(); err != nil {
		return err
	}
	writes, ends, err := w.tokens(s, out, say, time.Unix(0, received), n)
	if err != nil {
		return err
	}
	time.Sleep(w.answerPattern.EndLate)
	switch w.answerPattern.Uncount {
	case "":
		say(out, fmt.Sprintf(`{"object":"text_completion","model":"sim","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":%d,"total_tokens":%d}}`, n, 4+n))
	case "zero":
		say(out, `{"object":"text_completion","model":"sim","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":0,"total_tokens":4}}`)
	}
	say(out, "[DONE]")
	if req.ProtoMinor > 0 {
		fmt.Fprint(out, "0\r\n\r\n")
	}
	if err := out.Flush(); err != nil {
		return err
	}
	left, err := s.when(append(ends, s.written))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, serverRecord{req.Header.Get("X-Request-Id"), received, left[:len(ends)], left[len(ends)], n, writes})
	if req.ProtoMinor == 0 {
		return io.EOF // the end of the connection is the end of the answer
	}
	return nil
}

// bareEvent writes an event without chunked encoding.
func bareEvent(out io.Writer, data string) { fmt.Fprintf(out, "data: %s\n\n", data) }

// metrics answers with the server's own mean time to first token.
func (w *witnessing) metrics(c io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := time.Duration(0)
	for i := range w.told {
		sum += time.Duration(w.told[i].Writes[0].Before - w.told[i].Received)
	}
	page := fmt.Sprintf("vllm:time_to_first_token_seconds_sum %g\nvllm:time_to_first_token_seconds_count %d\n", sum.Seconds(), len(w.told))
	_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
	return err
}

// event returns the payload of an event with a text.
func (p *answerPattern) event(text, finish string) string {
	if p.Chat {
		return `{"object":"chat.completion.chunk","model":"sim","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":` + finish + `}]}`
	}
	return `{"object":"text_completion","model":"sim","choices":[{"index":0,"text":"` + text + `","finish_reason":` + finish + `}]}`
}

// width returns the number of tokens in event k, if left tokens are left.
func (w *witnessing) width(k, left int) int {
	pair := false
	switch w.answerPattern.Pairs {
	case "one":
		pair = k == 3
	case "once":
		pair = k == 3 && w.paired.CompareAndSwap(false, true)
	case "some":
		pair = k%3 == 1
	case "all":
		pair = true
	}
	if pair && left > 1 {
		return 2
	}
	return 1
}

// open sends the events before the first token, and waits for the token.
func (w *witnessing) open(out *bufio.Writer, say func(io.Writer, string), due time.Time) error {
	p := &w.answerPattern
	switch p.Opening {
	case "announce":
		say(out, p.event("", "null"))
	case "count":
		say(out, strings.TrimSuffix(p.event("", "null"), "}")+`,"usage":{"prompt_tokens":4,"completion_tokens":1,"total_tokens":5}}`)
	case "role":
		say(out, `{"object":"chat.completion.chunk","model":"sim","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return w.beat(out, say, due)
}

// beat waits, and sends heartbeats in the meantime.
func (w *witnessing) beat(out *bufio.Writer, say func(io.Writer, string), due time.Time) error {
	p := &w.answerPattern
	for p.Beat > 0 && time.Until(due) > p.Beat {
		time.Sleep(p.Beat)
		say(out, p.event("", "null"))
		if err := out.Flush(); err != nil {
			return err
		}
	}
	time.Sleep(time.Until(due))
	return nil
}

// tokens sends n tokens as configured. It returns the times of the events with tokens, and their end positions
// in the stream.
func (w *witnessing) tokens(s *stampedConn, out *bufio.Writer, say func(io.Writer, string), begun time.Time, n int) (writes []write, ends []uint64, err error) {
	p := &w.answerPattern
	random := mathrand.New(mathrand.NewPCG(uint64(begun.UnixNano()), 0))
	late := time.Duration(0)
	for i, k := 0, 0; i < n; k++ {
		if p.Hold > 0 && i == p.HoldAt {
			late = p.Hold
		}
		group := k / max(p.Burst, 1) * max(p.Burst, 1)
		due := p.TTFT + time.Duration(group)*p.Gap
		if i > 0 {
			due += time.Duration(p.Jitter * (random.Float64() - 0.5) * float64(p.Gap))
		}
		if late > 0 {
			due = max(due, late+p.TTFT+time.Duration(p.HoldAt)*p.Gap)
		}
		switch at := begun.Add(due); {
		case i == 0:
			err = w.open(out, say, at)
		case p.Beats:
			err = w.beat(out, say, at)
		default:
			time.Sleep(time.Until(at))
		}
		if err != nil {
			return nil, nil, err
		}
		for end := time.Now().Add(p.Spin); time.Now().Before(end); {
		}
		width := w.width(k, n-i)
		i += width
		text, finish := strings.Repeat(" word", width), "null"
		if k == 0 && p.Opening == "half" || p.Halves > 0 && k%p.Halves == p.Halves-1 {
			text = ""
		}
		if i == n {
			text, finish = strings.Repeat(" word", width), `"length"`
		}
		say(out, p.event(text, finish))
		last := i == n || (k+1)%max(p.Burst, 1) == 0
		if p.Together && !last {
			ends, writes = append(ends, 0), append(writes, write{})
			continue
		}
		before := time.Now().UnixNano()
		if err := out.Flush(); err != nil {
			return nil, nil, err
		}
		ends, writes = append(ends, s.written), append(writes, write{before, time.Now().UnixNano()})
		for k := len(ends) - 2; k >= 0 && ends[k] == 0; k-- {
			ends[k], writes[k] = s.written, writes[len(writes)-1]
		}
		if k%16 == 15 {
			s.testify()
		}
	}
	return writes, ends, nil
}

// A stampedConn is a connection with kernel timestamps of bytes read and written.
type stampedConn struct {
	*net.TCPConn
	raw     interface{ Control(func(uintptr)) error }
	reading interface {
		Read(func(uintptr) bool) error
	}
	first   int64 // kernel timestamp of the first bytes read since it was set to 0
	written uint64
	stamps  []departure
}

// A departure is the departure time of a stream position.
type departure struct {
	end uint64
	at  int64
}

func newSworn(tcp *net.TCPConn) (*stampedConn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &stampedConn{TCPConn: tcp, raw: raw, reading: raw}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_SOFTWARE|
			unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_TX_SOFTWARE|unix.SOF_TIMESTAMPING_OPT_ID|unix.SOF_TIMESTAMPING_OPT_TSONLY)
	})
	return s, errors.Join(err, set)
}

func (s *stampedConn) Read(p []byte) (n int, err error) {
	var control [256]byte
	var oob int
	again := s.reading.Read(func(fd uintptr) bool {
		n, oob, _, _, err = unix.Recvmsg(int(fd), p, control[:], 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = errors.Join(again, err); err != nil {
		return 0, err
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	if at, _ := stamps(control[:oob]); s.first == 0 {
		s.first = at
	}
	return n, nil
}

func (s *stampedConn) Write(p []byte) (int, error) {
	n, err := s.TCPConn.Write(p)
	s.written += uint64(n)
	return n, err
}

// testify reads new transmit timestamps from the kernel.
func (s *stampedConn) testify() {
	_ = s.raw.Control(func(fd uintptr) {
		var control [256]byte
		for {
			_, oob, _, _, err := unix.Recvmsg(int(fd), nil, control[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			at, id := stamps(control[:oob])
			// The kernel numbers the last byte of a write, in 32 bits.
			end := s.written - uint64(uint32(s.written)-(id+1))
			s.stamps = append(s.stamps, departure{end, at})
		}
	})
}

// when returns the departure time of each position.
func (s *stampedConn) when(ends []uint64) ([]int64, error) {
	missing := func() bool { return len(s.stamps) == 0 || s.stamps[len(s.stamps)-1].end < s.written }
	for until := time.Now().Add(time.Minute); missing() && time.Now().Before(until); time.Sleep(time.Millisecond) {
		s.testify()
	}
	sort.Slice(s.stamps, func(i, k int) bool { return s.stamps[i].end < s.stamps[k].end })
	out := make([]int64, len(ends))
	for i, end := range ends {
		k := sort.Search(len(s.stamps), func(k int) bool { return s.stamps[k].end >= end })
		if k == len(s.stamps) {
			return nil, fmt.Errorf("nobody saw byte %d leave", end)
		}
		out[i] = s.stamps[k].at
	}
	s.stamps = s.stamps[:0]
	return out, nil
}

func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, NextProtos: []string{"http/1.1"}}, nil
}

// readServerRecords reads the output file of a witness.
func readServerRecords(file string) (map[string]serverRecord, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []serverRecord
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&all); err != nil {
		return nil, err
	}
	out := map[string]serverRecord{}
	for _, t := range all {
		out[t.ID] = t
	}
	return out, nil
}
