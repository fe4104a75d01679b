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
)

// An envelope is an order on its way: sealed, so that only one agent can read it,
// and signed by the coordinator.
type envelope struct {
	From string `json:"from"` // the coordinator's public key
	Box  string `json:"box"`  // the public key that it was sealed with
	Body []byte `json:"body"`
	Sig  []byte `json:"sig"`
}

// mostMessage bounds a message that is read, in bytes.
const mostMessage = 8 << 20

// signed is what the signature is of: who it is for is a part of it.
func (e *envelope) signed(agent string) []byte {
	return fmt.Appendf(nil, "tacho order 1\n%s\n%s\n%s", agent, e.Box, e.Body)
}

// An Identity is the key that a coordinator signs with.
type Identity struct{ pair nkeys.KeyPair }

// NewIdentity makes a key.
func NewIdentity() (*Identity, error) {
	pair, err := nkeys.CreateUser()
	return &Identity{pair}, err
}

// ReadIdentity reads the seed of a key.
func ReadIdentity(seed []byte) (*Identity, error) {
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return nil, fmt.Errorf("this is no seed of an nkey: %w", err)
	}
	return &Identity{pair}, nil
}

// Seed is what ReadIdentity reads. It is a secret.
func (i *Identity) Seed() ([]byte, error) { return i.pair.Seed() }

// Public is the key that agents know the coordinator by.
func (i *Identity) Public() string {
	key, _ := i.pair.PublicKey() // it has one
	return key
}

// Derive makes a secret of the key: the same one each time, and none that tells
// of the key.
func (i *Identity) Derive(purpose string) string {
	seed, _ := i.pair.Seed() // it has one
	mac := hmac.New(sha256.New, seed)
	_, _ = mac.Write([]byte(purpose)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

// A sealer writes envelopes.
type sealer struct {
	identity *Identity
	box      nkeys.KeyPair
	public   string // of box
}

func newSealer(i *Identity) (*sealer, error) {
	box, err := nkeys.CreateCurveKeys()
	if err != nil {
		return nil, err
	}
	public, err := box.PublicKey()
	return &sealer{i, box, public}, err
}

// seal makes a message for one agent.
func (s *sealer) seal(agent, box string, o *order) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	e := envelope{From: s.identity.Public(), Box: s.public}
	if e.Body, err = s.box.Seal(text, box); err != nil {
		return nil, err
	}
	if e.Sig, err = s.identity.pair.Sign(e.signed(agent)); err != nil {
		return nil, err
	}
	return json.Marshal(&e)
}

// A guard opens the envelopes of coordinators that are trusted.
type guard struct {
	agent string   // whose envelopes these are
	trust []string // public keys; none is whoever NATS let in
	box   nkeys.KeyPair
}

// open checks an envelope and reads the order in it.
func (g *guard) open(message []byte) (*order, *envelope, error) {
	var e envelope
	if len(message) > mostMessage {
		return nil, nil, errors.New("the message is too long")
	}
	if err := json.Unmarshal(message, &e); err != nil {
		return nil, nil, errors.New("this is no order")
	}
	if len(g.trust) > 0 && !slices.Contains(g.trust, e.From) {
		return nil, nil, fmt.Errorf("the coordinator %s is not trusted here: start the agent with --trust %[1]s if it should be", shortKey(e.From))
	}
	key, err := nkeys.FromPublicKey(e.From)
	if err != nil {
		return nil, nil, errors.New("the coordinator's key is none")
	}
	if key.Verify(e.signed(g.agent), e.Sig) != nil {
		return nil, nil, errors.New("the order's signature is wrong")
	}
	if !nkeys.IsValidPublicCurveKey(e.Box) {
		return nil, nil, errors.New("the order is sealed with a key that is none")
	}
	text, err := g.box.Open(e.Body, e.Box)
	if err != nil {
		return nil, nil, errors.New("the order is sealed for somebody else")
	}
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, nil, errors.New("the order cannot be read")
	}
	return &o, &e, nil
}

// shortKey is a key as it may be printed, whatever somebody sent as one.
func shortKey(key string) string {
	if !nkeys.IsValidPublicKey(key) {
		return "without a key"
	}
	return key
}

// CheckKey says why nobody signs with a key.
func CheckKey(key string) error {
	if !nkeys.IsValidPublicKey(key) {
		return fmt.Errorf("%q is no public key: tacho bench --agents prints the one to write here", key)
	}
	return nil
}

// AnyTarget allows every target.
const AnyTarget = "any"

// CheckTarget says why a pattern of targets would never fit one.
func CheckTarget(pattern string) error {
	if pattern == AnyTarget {
		return nil
	}
	u, err := url.Parse(pattern)
	if err == nil && (u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") || u.Scheme == "unix" && u.Path != "") {
		return nil
	}
	return fmt.Errorf("%q is no server: write it as http://host:8000, or %s for every one", pattern, AnyTarget)
}

// allowed says why requests may not go to a target; nil if they may. A pattern is
// the beginning of an address, as http://host:8000; one without a port is all
// ports of that host.
func allowed(patterns []string, target string) error {
	t, err := url.Parse(target)
	if err != nil {
		return errors.New("the plan's target is no address")
	}
	for _, pattern := range patterns {
		if pattern == AnyTarget || matches(pattern, t) {
			return nil
		}
	}
	shown := t.Scheme + "://" + t.Host
	return fmt.Errorf("the target %s is not among those that this agent was started for: add --allow-target %[1]s there", shown)
}

func matches(pattern string, t *url.URL) bool {
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
