package ui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/store"
)

// ask sends a request and returns the status and the body of the response. The request
// has the token, unless the header says otherwise.
func ask(t testing.TB, server *httptest.Server, method, path, body string, header map[string]string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Host = header["Host"]
	answer, err := http.DefaultTransport.RoundTrip(r) // without following redirects
	must.Do(t, err)
	defer func() { _ = answer.Body.Close() }()
	b := must.Get(io.ReadAll(answer.Body))(t)
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "frame-ancestors") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s is sent with the policy %q", path, policy)
	}
	return answer.StatusCode, string(b)
}

// items returns the list of runs by path.
func items(t testing.TB, server *httptest.Server) map[string]ui.Item {
	t.Helper()
	status, body := ask(t, server, "GET", "/api/runs", "", nil)
	var list []ui.Item
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	out := map[string]ui.Item{}
	for _, it := range list {
		out[it.Place] = it
	}
	return out
}

func TestList(t *testing.T) {
	folder := t.TempDir()
	whole := filepath.Base(keep(t, folder, kept{label: "whole", model: "llama", levels: 2}))
	cut := filepath.Base(keep(t, folder, kept{label: "cut", cut: true}))
	dir := keep(t, folder, kept{label: "running", cut: true})
	runs(t, dir, snapshot(3, "fine"))
	damaged := filepath.Join(folder, "damaged")
	must.Do(t, os.Mkdir(damaged, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(damaged, store.ManifestFile), []byte("{"), 0o600))
	must.Do(t, os.CopyFS(filepath.Join(folder, "seeds"), os.DirFS("../../testdata/seeds")))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	for place, want := range map[string]ui.State{whole: ui.Over, cut: ui.Cut, filepath.Base(dir): ui.Running, "seeds/000_902df92d1b3a4732.txt": ui.Result} {
		if got := all[place]; got.State != want || got.Problem != "" {
			t.Errorf("%s is %q (%s), want %q", place, got.State, got.Problem, want)
		}
	}
	if it := all["damaged"]; it.Problem == "" {
		t.Error("the damaged run has no problem")
	}
	it := all[whole]
	if it.Load != "10 to 20 req/s" || it.About.Dataset != "random" || len(it.Curve) != 2 || it.Curve[0].Load != "10 req/s" || it.Curve[0].Best || !it.Curve[1].Best || it.Curve[1].TTFTP99 == nil || it.Best.TPOTP99 == nil {
		t.Errorf("load and curve: %q %+v", it.Load, it.Curve)
	}
	if it.Levels != 2 || it.Totals.Requests != 240 || it.Best == nil || it.Best.Level != "--request-rate 20" || it.About.Model != "llama" || len(it.Answer) == 0 {
		t.Errorf("%+v", it)
	}
	// Reports of a finished run, of a run that was cut short, and of two results of another tool.
	for _, query := range []string{"run=" + it.ID, "run=" + all[cut].ID, "run=" + all["seeds/000_902df92d1b3a4732.txt"].ID + "&run=" + all["seeds/001_8b5b9f497242493f.txt"].ID} {
		if status, body := ask(t, server, "GET", "/page?"+query, "", nil); status != http.StatusOK || !strings.Contains(body, `id="data"`) {
			t.Errorf("%s: %d %.200s", query, status, body)
		}
	}
	// A deleted run disappears from the list.
	must.Do(t, os.RemoveAll(filepath.Join(folder, whole)))
	if _, still := items(t, server)[whole]; still {
		t.Error("the deleted run is still listed")
	}
}

