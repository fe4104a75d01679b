package ui_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
)

// cookieOf opens the printed address like a browser, and returns the cookie.
func cookieOf(t testing.TB, server *httptest.Server) *http.Cookie {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/?token="+url.QueryEscape(token), nil))(t)
	answer, err := http.DefaultTransport.RoundTrip(r)
	must.Do(t, err)
	must.Do(t, answer.Body.Close())
	cookies := answer.Cookies()
	if answer.StatusCode != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("%s, cookies %v", answer.Status, cookies)
	}
	return cookies[0]
}

// Another user of the machine can connect to the port. Without the token, this user
// receives no page, no run, and nothing that helps to get access.
func TestUserWithoutToken(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.Chmod(folder, 0o700))
	dir := keep(t, folder, kept{label: "secret-label"})
	server := serve(t, ui.Options{Dir: folder})
	id := items(t, server)[filepath.Base(dir)].ID
	jar := must.Get(cookiejar.New(nil))(t)
	client := &http.Client{Jar: jar}
	attack := func(method, path, body string, header map[string]string) {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body)))(t)
		for name, value := range header {
			r.Header.Set(name, value)
		}
		answer, err := client.Do(r)
		must.Do(t, err)
		defer func() { _ = answer.Body.Close() }()
		text := make([]byte, 1<<20)
		n, _ := answer.Body.Read(text)
		said := string(text[:n])
		if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %d", method, path, answer.StatusCode)
		}
		if strings.Contains(said, "secret-label") || strings.Contains(said, token) || strings.Contains(said, folder) || len(answer.Cookies()) > 0 {
			t.Errorf("%s %s tells %.200s, cookies %v", method, path, said, answer.Cookies())
		}
	}
	change := `{"run":"` + id + `","note":"attacked"}`
	for _, path := range []string{"/", "/?token=", "/?token=guess", "/?token=tacho", "/api/runs", "/api/events", "/page?run=" + id, "/api/compare?run=" + id + "&run=" + id} {
		attack("GET", path, "", nil)
	}
	for _, header := range []map[string]string{
		nil,
		{"Origin": server.URL},
		{"Authorization": "Bearer"},
		{"Authorization": "Bearer "},
		{"Authorization": "Bearer guess"},
		{"Cookie": "tacho-" + server.URL[strings.LastIndex(server.URL, ":")+1:] + "=", "Origin": server.URL},
	} {
		attack("POST", "/api/notes", change, header)
		attack("POST", "/api/delete", change, header)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the run was deleted:", err)
	}
	if it := items(t, server)[filepath.Base(dir)]; it.Notes.Text != "" {
		t.Errorf("the note was changed: %+v", it.Notes)
	}
	if _, err := ui.New(ui.Options{Dir: folder, Host: ui.Loopback}); err == nil {
		t.Error("a server without a token starts")
	}
}

// The printed address is exchanged for a cookie. Scripts and other sites cannot read the
// cookie, and the token cannot be computed from it.
func TestTokenIsExchangedForCookie(t *testing.T) {
	server := serve(t, ui.Options{Dir: t.TempDir()})
	cookie := cookieOf(t, server)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, token) || cookie.MaxAge != 0 || cookie.Path != "/" {
		t.Errorf("cookie: %+v", cookie)
	}
	anonymous := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": ""}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	named := cookie.Name + "=" + cookie.Value
	for _, c := range []struct {
		path   string
		header map[string]string
		want   int
	}{
		{"/", anonymous("Cookie", named), http.StatusOK},
		{"/api/runs", anonymous("Cookie", named), http.StatusOK},
		{"/api/runs", map[string]string{"Authorization": "Bearer " + token}, http.StatusOK},
		{"/api/runs", anonymous("Cookie", "tacho-1="+cookie.Value), http.StatusUnauthorized}, // of another port
		{"/api/runs", map[string]string{"Authorization": "Bearer " + cookie.Value}, http.StatusUnauthorized},
		{"/api/runs?token=sixteen-characters", anonymous(), http.StatusUnauthorized}, // only the start page exchanges it
	} {
		status, body := ask(t, server, "GET", c.path, "", c.header)
		if status != c.want || strings.Contains(body, token) || strings.Contains(body, cookie.Value) {
			t.Errorf("%s with %v: %d, want %d: %.100s", c.path, c.header, status, c.want, body)
		}
	}
}

