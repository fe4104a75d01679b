//go:build real

package proof

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// disturbed are runs with an external disturbance: a periodically stopped
// client, a CPU quota, a proxy or a lost agent.
var disturbed = []kind{
	{name: "pulses", of: func(r *rand.Rand, c *trial) {
		c.closed(r, 600)
		c.stops, c.stopFor = 100, millis(r, 20, 80)
	}},
	{name: "short requests", of: func(r *rand.Rand, c *trial) { c.closed(r, 1000) }},
	{name: "short requests, starved", of: func(r *rand.Rand, c *trial) {
		c.closed(r, 600)
		c.busy = between(r, 2, 8)
	}},
	{name: "CPU quota", of: func(r *rand.Rand, c *trial) {
		c.closed(r, 400)
		c.quota = millis(r, 3, 30)
	}},
	{name: "CPU quota, open loop", of: func(r *rand.Rand, c *trial) {
		rate := between(r, 20, 60)
		c.streams, c.tokens, c.answerPattern.TTFT, c.quota = 4*rate, 5, millis(r, 30, 100), millis(r, 5, 40)
		c.flags = []string{"--request-rate", strconv.Itoa(rate)}
	}},
	{name: "nginx", needs: "nginx", proxy: true, of: func(r *rand.Rand, c *trial) { c.proxy, c.streams = streaming, between(r, 20, 100) }, wrong: healthy},
	{name: "nginx, HTTP/2", needs: "nginx", proxy: true, of: func(r *rand.Rand, c *trial) {
		c.proxy, c.http2, c.streams = streaming, true, between(r, 20, 100)
	}, wrong: healthy},
	{name: "nginx that buffers", needs: "nginx", of: func(r *rand.Rand, c *trial) { c.proxy, c.streams = asInstalled, between(r, 20, 100) }, wrong: mustSay("INVALID", "buffered")},
	{name: "nginx that buffers, HTTP/2", needs: "nginx", of: func(r *rand.Rand, c *trial) {
		c.proxy, c.http2, c.streams = asInstalled, true, between(r, 20, 100)
	}, wrong: mustSay("INVALID", "buffered")},
	{name: "lost agent", of: func(r *rand.Rand, c *trial) {
		c.lose(r)
	}, wrong: notValid},
	{name: "lost agent, share kept", of: func(r *rand.Rand, c *trial) {
		c.lose(r)
		c.flags = append(c.flags, "--on-loss", "keep")
	}, wrong: notValid},
}

// Buffering modes of nginx: off, or nginx's default.
const (
	streaming   = `proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;`
	asInstalled = "# it asks by HTTP/1.0 and buffers\n"
)

// healthy checks a proxy without buffering. Its delay is part of the
// measurement, so times are not compared with the server's.
func healthy(o observation) string {
	if o.word == "INVALID" || strings.Contains(o.said, "buffered") || o.missing > 0 {
		return "nothing was wrong; "
	}
	return ""
}

// closed configures a closed loop of short requests.
func (c *trial) closed(r *rand.Rand, requests int) {
	limit := between(r, 2, 8)
	c.streams, c.tokens, c.answerPattern.TTFT, c.answerPattern.Gap = requests, between(r, 1, 3), millis(r, 5, 30), 2*time.Millisecond
	c.flags, c.limit = []string{"--max-concurrency", strconv.Itoa(limit)}, limit
}

// lose configures a load of three agents, one of which is killed.
func (c *trial) lose(r *rand.Rand) {
	rate := between(r, 30, 90)
	c.streams, c.tokens, c.answerPattern.TTFT, c.kill = 6*rate, 5, millis(r, 30, 100), true
	c.flags = []string{"--agents", "3", "--local", "--agent-timeout", "2", "--request-rate", strconv.Itoa(rate)}
}

// mustSay checks for a verdict and a reason.
func mustSay(word, code string) func(observation) string {
	return func(o observation) string {
		if o.word != word || !strings.Contains(o.said, code) {
			return fmt.Sprintf("want %s for %s; ", word, code)
		}
		return ""
	}
}

