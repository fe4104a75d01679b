package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/plan"
)

// A borrowedPlan is the plan of a stored run that names servers which the user did not name.
type borrowedPlan struct {
	run     string
	headers bool // the user gave headers
}

// borrow reads the plan of a stored run into p, and records whether the run chose the servers.
func (env *Env) borrow(p *plan.Plan, run string, read func() error) error {
	named := p.Given("base-url") || p.Given("host") || p.Given("port")
	before, headers := receivers(p), len(p.Header)+len(p.OTLPHeaders) > 0 || env.Getenv("OTEL_EXPORTER_OTLP_HEADERS") != ""
	err := read()
	if after := receivers(p); err == nil && (!named || !slices.Equal(before, after)) {
		env.borrowed = &borrowedPlan{run, headers}
	}
	return err
}

// receivers returns the servers of a plan that get keys or headers, without paths and users.
func receivers(p *plan.Plan) (out []string) {
	if p.Sim == "" && !p.Virtual {
		out = p.BaseURLs()
	}
	if p.OTLP != "" {
		out = append(out, p.OTLP)
	}
	for i, s := range out {
		u, err := url.Parse(s)
		switch {
		case err != nil:
			out[i] = redact.URL(s)
		case u.Host != "":
			out[i] = u.Scheme + "://" + u.Host
		default:
			out[i] = u.Scheme + "://" + u.Path // a socket
		}
	}
	return out
}

// mayReceive decides whether the servers of a plan may get the user's key and headers. A stored run may come from someone
// else. If only such a run names a server, mayReceive asks, unless the user sent a key to this server before.
func (env *Env) mayReceive(p *plan.Plan, key, from string) error {
	headers := len(p.Header) > 0
	if env.borrowed != nil {
		headers = env.borrowed.headers
	}
	if key == "" && !headers {
		return nil
	}
	if key == "" {
		from = "headers"
	}
	var path string
	if cache, err := os.UserCacheDir(); err == nil {
		path = filepath.Join(cache, "tacho", "servers")
	}
	known, _ := atomicfile.Read(path) // may not exist
	unknown := slices.DeleteFunc(receivers(p), func(s string) bool {
		return slices.Contains(strings.Split(string(known), "\n"), s)
	})
	if len(unknown) == 0 {
		return nil
	}
	if env.borrowed != nil && !env.agrees(fmt.Sprintf("The plan of %s names %s. You sent no key there before. Send %s?", env.borrowed.run, strings.Join(unknown, " and "), from)) {
		return usage(fmt.Errorf("%s names %s, and you sent no key there before: to send %s, name the server with --base-url (a collector with --otlp-endpoint)",
			env.borrowed.run, strings.Join(unknown, " and "), from))
	}
	if path != "" && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = atomicfile.Write(path, append(known, strings.Join(unknown, "\n")+"\n"...)) // without the file, the user is asked again
	}
	return nil
}

// agrees asks a question on the terminal. Without a terminal the answer is no.
func (env *Env) agrees(question string) bool {
	tty, is := env.Stdin.(*os.File)
	if !env.Terminal || is && !term.IsTerminal(int(tty.Fd())) {
		return false
	}
	was := env.reads.Swap(true) // a signal exits immediately
	defer env.reads.Store(was)
	_, _ = fmt.Fprint(env.Stderr, question+" [y/N] ") // errors of stderr are ignored
	answer, _ := bufio.NewReader(env.Stdin).ReadBytes('\n')
	return slices.Contains([]string{"y", "yes"}, string(bytes.ToLower(bytes.TrimSpace(answer))))
}
