package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"tacho/internal/wholefile"
	"tacho/plan"
)

// apiKey is the key to show to servers, and where it comes from.
func apiKey(env *Env, p *plan.Plan) (key, from string, err error) {
	switch {
	case p.APIKey != "" && p.APIKeyFile != "":
		return "", "", errors.New("--api-key and --api-key-file: give one of them")
	case p.APIKey != "":
		return p.APIKey, "--api-key", nil
	case p.APIKeyFile != "":
		text, err := wholefile.ReadOnce(p.APIKeyFile)
		if err != nil {
			return "", "", fmt.Errorf("--api-key-file: %w", err)
		}
		key := string(bytes.TrimSpace(text))
		if key == "" || strings.ContainsAny(key, "\r\n") {
			return "", "", fmt.Errorf("--api-key-file %s: it should hold one line, the key", p.APIKeyFile)
		}
		return key, "--api-key-file " + p.APIKeyFile, nil
	}
	return env.Getenv("OPENAI_API_KEY"), "OPENAI_API_KEY", nil
}
