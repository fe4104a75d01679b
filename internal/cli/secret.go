package cli

import (
	"strings"

	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/plan"
)

// secretsOf returns the secrets in the environment and in URLs on the command
// line. Secrets in flags are added after parsing.
func secretsOf(env *Env) *redact.Secrets {
	s := &redact.Secrets{}
	for _, name := range []string{"OPENAI_API_KEY", "HF_TOKEN"} {
		s.Add(env.Getenv(name))
	}
	for _, name := range []string{"HF_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		s.Public(redact.InURL, env.Getenv(name))
		s.Public(redact.InURL, env.Getenv(strings.ToLower(name)))
	}
	for _, arg := range env.Args {
		s.Public(redact.InPair, arg)
	}
	return s
}

// publicArgs returns the command line without secrets, with one value per flag.
// Removed values are added to secrets.
func publicArgs(secrets *redact.Secrets, args []string) []string {
	p := plan.Plan{}
	places := map[string]redact.Place{}
	for _, o := range p.Options() {
		places["--"+o.Name] = o.Secret
	}
	out := make([]string, len(args))
	for i, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		if out[i] = secrets.Public(redact.InURL, arg); ok && strings.HasPrefix(flag, "--") {
			out[i] = flag + "=" + secrets.Public(places[flag], value)
		}
	}
	return out
}
