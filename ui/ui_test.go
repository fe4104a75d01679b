package ui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tacho/archive"
	"tacho/internal/memnet"
	"tacho/metric"
	"tacho/outcome"
	"tacho/report/page"
	"tacho/store"
	"tacho/ui"
)

// ask asks a server, and says what came.
func ask(t testing.TB, server *httptest.Server, method, path, body string, header map[string]string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	check(t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Host = header["Host"]
	answer, err := http.DefaultTransport.RoundTrip(r) // without following anything
	check(t, err)
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	check(t, err)
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "frame-ancestors") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s is sent with the policy %q", path, policy)
	}
	return answer.StatusCode, string(b)
}

// items are what the list has, by the names of runs.
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

// word is what the page knows, and must say to change anything.
func word(t testing.TB, server *httptest.Server) map[string]string {
	t.Helper()
	_, body := ask(t, server, "GET", "/", "", nil)
	found := regexp.MustCompile(`"token":"(\w+)"`).FindStringSubmatch(body)
	if found == nil {
		t.Fatal("the page has no token")
	}
	return map[string]string{"X-Tacho-Token": found[1]}
}

func TestList(t *testing.T) {
	folder := t.TempDir()
	whole := filepath.Base(keep(t, folder, kept{label: "whole", model: "llama", levels: 2}))
	cut := filepath.Base(keep(t, folder, kept{label: "cut", cut: true}))
	dir := keep(t, folder, kept{label: "running", cut: true})
	runs(t, dir, snapshot(3, "fine"))
	damaged := filepath.Join(folder, "damaged")
	check(t, os.Mkdir(damaged, 0o700))
	check(t, os.WriteFile(filepath.Join(damaged, store.ManifestFile), []byte("{"), 0o600))
	check(t, os.CopyFS(filepath.Join(folder, "seeds"), os.DirFS("../testdata/seeds")))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	for place, want := range map[string]ui.State{whole: ui.Over, cut: ui.Cut, filepath.Base(dir): ui.Running, "seeds/000_902df92d1b3a4732.txt": ui.Result} {
		if got := all[place]; got.State != want || got.Problem != "" {
			t.Errorf("%s is %q (%s), want %q", place, got.State, got.Problem, want)
		}
	}
	if it := all["damaged"]; it.Problem == "" {
		t.Error("nothing is said of the damaged run")
	}
	it := all[whole]
	if it.Levels != 2 || it.Totals.Requests != 240 || it.Best == nil || it.Best.Level != "--request-rate 20" || it.About.Model != "llama" || len(it.Answer) == 0 {
		t.Errorf("%+v", it)
	}
	// Pages: of a kept run, of one that was cut, and of somebody's results together.
	for _, query := range []string{"run=" + it.ID, "run=" + all[cut].ID, "run=" + all["seeds/000_902df92d1b3a4732.txt"].ID + "&run=" + all["seeds/001_8b5b9f497242493f.txt"].ID} {
		if status, body := ask(t, server, "GET", "/page?"+query, "", nil); status != http.StatusOK || !strings.Contains(body, `id="data"`) {
			t.Errorf("%s: %d %.200s", query, status, body)
		}
	}
	// What has changed is seen at once.
	check(t, os.RemoveAll(filepath.Join(folder, whole)))
	if _, still := items(t, server)[whole]; still {
		t.Error("what was deleted is still there")
	}
}

func TestCompare(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Base(keep(t, folder, kept{label: "a"})), filepath.Base(keep(t, folder, kept{label: "b", slow: 5 * ms}))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	status, body := ask(t, server, "GET", "/api/compare?run="+all[a].ID+"&run="+all[b].ID, "", nil)
	var c struct {
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
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK || len(c.Levels) != 1 {
		t.Fatalf("%d %v %.300s", status, err, body)
	}
	for _, row := range c.Levels[0].Rows {
		if row.Name == "tpot.mean" && (row.Deltas[1].Verdict != "no test" || // the gaps do not vary
			row.Deltas[1].Difference < 4.9 || row.Deltas[1].Difference > 5.1) {
			t.Errorf("5 ms more in each gap are %+v", row.Deltas[1])
		}
	}
	if status, _ := ask(t, server, "GET", "/api/compare?run="+all[a].ID, "", nil); status == http.StatusOK {
		t.Error("one run is compared with nothing")
	}
}

// Runs of other loads can be looked at side by side; which loads they have is told.
func TestCompareWithoutACommonLevel(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Base(keep(t, folder, kept{label: "a"})), filepath.Base(keep(t, folder, kept{label: "b", rate: 3}))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	status, body := ask(t, server, "GET", "/api/compare?run="+all[a].ID+"&run="+all[b].ID, "", nil)
	var c struct {
		Levels    []struct{}
		Unmatched []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK || len(c.Levels) != 0 || len(c.Unmatched) != 2 {
		t.Errorf("%d %v %.300s", status, err, body)
	}
}

// The page that a run wrote is served only where it is ours to the byte; whatever
// else is in its place is never sent.
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
		check(t, os.WriteFile(filepath.Join(dir, store.PageFile), []byte(text), 0o600))
		if _, got := ask(t, serve(t, ui.Options{Dir: folder}), "GET", path, "", nil); got != want {
			t.Errorf("of %.60q... it sends %.60q", text[max(0, len(text)-60):], got[max(0, len(got)-60):])
		}
	}
}