// An INVALID level is never the source of the columns, and the list says how many levels are INVALID and which runs are simulated.
func TestListOfMixedVerdicts(t *testing.T) {
	folder := t.TempDir()
	mixed := keep(t, folder, kept{label: "mixed", levels: 3, failing: 3, sim: "vllm-8b-h100"})
	all := keep(t, folder, kept{label: "all", levels: 2, failing: 1})
	now := keep(t, folder, kept{label: "now", cut: true, sim: "vllm-8b-h100"})
	list := items(t, serve(t, ui.Options{Dir: folder}))
	it := list[filepath.Base(mixed)]
	if it.Invalid != 1 || it.Levels != 3 || !it.Simulated || it.Best == nil || it.Best.Level != "--request-rate 20" {
		t.Errorf("one of three levels is INVALID: %+v with %+v", it, it.Best)
	}
	for i, p := range it.Curve {
		if p.Invalid != (i == 2) || p.Best != (i == 1) {
			t.Errorf("point %d: %+v", i, p)
		}
	}
	if it := list[filepath.Base(all)]; it.Invalid != 2 || it.Simulated || it.Verdict != string(metric.Invalid) || it.Best != nil {
		t.Errorf("all levels are INVALID: %+v with %+v", it, it.Best)
	}
	if !list[filepath.Base(now)].Simulated {
		t.Error("a simulated run without a result is not marked")
	}
}

func TestCompare(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Base(keep(t, folder, kept{label: "a"})), filepath.Base(keep(t, folder, kept{label: "b", slow: 5 * ms}))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	status, body := ask(t, server, "GET", "/api/compare?run="+all[a].ID+"&run="+all[b].ID, "", nil)
	var c struct {
		Comparison struct {
			Levels []struct {
				Rows []struct {
					Name   string
					Deltas []*struct {
						Difference float64
						Verdict    string
					}
				}
			}
		}
		Conclusions, Loads []string
		Titles             map[string]string
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK || len(c.Comparison.Levels) != 1 {
		t.Fatalf("%d %v %.300s", status, err, body)
	}
	if len(c.Conclusions) != 1 || !strings.Contains(c.Conclusions[0], "b is worse than a in ") || c.Titles["ttft.p99"] != "TTFT p99" || strings.Join(c.Loads, ",") != "10 req/s" {
		t.Errorf("%q %q %v", c.Conclusions, c.Loads, c.Titles)
	}
	for _, row := range c.Comparison.Levels[0].Rows {
		if row.Name == "tpot.mean" && (row.Deltas[1].Verdict != "no test" || // the gaps do not vary
			row.Deltas[1].Difference < 4.9 || row.Deltas[1].Difference > 5.1) {
			t.Errorf("gaps longer by 5 ms: %+v", row.Deltas[1])
		}
	}
	if status, _ := ask(t, server, "GET", "/api/compare?run="+all[a].ID, "", nil); status == http.StatusOK {
		t.Error("a comparison of one run succeeded")
	}
}

// Runs without a common load can still be shown side by side, with their unmatched
// levels.
func TestCompareWithoutACommonLevel(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Base(keep(t, folder, kept{label: "a"})), filepath.Base(keep(t, folder, kept{label: "b", rate: 3}))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	status, body := ask(t, server, "GET", "/api/compare?run="+all[a].ID+"&run="+all[b].ID, "", nil)
	var c struct {
		Comparison struct {
			Levels    []struct{}
			Unmatched []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK || len(c.Comparison.Levels) != 0 || len(c.Comparison.Unmatched) != 2 {
		t.Errorf("%d %v %.300s", status, err, body)
	}
}

// A report file is served only if it equals a page of this program except for its data.
// Any other file is ignored.
func TestOnlyOurOwnPages(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "a"})
	server := serve(t, ui.Options{Dir: folder})
	path := "/page?run=" + items(t, server)[filepath.Base(dir)].ID
	_, made := ask(t, server, "GET", path, "", nil)
	ours := strings.Replace(made, `"runs":[`, `"ours":1,"runs":[`, 1)
	for text, want := range map[string]string{
		ours: ours,
		strings.Replace(ours, `"ours":1`, `"ours":"</script><script>alert(1)</script>"`, 1): made,
		ours + "<script>alert(1)</script>":                                                  made,
		"<script>alert(1)</script>":                                                         made,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, store.PageFile), []byte(text), 0o600))
		if _, got := ask(t, serve(t, ui.Options{Dir: folder}), "GET", path, "", nil); got != want {
			t.Errorf("of %.60q... it sends %.60q", text[max(0, len(text)-60):], got[max(0, len(got)-60):])
		}
	}
}

