package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
)

// natsTokenVariable contains the token for NATS.
const natsTokenVariable = "TACHO_NATS_TOKEN"

// agentFlags are the flags of tacho agent.
type agentFlags struct {
	cluster.AgentOptions
	read  []string // permitted directories and files
	limit string
	wait  plan.Seconds
	alone plan.Seconds
	child bool
}

func newAgent(env *Env) *cobra.Command {
	f := &agentFlags{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Send a share of the load for a tacho bench on another machine",
		Long: `agent joins a NATS server and waits for a coordinator: tacho bench, find or sweep
with --agents. It sends its share of the load from this machine and returns its
records. After the run it waits for the next one.

An agent sends requests only to targets in --allow-target and accepts plans only
from coordinators in --trust. Without --trust it accepts plans from every client
of the NATS server, if the agent itself has to authenticate there (--creds,
--nkey, --token or --cert).`,
		Example: `  tacho agent --join tls://bench:4222#H0x3mGlW7Yd0Q1bnnXlwqYJ2jHYv1aT4b6GZdI9C3Zk --token-file token.txt --trust UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 --allow-target https://llm.example.com
  tacho agent --join nats://nats:4222 --creds agent.creds --allow-target http://vllm:8000 --allow-read /data`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	a := &f.Access
	tokenFile := ""
	fs.StringVar(&a.URL, "join", "", "NATS server: the tls:// address printed by tacho bench --agents, or your own server (nats://host:4222; several separated by commas)")
	fs.TextVar(&f.wait, "join-wait", plan.Seconds(60), "timeout for joining, in seconds")
	fs.StringArrayVar(&f.Allow, "allow-target", nil, "allowed server, as http://host:8000; without a port all ports of the host; any allows every server; repeatable")
	fs.StringArrayVar(&f.read, "allow-read", nil, "directory or file that a plan may read on this machine, such as a dataset; any allows every file; repeatable")
	fs.StringArrayVar(&f.Trust, "trust", nil, "public key of a trusted coordinator, as printed by tacho bench; repeatable")
	fs.StringVar(&a.Creds, "creds", "", "file with NATS credentials")
	fs.StringVar(&a.NKey, "nkey", "", "file with an nkey seed for NATS")
	fs.StringVar(&a.Token, "token", "", "token for NATS; other users can see command lines, so prefer --token-file or "+natsTokenVariable)
	fs.StringVar(&tokenFile, "token-file", "", "file with the token")
	fs.StringVar(&a.CA, "ca-cert", "", "file with CA certificates for NATS, instead of the system's")
	fs.StringVar(&a.Cert, "cert", "", "file with the client certificate for NATS")
	fs.StringVar(&a.Key, "key", "", "file with the key of the client certificate")
	fs.StringVar(&f.Name, "name", "", "name of this agent in the report (default: host name)")
	fs.StringVar(&f.Spool, "spool", "", "directory for records not sent yet (default: in the user's cache)")
	fs.StringVar(&f.limit, "spool-limit", "4GiB", "maximum size of the spool, with suffix K, M or G")
	fs.TextVar(&f.alone, "orphan-timeout", plan.Seconds(cluster.DefaultOrphanTimeout.Seconds()), "stop the load if no coordinator was heard for this long, in seconds")
	fs.BoolVar(&f.Once, "once", false, "exit after the first run; if its coordinator dies, wait 15 minutes for a new one")
	fs.BoolVar(&f.child, childFlag, false, "stop when standard input is closed by the parent process")
	_ = fs.MarkHidden(childFlag) // the flag exists
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.readToken(env, tokenFile) }
	return cmd
}

// readToken reads the token from a flag, a file or the environment.
func (f *agentFlags) readToken(env *Env, file string) error {
	if file != "" {
		text, err := atomicfile.ReadOnce(file)
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

// anyFile permits all files.
const anyFile = "any"

// confine limits the files that plans may read to those of --allow-read, and to the cached tokenizers and templates of
// models, because a plan names only the model, and no server receives them.
func (f *agentFlags) confine(models *run.Tokenizers) (undo func()) {
	if slices.Contains(f.read, anyFile) {
		return func() {}
	}
	places := models.Places()
	for _, path := range f.read {
		places = append(places, atomicfile.Place{Path: path})
	}
	return atomicfile.Confine(places...)
}

// check validates the flags and sets defaults.
func (f *agentFlags) check() error {
	switch {
	case f.Access.URL == "":
		return errors.New("--join: want a NATS server, as nats://host:4222")
	case len(f.Trust) == 0 && !f.Access.Authenticated():
		return errors.New("any user of that NATS server could send plans: set the coordinator's key with --trust, or join with --creds, --nkey, --token or --cert")
	case len(f.Allow) == 0:
		return errors.New("--allow-target: want the allowed servers, as http://host:8000")
	}
	for _, target := range f.Allow {
		if err := run.CheckTarget(target); err != nil {
			return fmt.Errorf("--allow-target: %w", err)
		}
	}
	for _, key := range f.Trust {
		if err := cluster.CheckKey(key); err != nil {
			return fmt.Errorf("--trust: %w", err)
		}
	}
	if f.alone.Duration() < cluster.MinOrphanTimeout {
		return fmt.Errorf("--orphan-timeout: want at least %v", cluster.MinOrphanTimeout)
	}
	var err error
	if f.SpoolLimit, err = parseBytes(f.limit); err != nil {
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
			return fmt.Errorf("--spool: no default directory, set one: %w", err)
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
	f.JoinWait, f.OrphanTimeout = f.wait.Duration(), f.alone.Duration()
	f.Access.Name, f.Version = "tacho agent "+f.Name, bench.Build()
	models := tokenizers(env)
	defer f.confine(&models)()
	f.Env = func() run.Env {
		return run.Env{
			Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Tokenizers: models,
		}
	}
	f.Say = func(line string) { _, _ = fmt.Fprintln(env.Stderr, line) } // errors of stderr are ignored
	f.Joined = func(key string) {
		_, _ = fmt.Fprintf(env.Stdout, "%s is ready (Ctrl-C stops it). Its key is %s\n", f.Name, key)
	}
	if f.child {
		f.Say = func(string) {} // the coordinator reports all important events
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		go func() {
			_, _ = io.Copy(io.Discard, env.Stdin) // any error means that the parent has exited
			end()
		}()
	}
	return cluster.RunAgent(ctx, f.AgentOptions)
}

// parseBytes parses a number of bytes: 1000, 64K, 16MiB, 4GB.
func parseBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "kKMGTiB")
	unit := strings.TrimSuffix(strings.TrimSuffix(text[len(digits):], "B"), "i")
	shift, known := map[string]int{"": 0, "k": 10, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 1 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is not a number of bytes, write 64M or 4G", text)
	}
	return n << shift, nil
}