func TestStrangersAreKeptOut(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "a"})
	secret := filepath.Join(filepath.Dir(folder), "outside.txt")
	check(t, os.WriteFile(secret, []byte("secret"), 0o600))
	server := serve(t, ui.Options{Dir: folder})
	id, own := items(t, server)[filepath.Base(dir)].ID, word(t, server)
	change := `{"run":"` + id + `","note":"x"}`
	with := func(name, value string) map[string]string { return map[string]string{name: value} }
	both := func(name, value string) map[string]string {
		return map[string]string{name: value, "X-Tacho-Token": own["X-Tacho-Token"]}
	}
	encoded := func(path string) string { return base64.RawURLEncoding.EncodeToString([]byte(path)) }
	for _, c := range []struct {
		what, method, path, body string
		header                   map[string]string
		want                     int
	}{
		{"another name", "GET", "/", "", with("Host", "evil.example"), http.StatusMisdirectedRequest},
		{"another name with our port", "GET", "/api/runs", "", with("Host", "evil.example:8765"), http.StatusMisdirectedRequest},
		{"a name that begins as ours", "GET", "/", "", with("Host", "localhost.evil.example"), http.StatusMisdirectedRequest},
		{"our names", "GET", "/", "", with("Host", "localhost:1"), http.StatusOK},
		{"our address", "GET", "/", "", with("Host", "[::1]:1"), http.StatusOK},
		{"a change without the word", "POST", "/api/notes", change, nil, http.StatusForbidden},
		{"a wrong word", "POST", "/api/delete", change, with("X-Tacho-Token", "guess"), http.StatusForbidden},
		{"a change from another page", "POST", "/api/delete", change, both("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"a change by reading", "GET", "/api/delete?run=" + id, "", own, http.StatusMethodNotAllowed},
		{"a path", "GET", "/page?run=../outside.txt", "", nil, http.StatusNotFound},
		{"a path in our writing", "GET", "/page?run=" + encoded("../outside.txt"), "", nil, http.StatusNotFound},
		{"a path to delete", "POST", "/api/delete", `{"run":"` + encoded("..") + `"}`, own, http.StatusNotFound},
		{"the folder itself", "POST", "/api/delete", `{"run":"` + encoded(".") + `"}`, own, http.StatusNotFound},
		{"a file", "GET", "/etc/passwd", "", nil, http.StatusNotFound},
		{"a file further up", "GET", "/../../etc/passwd", "", nil, http.StatusTemporaryRedirect}, // to the one above
		{"too much", "POST", "/api/notes", `{"note":"` + strings.Repeat("x", 1<<20), own, http.StatusBadRequest},
		{"too many runs", "GET", "/page?" + strings.Repeat("run="+id+"&", 13), "", nil, http.StatusBadRequest},
		{"our own", "POST", "/api/notes", change, both("Sec-Fetch-Site", "same-origin"), http.StatusOK},
	} {
		status, body := ask(t, server, c.method, c.path, c.body, c.header)
		if status != c.want || strings.Contains(body, "secret") {
			t.Errorf("%s: %d, want %d: %.100s", c.what, status, c.want, body)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the run is gone:", err)
	}
}

func TestToken(t *testing.T) {
	server := serve(t, ui.Options{Dir: t.TempDir(), Token: "sixteen characters"})
	for path, want := range map[string]int{"/": 401, "/api/runs": 401, "/api/events": 401, "/?token=guess": 401, "/api/runs?token=sixteen+characters": 401, "/?token=sixteen+characters": 303} {
		if status, _ := ask(t, server, "GET", path, "", nil); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	for _, header := range []map[string]string{{"Authorization": "Bearer sixteen characters"}, {"Cookie": `tacho-token="sixteen characters"`}} {
		if status, body := ask(t, server, "GET", "/api/runs", "", header); status != http.StatusOK {
			t.Errorf("%v: %d %s", header, status, body)
		}
	}
}

func TestNotesAndDelete(t *testing.T) {
	folder := t.TempDir()
	dir, running := keep(t, folder, kept{label: "a"}), keep(t, folder, kept{label: "b", cut: true})
	runs(t, running, snapshot(1, ""))
	server := serve(t, ui.Options{Dir: folder})
	own, all := word(t, server), items(t, server)
	id := all[filepath.Base(dir)].ID
	ask(t, server, "POST", "/api/notes", `{"run":"`+id+`","note":"before the new driver","tags":["good","good"," a  b ","`+strings.Repeat("x", 99)+`"]}`, own)
	it := items(t, server)[filepath.Base(dir)]
	if it.Notes.Text != "before the new driver" || strings.Join(it.Notes.Tags, ",") != "good,a-b" {
		t.Errorf("kept are %+v", it.Notes)
	}
	if status, _ := ask(t, server, "POST", "/api/delete", `{"run":"`+all[filepath.Base(running)].ID+`"}`, own); status != http.StatusConflict {
		t.Errorf("a run that goes on is deleted: %d", status)
	}
	if status, body := ask(t, server, "POST", "/api/delete", `{"run":"`+id+`"}`, own); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("it is still there:", err)
	}
}

// Links and pipes in a run lead nowhere.
func TestNoPlainFiles(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "a"})
	outside := filepath.Join(t.TempDir(), "page.html")
	check(t, os.WriteFile(outside, []byte("secret"), 0o600))
	check(t, os.Symlink(outside, filepath.Join(dir, store.PageFile)))
	server := serve(t, ui.Options{Dir: folder})
	it := items(t, server)[filepath.Base(dir)]
	if !strings.Contains(it.Problem, "no plain file") {
		t.Errorf("a link is taken for a file: %q", it.Problem)
	}
	if status, body := ask(t, server, "GET", "/page?run="+it.ID, "", nil); status == http.StatusOK || strings.Contains(body, "secret") {
		t.Errorf("%d %.100s", status, body)
	}
}