func notValid(o observation) string {
	if o.word == "VALID" {
		return "an agent was killed; "
	}
	return ""
}

// idleMost is the fraction of time in which slots of a VALID closed loop may be
// idle, beyond the turnaround of an undisturbed client. The verdict allows 2 %;
// gaps on the server include the round trip.
const idleMost = 0.03

// idleSlots returns the fraction of time in which slots of a closed loop were
// idle on the server, beyond half a millisecond per request. The test request before the load does not count.
func idleSlots(recs records, truth map[string]serverRecord, limit int) float64 {
	var begins, ends []int64
	for i := range recs {
		if w, ok := truth[recs[i].ID]; ok {
			begins, ends = append(begins, w.Received), append(ends, w.End)
		}
	}
	if limit == 0 || len(begins) <= limit {
		return 0
	}
	slices.Sort(begins)
	slices.Sort(ends)
	idle := time.Duration(0)
	for k, next := range begins[limit:] {
		idle += max(time.Duration(next-ends[k]), 0) - 500*time.Microsecond
	}
	return max(idle, 0).Seconds() / float64(limit) / time.Duration(begins[len(begins)-1]-begins[limit-1]).Seconds()
}

// throttle moves a process to a control group with a CPU quota per 100 ms.
func (c *trial) throttle(t *testing.T, pid int) {
	t.Helper()
	dir := fmt.Sprintf("/sys/fs/cgroup/cpu/tacho-verdict-%d", os.Getpid())
	files := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": strconv.FormatInt(c.quota.Microseconds(), 10), "cgroup.procs": strconv.Itoa(pid)}
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err != nil {
		dir = filepath.Join("/sys/fs/cgroup", filepath.Base(dir))
		files = map[string]string{"cpu.max": strconv.FormatInt(c.quota.Microseconds(), 10) + " 100000", "cgroup.procs": strconv.Itoa(pid)}
	}
	must.Do(t, os.MkdirAll(dir, 0o755))
	t.Cleanup(func() { _ = os.Remove(dir) }) // reused by the next run
	for _, name := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max", "cgroup.procs"} {
		if text, ok := files[name]; ok {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
}

// killOne kills the first agent started by a process, in the middle of the
// load.
func (c *trial) killOne(pid int) {
	time.Sleep(3 * time.Second)                                               // until agents have started and sent for a while
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // each thread has its own file
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // missing if the thread has exited
		for text := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(text); err == nil {
				_ = unix.Kill(child, unix.SIGKILL) // may have exited
				return
			}
		}
	}
}

// nginx starts nginx in front of a server and returns its address.
func (c *trial) nginx(t *testing.T, backend string) string {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatalf("%v: make nginx installs it", err)
	}
	dir := t.TempDir()
	address := freeAddress(t)
	listen := address
	if c.http2 {
		writePair(t, dir)
		listen += " ssl http2"
	}
	conf := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr;
events { worker_connections 8192; }
http { access_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
server { listen %[2]s; ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; keepalive_requests 100000; http2_max_concurrent_streams 1024;
location / { proxy_pass http://%[3]s; %[4]s } } }
`, dir, listen, backend, c.proxy)
	if !c.http2 {
		conf = strings.ReplaceAll(conf, fmt.Sprintf("ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; ", dir), "")
	}
	file := filepath.Join(dir, "nginx.conf")
	must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, "-p", dir, "-c", file)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) } // includes the workers
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() }) // killed
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close() // only checks that nginx listens
			return address
		}
		if unix.Kill(cmd.Process.Pid, 0) != nil {
			t.Fatal("nginx did not start")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freeAddress returns an unused address.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }() // free for nginx
	return l.Addr().String()
}

// writePair writes a certificate and its key.
func writePair(t *testing.T, dir string) {
	t.Helper()
	config := must.Get(selfSigned())(t)
	pair := config.Certificates[0]
	key := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}
