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
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/ui"
)

// defaultRuns is the default directory of runs for bench and ui.
const defaultRuns = "runs"

// uiFlags are the flags of ui.
type uiFlags struct {
	host, cert, key, tokenFile string
	run                        string // shown first, instead of the list
	port                       int
}

func newUI(env *Env) *cobra.Command {
	f := &uiFlags{}
	cmd := &cobra.Command{
		Use:   "ui [FOLDER]",
		Short: "Show a folder of runs in a browser: list, live, compare, notes",
		Long: `ui serves a folder of runs, or of results of other tools, to a browser: a
searchable list, reports, live views of active runs, comparisons, notes and tags.
The default folder is runs/; if it does not exist yet, ui waits for the first run.
"ui last" shows the newest run first.

The printed address contains a token. Only a browser that opened this address
has access, so other users of the machine have none. ui listens on this machine
only. With --host it accepts remote users, and requires a certificate and a key.`,
		Example: `  tacho ui
  tacho ui last
  tacho ui results/ --port 0
  tacho ui --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := defaultRuns
			if len(args) > 0 {
				dir = args[0]
			}
			if namesRun(dir) {
				run, err := findRun(env, dir)
				if err != nil {
					return usage(err)
				}
				if dir = filepath.Dir(run); run != dir {
					f.run = run
				}
			}
			return f.serve(cmd.Context(), env, dir)
		},
	}
	cmd.Flags().StringVar(&f.host, "host", "127.0.0.1", "address to listen on; remote access requires TLS")
	cmd.Flags().IntVar(&f.port, "port", 8765, "port to listen on; 0 for any free port")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "file with the certificate chain")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "file with the key of the certificate")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the access token (default: a new token for each start)")
	return cmd
}

// serve serves a folder until stopped.
func (f *uiFlags) serve(ctx context.Context, env *Env, dir string) error {
	info, err := os.Stat(dir)
	waits := dir == defaultRuns && errors.Is(err, fs.ErrNotExist)
	if !waits && (err != nil || !info.IsDir()) {
		return usage(fmt.Errorf("%s is not a folder, choose one with runs or results (bench stores runs in %s/)", dir, defaultRuns))
	}
	o := ui.Options{Dir: dir, Host: ui.Loopback, Now: time.Now}
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
		return fmt.Errorf("%w; choose another port with --port", err)
	}
	address := url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	if certificate != nil {
		address.Scheme, address.Host = "https", publicName(l.Addr(), certificate)
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	address.RawQuery = url.Values{"token": {o.Token}}.Encode()
	if f.run != "" {
		address.Fragment = ui.Fragment(dir, f.run)
	}
	if waits {
		_, _ = fmt.Fprintf(env.Stdout, "Folder %s does not exist yet. The page shows the first run of tacho bench.\n", dir) // informational
	}
	_, _ = fmt.Fprintf(env.Stdout, "Runs in %s: %s (Ctrl-C stops it)\n", dir, address.String()) // errors of stdout are ignored
	httpServer := &http.Server{
		Handler: server, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends live views on shutdown
	}
	ended := context.AfterFunc(ctx, func() { _ = httpServer.Close() })
	defer ended()
	if err := httpServer.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// publicName returns the address for other machines. If the listener has no
// specific address, it uses the first name in the certificate.
func publicName(at net.Addr, c *tls.Certificate) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() || len(c.Leaf.DNSNames) == 0 {
		return at.String()
	}
	return net.JoinHostPort(c.Leaf.DNSNames[0], port)
}

// secure sets the token, and requires a certificate for remote access.
func (f *uiFlags) secure(o *ui.Options) (*tls.Certificate, error) {
	o.Token = rand.Text()
	if f.tokenFile != "" {
		b, err := atomicfile.ReadOnce(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if o.Token = strings.TrimSpace(string(b)); len(o.Token) < 16 {
			return nil, errors.New("--token-file: want a token with at least 16 characters")
		}
	}
	local := ui.Loopback(f.host)
	if f.cert == "" && f.key == "" {
		if !local {
			return nil, fmt.Errorf("--host %s allows remote access and needs --tls-cert and --tls-key; or use ssh -L 8765:127.0.0.1:8765", f.host)
		}
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	o.Host = func(name string) bool {
		return ui.Loopback(name) || name == f.host || certificate.Leaf.VerifyHostname(name) == nil
	}
	return &certificate, nil
}
