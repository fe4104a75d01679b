package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/plan"
)

// apiKey returns the API key for servers and its source.
func apiKey(env *Env, p *plan.Plan) (key, from string, err error) {
	switch {
	case p.APIKey != "" && p.APIKeyFile != "":
		return "", "", errors.New("--api-key cannot be combined with --api-key-file")
	case p.APIKey != "":
		return p.APIKey, "--api-key", nil
	case p.APIKeyFile != "":
		text, err := atomicfile.ReadOnce(p.APIKeyFile)
		if err != nil {
			return "", "", fmt.Errorf("--api-key-file: %w", err)
		}
		key := string(bytes.TrimSpace(text))
		if key == "" || strings.ContainsAny(key, "\r\n") {
			return "", "", fmt.Errorf("--api-key-file %s: want one line with the key", p.APIKeyFile)
		}
		return key, "--api-key-file " + p.APIKeyFile, nil
	}
	return env.Getenv("OPENAI_API_KEY"), "OPENAI_API_KEY", nil
}