// Only the own page of a user with the cookie can change runs. A page on another port of
// the same host receives the cookie, but has another origin.
func TestForeignRequestsAreRejected(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "a"})
	secret := filepath.Join(filepath.Dir(folder), "outside.txt")
	must.Do(t, os.WriteFile(secret, []byte("secret"), 0o600))
	server := serve(t, ui.Options{Dir: folder})
	id, cookie := items(t, server)[filepath.Base(dir)].ID, cookieOf(t, server)
	change := `{"run":"` + id + `","note":"x"}`
	with := func(name, value string) map[string]string { return map[string]string{name: value} }
	browser := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": "", "Cookie": cookie.Name + "=" + cookie.Value}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	encoded := func(path string) string { return base64.RawURLEncoding.EncodeToString([]byte(path)) }
	for _, c := range []struct {
		what, method, path, body string
		header                   map[string]string
		want                     int
	}{
		{"another name", "GET", "/", "", with("Host", "evil.example"), http.StatusMisdirectedRequest},
		{"another name with our port", "GET", "/api/runs", "", with("Host", "evil.example:8765"), http.StatusMisdirectedRequest},
		{"a name with our name as a prefix", "GET", "/", "", with("Host", "localhost.evil.example"), http.StatusMisdirectedRequest},
		{"our names", "GET", "/", "", with("Host", "localhost:1"), http.StatusOK},
		{"our address", "GET", "/", "", with("Host", "[::1]:1"), http.StatusOK},
		{"a change without an origin", "POST", "/api/notes", change, browser(), http.StatusForbidden},
		{"a change from another port", "POST", "/api/delete", change, browser("Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		{"a change from another scheme", "POST", "/api/delete", change, browser("Origin", strings.Replace(server.URL, "http:", "https:", 1)), http.StatusForbidden},
		{"a change from a sandboxed frame", "POST", "/api/delete", change, browser("Origin", "null"), http.StatusForbidden},
		{"a change from another site", "POST", "/api/delete", change, browser("Origin", server.URL, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"a script of another port", "GET", "/api/runs", "", browser("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"), http.StatusForbidden},
		{"a followed link", "GET", "/", "", browser("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), http.StatusOK},
		{"a change by reading", "GET", "/api/delete?run=" + id, "", browser(), http.StatusMethodNotAllowed},
		{"a path", "GET", "/page?run=../outside.txt", "", nil, http.StatusNotFound},
		{"an encoded path", "GET", "/page?run=" + encoded("../outside.txt"), "", nil, http.StatusNotFound},
		{"a path to delete", "POST", "/api/delete", `{"run":"` + encoded("..") + `"}`, nil, http.StatusNotFound},
		{"the folder itself", "POST", "/api/delete", `{"run":"` + encoded(".") + `"}`, nil, http.StatusNotFound},
		{"a file", "GET", "/etc/passwd", "", nil, http.StatusNotFound},
		{"a file further up", "GET", "/../../etc/passwd", "", nil, http.StatusTemporaryRedirect}, // to the cleaned path
		{"too much", "POST", "/api/notes", `{"note":"` + strings.Repeat("x", 1<<20), nil, http.StatusBadRequest},
		{"too many runs", "GET", "/page?" + strings.Repeat("run="+id+"&", 13), "", nil, http.StatusBadRequest},
		{"our own page", "POST", "/api/notes", change, browser("Origin", server.URL, "Sec-Fetch-Site", "same-origin"), http.StatusOK},
		{"a program", "POST", "/api/notes", change, nil, http.StatusOK},
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

// The token may be permanent, but the cookie is not: the cookie of one start of the server gives no access to the next
// start, because browsers send the cookie to the servers of other users on the same host.
func TestCookieEndsWithServer(t *testing.T) {
	folder := t.TempDir()
	first, second := serve(t, ui.Options{Dir: folder}), serve(t, ui.Options{Dir: folder}) // with the same token
	value := cookieOf(t, first).Value
	header := map[string]string{"Authorization": "", "Cookie": cookieOf(t, second).Name + "=" + value}
	if status, _ := ask(t, second, "GET", "/api/runs", "", header); status != http.StatusUnauthorized {
		t.Errorf("the cookie of an earlier start: %d", status)
	}
	if again := cookieOf(t, first).Value; again != value {
		t.Errorf("a second tab changes the cookie of the first: %q, %q", value, again)
	}
}

// A client without access cannot keep a connection: the server closes it after the first answer, also if the client
// announces a body and does not send it.
func TestRefusedClientIsDisconnected(t *testing.T) {
	server := serve(t, ui.Options{Dir: t.TempDir()})
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"POST /api/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n",
		"POST /api/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		c := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String()))(t)
		must.Get(c.Write([]byte(request)))(t)
		answer, err := io.ReadAll(c) // until the server closes the connection
		must.Do(t, c.Close())
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%q: %q, %v", request, answer, err)
		}
	}
}