// A browser receives the state of a running run. A run without updates for 20 s is cut
// short.
func TestEvents(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "a", cut: true})
	synctest.Test(t, func(t *testing.T) {
		runs(t, dir, snapshot(3, "fine"))
		lines := watch(t, ui.Options{Dir: folder, Host: ui.Loopback})
		until := func(want string) {
			t.Helper()
			for lines.Scan() {
				if strings.Contains(lines.Text(), want) {
					return
				}
			}
			t.Fatalf("no event with %q: %v", want, lines.Err())
		}
		until("event: runs")
		until(`"state":"running"`)
		until("event: live")
		until(`"at_s":3,`)
		runs(t, dir, snapshot(4, "fine"))
		until(`"at_s":4,`)
		last := time.Now()
		must.Do(t, os.Chtimes(filepath.Join(dir, store.LiveFile), last, last)) // the last update
		until(`"state":"cut short"`)
		if silent := time.Since(last); silent != 20*time.Second {
			t.Errorf("cut short after %v, want 20 s", silent)
		}
	})
}

// An empty folder is sent as an empty list, so that the page can explain how to start.
func TestEventsOfAnEmptyFolder(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		lines := watch(t, ui.Options{Dir: folder, Host: ui.Loopback})
		var said []string
		for len(said) < 2 && lines.Scan() {
			said = append(said, lines.Text())
		}
		if got := strings.Join(said, "|"); got != "event: runs|data: []" {
			t.Errorf("events are %q", got)
		}
	})
}

// watch returns the event stream of a server over an in-memory network.
func watch(t *testing.T, o ui.Options) *bufio.Scanner {
	t.Helper()
	o.Token = token
	handler := must.Get(ui.New(o))(t)
	network := memnet.Listen()
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(network) }()
	t.Cleanup(func() { _ = server.Close() })
	transport := &http.Transport{DialContext: network.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // virtual time; ends a test whose event never arrives
	t.Cleanup(cancel)
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/events", nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := transport.RoundTrip(r)
	must.Do(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

// A run whose records file was truncated is INVALID in the list, in its report and in a
// comparison, even though its summary and its report were written before.
func TestLackingRecords(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "cut"})
	var html bytes.Buffer
	run := must.Get(archive.Open(dir, nil))(t)
	must.Do(t, page.Write(&html, []outcome.Run{*run}, nil))
	must.Do(t, os.WriteFile(filepath.Join(dir, store.PageFile), html.Bytes(), 0o600))
	server := serve(t, ui.Options{Dir: folder})
	before := items(t, server)[filepath.Base(dir)]
	if before.Verdict == string(metric.Invalid) || before.Totals.Requests != 120 {
		t.Fatalf("before: %+v", before)
	}
	path := filepath.Join(dir, store.RecordsFile)
	b := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, bytes.Join(bytes.SplitAfter(b, []byte("\n"))[:60], nil), 0o600))
	it := items(t, server)[filepath.Base(dir)]
	if it.Verdict != string(metric.Invalid) || it.Totals.Requests != 60 {
		t.Errorf("list: %+v", it)
	}
	for _, path := range []string{"/page?run=" + it.ID, "/api/compare?run=" + it.ID + "&run=" + it.ID} {
		if status, body := ask(t, server, "GET", path, "", nil); status != http.StatusOK || !strings.Contains(body, "INVALID") || strings.HasPrefix(path, "/page") && !strings.Contains(body, "has the records of 60 of 120") {
			t.Errorf("%s: %d %.300s", path, status, body)
		}
	}
}
