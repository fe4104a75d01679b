package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/outcome"
)

// hideSecrets finds the secrets of a server's command: values of options and variables whose
// names suggest a secret (--api-key KEY, HF_TOKEN=KEY), in the command and in its settings.
// Values of secret settings are replaced by numbers, so that reports can tell the settings
// apart and no file contains a value.
func (c *serverCommand) hideSecrets(secrets *redact.Secrets) {
	c.hideIn(c.text, secrets)
	for i, name := range c.names {
		if redact.NamesSecret(name) {
			c.hideSetting(i, secrets)
		}
	}
}

// hideIn hides the secrets in a command, also in a word that is a command itself, as in bash -c "serve --api-key KEY".
func (c *serverCommand) hideIn(text string, secrets *redact.Secrets) {
	words, err := splitWords(text)
	if err != nil {
		words = strings.Fields(text) // a command for a shell
	}
	after := ""
	for _, w := range words {
		name, value, assigned := strings.Cut(w, "=")
		switch {
		case redact.NamesSecret(after):
			c.secret(w, secrets)
		case assigned && redact.NamesSecret(name):
			c.secret(value, secrets)
		case len(words) > 1 && strings.ContainsAny(w, " \t\n"):
			c.hideIn(w, secrets)
		}
		if after = ""; strings.HasPrefix(w, "-") && !assigned {
			after = w
		}
	}
}

// secret hides a value of the command: a text, or a setting in braces.
func (c *serverCommand) secret(value string, secrets *redact.Secrets) {
	for i, name := range c.names {
		if strings.Contains(value, "{"+name+"}") {
			c.hideSetting(i, secrets)
		}
	}
	if !placeholder.MatchString(value) {
		secrets.Add(value)
		secrets.Add(strings.Trim(value, "\"'`;&|()")) // characters of a shell that may touch a word
	}
}

// hideSetting replaces the values of a setting by numbers.
func (c *serverCommand) hideSetting(i int, secrets *redact.Secrets) {
	if c.hidden[c.names[i]] != nil {
		return
	}
	values := map[string]string{}
	for k, value := range c.lists[i] {
		value = strings.TrimSpace(value)
		secrets.Add(value)
		shown := fmt.Sprintf("hidden-%d", k+1)
		values[shown] = value
		c.lists[i][k] = shown
	}
	if c.hidden == nil {
		c.hidden = map[string]map[string]string{}
	}
	c.hidden[c.names[i]] = values
}

// valueOf returns the value of a setting as the server gets it.
func (c *serverCommand) valueOf(at outcome.Coordinates, name string) (string, bool) {
	v, ok := at.Of(bench.ServePrefix + name)
	if secret, found := c.hidden[name][v]; found {
		v = secret
	}
	return v, ok
}

// sweepLog removes secrets from the log of a server that has ended, because servers print
// their options when they start.
func sweepLog(path string, secrets *redact.Secrets) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	swept := secrets.Hide(string(text))
	if swept == string(text) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, swept)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
