package run

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/redact"
)

// AnyTarget permits all servers.
const AnyTarget = "any"

// CheckTarget returns an error if a pattern cannot match any server.
func CheckTarget(pattern string) error {
	u, err := url.Parse(pattern)
	if pattern == AnyTarget || err == nil && (u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") || u.Scheme == "unix" && u.Path != "") {
		return nil
	}
	return fmt.Errorf("%q is not a server: write http://host:8000, or %s for all servers", pattern, AnyTarget)
}

// CheckTargets returns an error if no pattern permits one of the servers of a task. A pattern is the start of an address,
// such as http://host:8000. A pattern without a port permits all ports of the host.
func (t *Task) CheckTargets(patterns []string) error {
	addresses, err := t.addresses()
	for _, target := range slices.Concat(addresses, t.Targets) {
		if err == nil {
			err = checkAddress(patterns, target)
		}
	}
	return err
}

func checkAddress(patterns []string, target string) error {
	t, err := url.Parse(target)
	if err != nil {
		return errors.New("the plan's target is not an address")
	}
	if slices.ContainsFunc(patterns, func(pattern string) bool { return pattern == AnyTarget || matchesTarget(pattern, t) }) {
		return nil
	}
	return fmt.Errorf("this agent does not permit the target %s: start it with --allow-target %[1]s", t.Scheme+"://"+t.Host)
}

func matchesTarget(pattern string, t *url.URL) bool {
	p, err := url.Parse(pattern)
	if err != nil || p.Scheme != t.Scheme {
		return false
	}
	if p.Scheme == "unix" {
		return p.Path == t.Path
	}
	path := strings.TrimSuffix(p.Path, "/")
	return strings.EqualFold(p.Hostname(), t.Hostname()) && (p.Port() == "" || p.Port() == t.Port()) &&
		(path == "" || t.Path == path || strings.HasPrefix(t.Path, path+"/"))
}

// addresses returns the servers that the plan of a task names, whatever Targets says.
func (t *Task) addresses() ([]string, error) {
	l, err := t.level(&redact.Secrets{})
	if err != nil {
		return nil, err
	}
	p := l.Plan
	if err := insidePath(p.Endpoint); err != nil {
		return nil, err
	}
	all := p.BaseURLs()
	for _, address := range slices.Concat(p.MetricsURL, p.GPUMetricsURL) {
		if strings.Contains(address, "://") {
			all = append(all, address)
		}
	}
	for _, address := range all {
		if err := insidePath(address); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// insidePath refuses a path that leaves its directory.
func insidePath(text string) error {
	plain := strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", `\`, "/").Replace(text)
	for part := range strings.SplitSeq(plain, "/") {
		if part == ".." {
			return fmt.Errorf("the path %s contains ..: write it without", path.Clean(plain))
		}
	}
	return nil
}
