package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/tacho-bench/tacho/internal/run"
)

// An envelope carries a command. It is encrypted for one agent and signed by the coordinator.
type envelope struct {
	From    string `json:"from"` // the coordinator's public key
	SealKey string `json:"box"`  // public key of the encryption
	Body    []byte `json:"body"`
	Sig     []byte `json:"sig"`
}

// maxMessageBytes bounds the messages that an agent decodes.
const maxMessageBytes = 8 << 20

// signed returns the bytes that the signature covers, including the name of the agent.
func (e *envelope) signed(agent string) []byte {
	return fmt.Appendf(nil, "tacho order 1\n%s\n%s\n%s", agent, e.SealKey, e.Body)
}

// An Identity is a key pair that signs messages.
type Identity struct{ pair nkeys.KeyPair }

// NewIdentity returns a new key pair.
func NewIdentity() (*Identity, error) {
	pair, err := nkeys.CreateUser()
	return &Identity{pair}, err
}

// ReadIdentity reads the seed of a key pair.
func ReadIdentity(seed []byte) (*Identity, error) {
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return nil, fmt.Errorf("not the seed of an nkey: %w", err)
	}
	return &Identity{pair}, nil
}

// Seed returns the secret that ReadIdentity reads.
func (i *Identity) Seed() ([]byte, error) { return i.pair.Seed() }

// Public returns the public key.
func (i *Identity) Public() string {
	key, _ := i.pair.PublicKey() // a key pair has a public key
	return key
}

// Derive returns a secret that depends on the key pair and the purpose. It does not reveal the
// key.
func (i *Identity) Derive(purpose string) string {
	seed, _ := i.pair.Seed() // a key pair has a seed
	mac := hmac.New(sha256.New, seed)
	_, _ = mac.Write([]byte(purpose)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

// A sealer encrypts and signs commands.
type sealer struct {
	identity *Identity
	key      nkeys.KeyPair
	public   string // public part of key
}

func newSealer(i *Identity) (*sealer, error) {
	box, err := nkeys.CreateCurveKeys()
	if err != nil {
		return nil, err
	}
	public, err := box.PublicKey()
	return &sealer{i, box, public}, err
}

// seal encrypts and signs a command for one agent.
func (s *sealer) seal(agent, box string, o *command) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	e := envelope{From: s.identity.Public(), SealKey: s.public}
	if e.Body, err = s.key.Seal(text, box); err != nil {
		return nil, err
	}
	if e.Sig, err = s.identity.pair.Sign(e.signed(agent)); err != nil {
		return nil, err
	}
	return json.Marshal(&e)
}

// A verifier decrypts and checks commands of trusted coordinators.
type verifier struct {
	agent string   // id of the agent
	trust []string // public keys; empty trusts every coordinator on an authenticated NATS server
	key   nkeys.KeyPair
}

// open checks an envelope and decrypts its command.
func (g *verifier) open(message []byte) (*command, *envelope, error) {
	var e envelope
	if len(message) > maxMessageBytes {
		return nil, nil, errors.New("the message is too long")
	}
	if err := json.Unmarshal(message, &e); err != nil {
		return nil, nil, errors.New("the message is not a command")
	}
	if len(g.trust) > 0 && !slices.Contains(g.trust, e.From) {
		return nil, nil, fmt.Errorf("the coordinator %s is not trusted here: start the agent with --trust %[1]s if you trust it", printableKey(e.From))
	}
	key, err := nkeys.FromPublicKey(e.From)
	if err != nil {
		return nil, nil, errors.New("the coordinator's key is not valid")
	}
	if key.Verify(e.signed(g.agent), e.Sig) != nil {
		return nil, nil, errors.New("the signature of the command is wrong")
	}
	if !nkeys.IsValidPublicCurveKey(e.SealKey) {
		return nil, nil, errors.New("the command is encrypted with an invalid key")
	}
	text, err := g.key.Open(e.Body, e.SealKey)
	if err != nil {
		return nil, nil, errors.New("the command is encrypted for another agent")
	}
	var o command
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, nil, errors.New("the command cannot be decoded")
	}
	return &o, &e, nil
}

// printableKey returns a key, or a fixed text if the sender's key is malformed.
func printableKey(key string) string {
	if !nkeys.IsValidPublicKey(key) {
		return "without a key"
	}
	return key
}

// CheckKey returns an error if a key is not a public key.
func CheckKey(key string) error {
	if !nkeys.IsValidPublicKey(key) {
		return fmt.Errorf("%q is not a public key: copy the one that tacho bench --agents prints", key)
	}
	return nil
}

// AnyTarget permits all targets.
const AnyTarget = "any"

// CheckTarget returns an error if a pattern cannot match any target.
func CheckTarget(pattern string) error {
	if pattern == AnyTarget {
		return nil
	}
	u, err := url.Parse(pattern)
	if err == nil && (u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") || u.Scheme == "unix" && u.Path != "") {
		return nil
	}
	return fmt.Errorf("%q is not a server: write http://host:8000, or %s for all servers", pattern, AnyTarget)
}

// checkAddress returns an error if no pattern permits a target. A pattern is the start of an
// address, such as http://host:8000. A pattern without a port permits all ports of the host.
func checkAddress(patterns []string, target string) error {
	t, err := url.Parse(target)
	if err != nil {
		return errors.New("the plan's target is not an address")
	}
	for _, pattern := range patterns {
		if pattern == AnyTarget || matchesTarget(pattern, t) {
			return nil
		}
	}
	shown := t.Scheme + "://" + t.Host
	return fmt.Errorf("this agent does not permit the target %s: start it with --allow-target %[1]s", shown)
}

func matchesTarget(pattern string, t *url.URL) bool {
	p, err := url.Parse(pattern)
	if err != nil || p.Scheme != t.Scheme {
		return false
	}
	if p.Scheme == "unix" {
		return p.Path == t.Path
	}
	if !strings.EqualFold(p.Hostname(), t.Hostname()) || p.Port() != "" && p.Port() != t.Port() {
		return false
	}
	path := strings.TrimSuffix(p.Path, "/")
	return t.Path == path || strings.HasPrefix(t.Path, path+"/") || path == ""
}

// checkTask returns an error if the owner of this agent does not permit a task, because the plan sends requests to a
// server that --allow-target does not name.
func (a *agent) checkTask(t *run.Task) error {
	addresses, err := t.Addresses()
	if err != nil {
		return err
	}
	for _, target := range slices.Concat(addresses, t.Targets) {
		if err := checkAddress(a.Allow, target); err != nil {
			return err
		}
	}
	return nil
}
