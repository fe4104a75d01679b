package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// cookie holds the token of who has shown it once.
const cookie = "tacho-token"

// ServeHTTP implements http.Handler: who may not ask is told so, and everything
// that is answered is told to stay here.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.options.Host(hostOf(r.Host)) {
		// Somebody's page that gave its own name our address would be served otherwise.
		http.Error(w, "this is not the name of this server: open the address that tacho ui printed", http.StatusMisdirectedRequest)
		return
	}
	if s.options.Token != "" && !s.admitted(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// hostOf is a host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// Loopback are the names of this machine for itself.
func Loopback(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// admitted lets in who knows the token: by the address that was printed, which
// leaves a cookie, or in the header of a program.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) bool {
	if s.knows(r.URL.Query().Get("token")) && r.URL.Path == "/" && r.Method == http.MethodGet {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.options.Token, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther) // and leaves the token out of the address
		return false
	}
	if c, err := r.Cookie(cookie); err == nil && s.knows(c.Value) {
		return true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.knows(bearer) {
		return true
	}
	http.Error(w, "a token is needed: open the address that tacho ui printed", http.StatusUnauthorized)
	return false
}

func (s *Server) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) == 1
}

// mostBody is how much may be written at a time.
const mostBody = 64 << 10

// own lets only our own page through: it knows a word that other pages cannot
// read, and browsers say where a request comes from.
func (s *Server) own(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		word := r.Header.Get("X-Tacho-Token")
		if subtle.ConstantTimeCompare([]byte(word), []byte(s.write)) != 1 || site != "" && site != "same-origin" {
			http.Error(w, "only the page of tacho ui may change anything: load it again", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		handle(w, r)
	}
}
