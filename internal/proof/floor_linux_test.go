package proof

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// floorClient is the minimal client that still gets every byte and its
// timestamp: one thread, epoll and recvmsg. It parses only the end of an
// answer.
func floorClient(l load) error { return floor(l, func(int, int) {}, func(int, []byte, []byte) {}) }

// floor calls opens for each opened stream, and hears for all received bytes.
func floor(l load, opens func(fd, i int), hears func(fd int, text, control []byte)) error {
	ep, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	defer unix.Close(ep)
	addr, err := net.ResolveTCPAddr("tcp4", l.addr)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	body := requestBody(l.tokens)
	buf, control := make([]byte, 1<<16), make([]byte, 128)
	events := make([]unix.EpollEvent, 256)
	begin := time.Now()
	for opened, open := 0, 0; opened < l.streams || open > 0; {
		for ; opened < l.streams && time.Since(begin) >= l.at(opened); opened++ {
			if err := openStream(ep, to, floorRequest(l.addr, opened, body), func(fd int) { opens(fd, opened) }); err != nil {
				return err
			}
			open++
		}
		n, err := unix.EpollWait(ep, events, 1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for i := range max(n, 0) {
			fd := int(events[i].Fd)
			k, m, _, _, err := unix.Recvmsg(fd, buf, control, unix.MSG_DONTWAIT)
			if err == unix.EAGAIN {
				continue
			}
			if err != nil || k == 0 {
				return fmt.Errorf("a stream broke: %w", err)
			}
			hears(fd, buf[:k], control[:m])
			if bytes.HasSuffix(buf[:k], []byte("0\r\n\r\n")) {
				_ = unix.Close(fd)
				open--
			}
		}
	}
	return nil
}

func floorRequest(addr string, i int, body string) []byte {
	return fmt.Appendf(nil, "POST /v1/completions HTTP/1.1\r\nHost: %s\r\nX-Request-Id: floor-%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		addr, i, len(body), body)
}

func openStream(ep int, to unix.Sockaddr, request []byte, opens func(fd int)) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE); err != nil {
		return err
	}
	opens(fd)
	if _, err := unix.Write(fd, request); err != nil {
		return err
	}
	return unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// listener is the role of a floor client that keeps the kernel timestamp of
// every event. args are the server's address, the number of streams, tokens per
// stream, and the output file.
func listener(args []string) error {
	streams, _ := strconv.Atoi(args[1])
	tokens, _ := strconv.Atoi(args[2])
	all := make([]received, streams)
	of := map[int]*received{}
	err := floor(load{args[0], streams, tokens, 0}, func(fd, i int) {
		all[i] = received{ID: fmt.Sprintf("floor-%d", i), Sent: time.Now().UnixNano()}
		of[fd] = &all[i]
	}, func(fd int, text, control []byte) {
		at := time.Now().UnixNano()
		if messages, err := unix.ParseSocketControlMessage(control); err == nil && len(messages) > 0 && len(messages[0].Data) >= 16 {
			at = int64(binary.NativeEndian.Uint64(messages[0].Data))*int64(time.Second) + int64(binary.NativeEndian.Uint64(messages[0].Data[8:]))
		}
		for range bytes.Count(text, []byte("data: ")) {
			of[fd].At = append(of[fd].At, at)
		}
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[3], text, 0o600); err != nil {
		return err
	}
	fmt.Println("heard")
	return nil
}

// received contains the timestamps of one stream.
type received struct {
	ID   string
	Sent int64
	At   []int64
}

// listen measures the load of a command with the minimal receiver and compares
// its times with the server's.
func listen(b *testing.B, url string, streams, tokens int) *Seen {
	b.Helper()
	file := b.TempDir() + "/heard"
	c := start(b, "listener", url[len("http://"):], strconv.Itoa(streams), strconv.Itoa(tokens), file)
	c.line()
	text := must.Get(os.ReadFile(file))(b)
	var all []received
	must.Do(b, json.Unmarshal(text, &all))
	recs := make(records, len(all))
	for i, h := range all {
		recs[i] = tacho.Record{ID: h.ID, Timeline: tacho.NewTimeline(time.Duration(h.Sent))}
		recs[i].Sent, recs[i].Clock = time.Duration(h.Sent), tacho.KernelClock
		for _, at := range h.At[:min(tokens, len(h.At))] { // followed by the usage and the end
			recs[i].Events = append(recs[i].Events, tacho.Event{At: time.Duration(at)})
		}
	}
	return against(b, recs, []string{url}, Load{Requests: streams, Tokens: tokens})
}
