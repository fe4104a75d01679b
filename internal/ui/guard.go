package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ServeHTTP implements http.Handler. It rejects requests without access and sets the
// security headers of every response.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.admits(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// refuse answers a request without access and closes the connection. It does not wait for a body, so that a client
// without access cannot keep connections.
func refuse(w http.ResponseWriter, why string, status int) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // fails only without a connection, as in a test
	http.Error(w, why, status)
}

// admits reports whether a request has access. It answers other requests.
func (s *Server) admits(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !s.options.Host(hostOf(r.Host)):
		// Prevents DNS rebinding: a foreign page could point its own name to our address.
		refuse(w, "unknown host name: open the address that tacho ui printed", http.StatusMisdirectedRequest)
	case foreign(r):
		refuse(w, "only the page of tacho ui may send this request: reload the page", http.StatusForbidden)
	case s.knows(r.URL.Query().Get("token")) && r.URL.Path == "/" && r.Method == http.MethodGet:
		s.exchange(w, r)
	case !s.admitted(r):
		refuse(w, "token required: open the address that tacho ui printed when it started", http.StatusUnauthorized)
	default:
		return true
	}
	return false
}

// hostOf returns a host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// Loopback reports whether name is a loopback name or address.
func Loopback(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// foreign reports whether a page of another origin sent a request. Another port of the
// same host is another origin, but the same site, so the cookie does not exclude it. A
// browser names the origin of every change, so a change with the cookie needs one.
func foreign(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case origin != "" && !sameOrigin(r, origin):
		return true
	case origin == "" && !reads && r.Header.Get("Cookie") != "":
		return true
	}
	followsLink := reads && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	return (site == "cross-site" || site == "same-site") && !followsLink
}

func sameOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && u.Scheme == map[bool]string{false: "http", true: "https"}[r.TLS != nil]
}

// exchange answers the printed address with the cookie, and loads the page without the
// token. A redirect would not send the cookie if a link of another site was followed.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.session, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	answer(w, "text/html; charset=utf-8", []byte(`<!doctype html><html lang="en"><title>tacho</title><meta http-equiv="refresh" content="0;url=/"><a href="/">Open the runs</a></html>`))
}

// cookieName names the cookie by port, because browsers share cookies between the ports
// of a host, and several servers may run.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "tacho"
	}
	return "tacho-" + port
}

// admitted checks the cookie of a browser, or the Authorization header of a program.
func (s *Server) admitted(r *http.Request) bool {
	if c, err := r.Cookie(cookieName(r)); err == nil && same(c.Value, s.session) {
		return true
	}
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && s.knows(bearer)
}

func (s *Server) knows(token string) bool { return same(token, s.options.Token) }

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// bounded limits the size of the body of a request.
func bounded(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		handle(w, r)
	}
}
