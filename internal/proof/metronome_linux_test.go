package proof

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/sim"
)

// platformRoles are available on Linux only.
var platformRoles = map[string]func(args []string) error{"listener": listener, "burst": burst, "metronome": tick}

// A metronome is a server that sends token k of every answer at arrival + TTFT
// + k gaps, with minimal work: one thread and one write per token. If client
// and simulator share a few cores, the simulator is late first, and its bursts
// reveal little about the client.
type metronome struct {
	ttft, gap time.Duration

	epoll, listener, timer int

	lines map[int32]*line
	first []*line // lines whose next token is the first, in due order
	next  []*line // lines whose next token is a later one
	kept  []*sim.Truth
}

// A line is a connection and its current answer.
type line struct {
	fd       int
	in       []byte
	received int64 // kernel timestamp of the request's first byte
	prompt   int
	tokens   int
	due      int64
	truth    *sim.Truth
}

// tick is the role of a metronome. args are time to first token and time
// between tokens. It reports its times like the simulator.
func tick(args []string) error {
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	m := &metronome{lines: map[int32]*line{}}
	var err error
	if m.ttft, err = time.ParseDuration(args[0]); err != nil {
		return err
	}
	if m.gap, err = time.ParseDuration(args[1]); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // unreferenced files are closed by the garbage collector
	m.listener = int(file.Fd())
	if err := unix.SetNonblock(m.listener, true); err != nil {
		return err
	}
	if m.epoll, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	if m.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK); err != nil {
		return err
	}
	if err := errors.Join(m.watch(m.listener), m.watch(m.timer)); err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return m.run()
}

func (m *metronome) watch(fd int) error {
	return unix.EpollCtl(m.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func (m *metronome) run() error {
	events := make([]unix.EpollEvent, 256)
	for {
		wait := -1
		if m.say(64) {
			wait = 0
		}
		n, err := unix.EpollWait(m.epoll, events, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for i := range max(n, 0) {
			switch fd := int(events[i].Fd); fd {
			case m.listener:
				err = m.accept()
			case m.timer:
				_, _ = unix.Read(fd, make([]byte, 8)) // wakeup only
			default:
				err = m.hear(m.lines[events[i].Fd])
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	}
}

func (m *metronome) accept() error {
	for {
		fd, _, err := unix.Accept4(m.listener, unix.SOCK_NONBLOCK)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		m.lines[int32(fd)] = &line{fd: fd}
		err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE),
			m.watch(fd))
		if err != nil {
			return err
		}
	}
}

// hear reads from a line and starts the answer when the request is complete.
func (m *metronome) hear(l *line) error {
	var text [4096]byte
	var control [128]byte
	n, oob, _, _, err := unix.Recvmsg(l.fd, text[:], control[:], 0)
	if errors.Is(err, unix.EAGAIN) {
		return nil
	}
	if err != nil || n == 0 { // the client has closed the connection
		delete(m.lines, int32(l.fd))
		return unix.Close(l.fd)
	}
	if len(l.in) == 0 {
		l.received, _ = stamps(control[:oob])
	}
	l.in = append(l.in, text[:n]...)
	_, body, ok := bytes.Cut(l.in, []byte("\r\n\r\n"))
	if !ok {
		return nil
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(l.in)))
	if err != nil || len(body) < int(req.ContentLength) {
		return err
	}
	l.in = l.in[:0]
	return m.answer(l, req)
}

func (m *metronome) answer(l *line, req *http.Request) error {
	var asked struct {
		Prompt    []int `json:"prompt"`
		MaxTokens int   `json:"max_tokens"`
	}
	if req.URL.Path == "/sim/truth" {
		return m.testify(l)
	}
	if err := json.NewDecoder(req.Body).Decode(&asked); err != nil || asked.MaxTokens == 0 {
		_, err = unix.Write(l.fd, []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
		return err
	}
	now := time.Now().UnixNano()
	l.prompt, l.tokens, l.due = len(asked.Prompt), asked.MaxTokens, cmp.Or(l.received, now)+int64(m.ttft)
	l.truth = &sim.Truth{ID: req.Header.Get("X-Request-Id"), Received: l.received, Arrival: now, Writes: make([]int64, 0, asked.MaxTokens)}
	m.first = append(m.first, l)
	_, err := unix.Write(l.fd, []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"))
	return err
}

// testify reports all times once and closes the connection.
func (m *metronome) testify(l *line) error {
	var b bytes.Buffer
	for _, t := range m.kept {
		if err := json.NewEncoder(&b).Encode(t); err != nil {
			return err
		}
	}
	if err := unix.SetNonblock(l.fd, false); err != nil {
		return err
	}
	out := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", b.Len(), b.Bytes())
	for len(out) > 0 {
		n, err := unix.Write(l.fd, out)
		if err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

var (
	oneToken  = said(`{"object":"text_completion","model":"sim","choices":[{"index":0,"text":" word","finish_reason":null}]}`)
	lastToken = said(`{"object":"text_completion","model":"sim","choices":[{"index":0,"text":" word","finish_reason":"length"}]}`)
)

func said(data string) []byte {
	var b bytes.Buffer
	event(&b, data)
	return b.Bytes()
}

func event(w io.Writer, data string) {
	fmt.Fprintf(w, "%x\r\ndata: %s\n\n\r\n", len(data)+8, data)
}

// say sends up to n due tokens and reports whether there are more. If not, it
// sets the timer to the next token.
func (m *metronome) say(n int) bool {
	for range n {
		queue := &m.first
		if len(m.first) == 0 || len(m.next) > 0 && m.next[0].due < m.first[0].due {
			queue = &m.next
		}
		if len(*queue) == 0 {
			return false
		}
		l := (*queue)[0]
		now := time.Now().UnixNano()
		if left := l.due - now; left > 0 {
			value := unix.NsecToTimespec(left)
			_ = unix.TimerfdSettime(m.timer, 0, &unix.ItimerSpec{Value: value}, nil) // fails for an invalid time only
			return false
		}
		*queue = (*queue)[1:]
		m.sayOne(l, now)
	}
	return true
}

// sayOne sends the next token of an answer. hear detects closed connections.
func (m *metronome) sayOne(l *line, now int64) {
	t := l.truth
	t.Writes = append(t.Writes, now)
	if len(t.Writes) < l.tokens {
		_, _ = unix.Write(l.fd, oneToken)
		l.due += int64(m.gap)
		m.next = append(m.next, l)
		return
	}
	_, _ = unix.Write(l.fd, lastToken)
	t.Status, t.Output = http.StatusOK, l.tokens
	m.kept = append(m.kept, t)
	end := said(fmt.Sprintf(`{"object":"text_completion","model":"sim","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		l.prompt, l.tokens, l.prompt+l.tokens))
	_, _ = unix.Write(l.fd, append(append(end, said("[DONE]")...), "0\r\n\r\n"...))
}

// stamps returns the software timestamp and the number of a sent packet.
func stamps(control []byte) (at int64, id uint32) {
	messages, _ := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPING && len(m.Data) >= 16:
			at = int64(binary.NativeEndian.Uint64(m.Data))*int64(time.Second) + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		case len(m.Data) >= 16: // sock_extended_err
			id = binary.NativeEndian.Uint32(m.Data[12:])
		}
	}
	return at, id
}
