package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tacho/internal/wholefile"
	"tacho/ui"
)

// defaultRuns is the folder that bench keeps runs in, and that ui shows.
const defaultRuns = "runs"

// uiFlags are the words of the command.
type uiFlags struct {
	host, cert, key, tokenFile string
	port                       int
}

func newUI(env *Env) *cobra.Command {
	f := &uiFlags{}
	cmd := &cobra.Command{
		Use:   "ui [FOLDER]",
		Short: "Show a folder of runs in a browser: list, live, compare, notes",
		Long: `ui serves a folder of runs, or of anybody's results, to a browser: a list to
search, each run as its page, runs that go on as they happen, several side by
side, notes and tags. The folder is runs/ unless another is named; if there is no
runs/ yet, ui waits for the first run.

It listens on this machine only. With --host it lets others in; then it wants a
certificate and a key, and makes a token, which is part of the address that it
prints.`,
		Example: `  tacho ui
  tacho ui results/ --port 0
  tacho ui --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := defaultRuns
			if len(args) > 0 {
				dir = args[0]
			}
			return f.serve(cmd.Context(), env, dir)
		},
	}
	cmd.Flags().StringVar(&f.host, "host", "127.0.0.1", "address to listen on; one that others reach demands TLS and a token")
	cmd.Flags().IntVar(&f.port, "port", 8765, "port to listen on; 0 takes a free one")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "file of the certificate, with its chain")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "file of its key")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token that is demanded; by default a new one where others are let in")
	return cmd
}

// serve serves a folder until it is stopped.
func (f *uiFlags) serve(ctx context.Context, env *Env, dir string) error {
	info, err := os.Stat(dir)
	waits := dir == defaultRuns && errors.Is(err, fs.ErrNotExist)
	if !waits && (err != nil || !info.IsDir()) {
		return usage(fmt.Errorf("%s is not a folder: name one that has runs or results in it; bench keeps runs in %s/", dir, defaultRuns))
	}
	o := ui.Options{Dir: dir, Host: ui.Loopback}
	certificate, err := f.secure(&o)
	if err != nil {
		return usage(err)
	}
	server, err := ui.New(o)
	if err != nil {
		return err
	}
	l, err := env.listen(ctx, net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("%w: choose another port with --port", err)
	}
	address := url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	if certificate != nil {
		address.Scheme, address.Host = "https", publicName(l.Addr(), certificate)
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	if o.Token != "" {
		address.RawQuery = url.Values{"token": {o.Token}}.Encode()
	}
	if waits {
		_, _ = fmt.Fprintf(env.Stdout, "There is no folder %s yet: the page shows the first run when tacho bench starts it here.\n", dir) // for information
	}
	_, _ = fmt.Fprintf(env.Stdout, "Runs in %s: %s (Ctrl-C ends it)\n", dir, address.String()) // nobody reads it, nobody comes
	httpServer := &http.Server{
		Handler: server, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // those who watch are let go when we end
	}
	ended := context.AfterFunc(ctx, func() { _ = httpServer.Close() })
	defer ended()
	if err := httpServer.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// publicName is where others find a listener: where it listens on all addresses,
// by the first name of its certificate.
func publicName(at net.Addr, c *tls.Certificate) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() || len(c.Leaf.DNSNames) == 0 {
		return at.String()
	}
	return net.JoinHostPort(c.Leaf.DNSNames[0], port)
}

// secure demands what strangers need, where they are let in.
func (f *uiFlags) secure(o *ui.Options) (*tls.Certificate, error) {
	if f.tokenFile != "" {
		b, err := wholefile.ReadOnce(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if o.Token = strings.TrimSpace(string(b)); len(o.Token) < 16 {
			return nil, errors.New("--token-file: a token has sixteen characters at least")
		}
	}
	local := ui.Loopback(f.host)
	if f.cert == "" && f.key == "" {
		if !local {
			return nil, fmt.Errorf("--host %s lets others in: give --tls-cert and --tls-key too, or reach this machine through ssh -L 8765:127.0.0.1:8765", f.host)
		}
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	if !local && o.Token == "" {
		o.Token = rand.Text()
	}
	o.Host = func(name string) bool {
		return ui.Loopback(name) || name == f.host || certificate.Leaf.VerifyHostname(name) == nil
	}
	return &certificate, nil
}
