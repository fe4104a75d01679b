package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tacho/bench"
	"tacho/cluster"
	"tacho/engine"
	"tacho/internal/wholefile"
	"tacho/plan"
	"tacho/run"
)

// natsTokenVariable holds the token for NATS.
const natsTokenVariable = "TACHO_NATS_TOKEN"

// agentFlags are what an agent is told.
type agentFlags struct {
	cluster.AgentOptions
	limit string
	wait  plan.Seconds
	child bool
}

func newAgent(env *Env) *cobra.Command {
	f := &agentFlags{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Send a share of the load of a tacho bench that runs elsewhere",
		Long: `agent joins a NATS server and waits for a coordinator: tacho bench, find or
sweep with --agents. It sends its share of the load from this machine, and hands
its records over. When the run is over it waits for the next one.

An agent sends requests only to targets that --allow-target names, and takes
plans only from coordinators that --trust names. Without --trust it takes them
from whoever the NATS server lets in, and only where it has to show who it is
there itself (--creds, --nkey, --token or --cert).`,
		Example: `  tacho agent --join nats://bench:4222 --creds agent.creds --allow-target http://vllm:8000
  tacho agent --join nats://bench:4222 --token-file token.txt --trust UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 --allow-target https://llm.example.com`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	a := &f.Access
	tokenFile := ""
	fs.StringVar(&a.URL, "join", "", "NATS server to join, as nats://host:4222, tls://..., or several with commas between")
	fs.TextVar(&f.wait, "join-wait", plan.Seconds(60), "wait this long, in seconds, for that server to be there")
	fs.StringArrayVar(&f.Allow, "allow-target", nil, "server that requests may go to, as http://host:8000; without a port all ports of that host, any is every server; may be repeated")
	fs.StringArrayVar(&f.Trust, "trust", nil, "public key of a coordinator that may give orders, as tacho bench prints it; may be repeated")
	fs.StringVar(&a.Creds, "creds", "", "file with NATS credentials")
	fs.StringVar(&a.NKey, "nkey", "", "file with the seed of an nkey that NATS knows")
	fs.StringVar(&a.Token, "token", "", "token for NATS; other users of this machine can read a command line, so prefer a file, or "+natsTokenVariable)
	fs.StringVar(&tokenFile, "token-file", "", "file that holds the token")
	fs.StringVar(&a.CA, "ca-cert", "", "file with certificates to trust for NATS instead of the system's")
	fs.StringVar(&a.Cert, "cert", "", "file with the certificate to present to NATS")
	fs.StringVar(&a.Key, "key", "", "file with that certificate's key")
	fs.StringVar(&f.Name, "name", "", "what the report calls this agent (default: the host's name)")
	fs.StringVar(&f.Spool, "spool", "", "directory for records that were not handed over yet (default: one in the user's cache)")
	fs.StringVar(&f.limit, "spool-limit", "4GiB", "bytes that may wait there, with K, M or G behind the number")
	fs.BoolVar(&f.Once, "once", false, "end when the first run is over; if its coordinator dies, wait a quarter of an hour for the run to go on")
	fs.BoolVar(&f.child, childFlag, false, "stop when standard input ends, as it does when the parent is gone")
	_ = fs.MarkHidden(childFlag) // it was just made
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.readToken(env, tokenFile) }
	return cmd
}

// readToken takes the token from where it is.
func (f *agentFlags) readToken(env *Env, file string) error {
	if file != "" {
		text, err := wholefile.ReadOnce(file)
		if err != nil {
			return usage(fmt.Errorf("--token-file: %w", err))
		}
		f.Access.Token = strings.TrimSpace(string(text))
	}
	if f.Access.Token == "" && f.Access.Creds == "" && f.Access.NKey == "" {
		f.Access.Token = env.Getenv(natsTokenVariable)
	}
	env.secrets.Add(f.Access.Token)
	return nil
}

// check says what is wrong with the flags, and fills in what was left open.
func (f *agentFlags) check() error {
	switch {
	case f.Access.URL == "":
		return errors.New("--join: name the NATS server, as nats://host:4222")
	case len(f.Trust) == 0 && !f.Access.Known():
		return errors.New("whoever reaches that NATS server could give orders: name the coordinator's key with --trust, or join with --creds, --nkey, --token or --cert")
	case len(f.Allow) == 0:
		return errors.New("--allow-target: name the servers that requests may go to, as http://host:8000")
	}
	for _, target := range f.Allow {
		if err := cluster.CheckTarget(target); err != nil {
			return fmt.Errorf("--allow-target: %w", err)
		}
	}
	for _, key := range f.Trust {
		if err := cluster.CheckKey(key); err != nil {
			return fmt.Errorf("--trust: %w", err)
		}
	}
	var err error
	if f.Most, err = parseBytes(f.limit); err != nil {
		return fmt.Errorf("--spool-limit: %w", err)
	}
	if f.Name == "" {
		if f.Name, err = os.Hostname(); err != nil {
			f.Name = "agent"
		}
	}
	if f.Spool == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("--spool: name a directory: %w", err)
		}
		f.Spool = filepath.Join(cache, "tacho", "spool", f.Name)
	}
	return os.MkdirAll(f.Spool, 0o700)
}

func (f *agentFlags) run(ctx context.Context, env *Env) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	engine.Tune()
	f.JoinWait = f.wait.Duration()
	f.Access.Name, f.Version = "tacho agent "+f.Name, bench.Build()
	f.Env = func() run.Env {
		return run.Env{
			Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Tokenizers: tokenizers(env),
			Replay: func(name string) (*run.Replay, error) { return openReplay(env, name) },
		}
	}
	f.Say = func(line string) { _, _ = fmt.Fprintln(env.Stderr, line) } // a broken stderr stops nothing
	f.Joined = func() {
		_, _ = fmt.Fprintf(env.Stdout, "%s is ready (Ctrl-C stops it)\n", f.Name)
	}
	if f.child {
		f.Say = func(string) {} // the coordinator tells what matters
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		go func() {
			_, _ = io.Copy(io.Discard, env.Stdin) // whatever ends it, the parent is gone
			end()
		}()
	}
	return cluster.RunAgent(ctx, f.AgentOptions)
}

// parseBytes reads a number of bytes: 1000, 64K, 16MiB, 4GB.
func parseBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "kKMGTiB")
	unit := strings.TrimSuffix(strings.TrimSuffix(text[len(digits):], "B"), "i")
	shift, known := map[string]int{"": 0, "k": 10, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 1 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is no number of bytes: write 64M or 4G", text)
	}
	return n << shift, nil
}
