package cli

import (
	"strings"

	"tacho/internal/redact"
	"tacho/plan"
)

// secretsOf are those that the environment hands over, and those in addresses
// that stand anywhere on the command line. Those of flags follow when it is
// known which flags they are.
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

// publicArgs is the command line, with every value behind its flag, as it may be
// written down. The secrets learn what is not.
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