// A browser is told how a run stands, and that it was cut short when it has been
// silent for 20 s.
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
			t.Fatalf("it never says %q: %v", want, lines.Err())
		}
		until("event: runs")
		until(`"state":"running"`)
		until("event: live")
		until(`"at_s":3,`)
		runs(t, dir, snapshot(4, "fine"))
		until(`"at_s":4,`)
		last := time.Now()
		check(t, os.Chtimes(filepath.Join(dir, store.LiveFile), last, last)) // and no other is written
		until(`"state":"cut short"`)
		if silent := time.Since(last); silent != 20*time.Second {
			t.Errorf("it was cut short after %v", silent)
		}
	})
}

// An empty folder is told as an empty list, so that the page can say how to begin.
func TestEventsOfAnEmptyFolder(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		lines := watch(t, ui.Options{Dir: folder, Host: ui.Loopback})
		var said []string
		for len(said) < 2 && lines.Scan() {
			said = append(said, lines.Text())
		}
		if got := strings.Join(said, "|"); got != "event: runs|data: []" {
			t.Errorf("it says %q", got)
		}
	})
}

// watch is the stream of events of a server, over a network in memory.
func watch(t *testing.T, o ui.Options) *bufio.Scanner {
	t.Helper()
	handler, err := ui.New(o)
	check(t, err)
	network := memnet.Listen()
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(network) }()
	t.Cleanup(func() { _ = server.Close() })
	transport := &http.Transport{DialContext: network.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // in virtual time: ends a test that waits for an event in vain
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/events", nil)
	check(t, err)
	answer, err := transport.RoundTrip(r)
	check(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

// A run whose file of records was cut is INVALID in the list, on its page and in a
// comparison, though its summary and its page were written when it was whole.
func TestLackingRecords(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "cut"})
	var html bytes.Buffer
	run, err := archive.Open(dir, nil)
	check(t, err)
	check(t, page.Write(&html, []outcome.Run{*run}, nil))
	check(t, os.WriteFile(filepath.Join(dir, store.PageFile), html.Bytes(), 0o600))
	server := serve(t, ui.Options{Dir: folder})
	before := items(t, server)[filepath.Base(dir)]
	if before.Verdict == string(metric.Invalid) || before.Totals.Requests != 120 {
		t.Fatalf("before: %+v", before)
	}
	path := filepath.Join(dir, store.RecordsFile)
	b, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, bytes.Join(bytes.SplitAfter(b, []byte("\n"))[:60], nil), 0o600))
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
