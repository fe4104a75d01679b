package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// All clients of a NATS server may have one token, so NATS can neither tell who sent a message nor hide a plan. Messages
// are signed, and commands are also encrypted for one agent.

// Headers of signed messages.
const (
	signatureHeader = "Tacho-Signature"
	fromHeader      = "Tacho-From" // of a command: the coordinator's public key
	sealHeader      = "Tacho-Box"  // of a command: the public key that it is encrypted with
)

// signedText returns the bytes that a signature covers. The subject of an answer is unique to its question, the subject
// of a command names the agent, and the subject of records names run, level and agent, so a signature is worthless
// anywhere else.
func signedText(m *nats.Msg) []byte {
	text := []byte("tacho message 2\n" + m.Subject + "\n")
	for _, name := range []string{offsetHeader, endHeader, fromHeader, sealHeader} {
		text = append(append(text, m.Header.Get(name)...), '\n')
	}
	return append(text, m.Data...)
}

// signedBy reports whether the owner of a public key signed a message.
func signedBy(key string, m *nats.Msg) bool {
	public, err := nkeys.FromPublicKey(key)
	if err != nil {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(m.Header.Get(signatureHeader))
	return err == nil && public.Verify(signedText(m), signature) == nil
}

// An Identity is a key pair that signs messages.
type Identity struct{ pair nkeys.KeyPair }

// NewIdentity returns a new key pair.
func NewIdentity() (*Identity, error) {
	pair, err := nkeys.CreateUser()
	return &Identity{pair}, err
}

// Seed returns the secret that StoredIdentity reads.
func (i *Identity) Seed() ([]byte, error) { return i.pair.Seed() }

// Public returns the public key.
func (i *Identity) Public() string {
	key, _ := i.pair.PublicKey() // a key pair has a public key
	return key
}

// Derive returns a secret that depends on the key pair and the purpose. It does not reveal the key.
func (i *Identity) Derive(purpose string) string {
	return base64.RawURLEncoding.EncodeToString(i.mac(purpose)[:18])
}

func (i *Identity) mac(purpose string) []byte {
	seed, _ := i.pair.Seed() // a key pair has a seed
	mac := hmac.New(sha256.New, seed)
	_, _ = mac.Write([]byte(purpose)) // never fails
	return mac.Sum(nil)
}

// sign adds a signature to a message. The subject and all other headers must be set.
func (i *Identity) sign(m *nats.Msg) error {
	signature, err := i.pair.Sign(signedText(m))
	m.Header.Set(signatureHeader, base64.RawURLEncoding.EncodeToString(signature))
	return err
}

// send publishes a signed message with a JSON body.
func (i *Identity) send(nc *nats.Conn, subject, reply string, body any) error {
	m := nats.NewMsg(subject)
	m.Reply = reply
	var err error
	if m.Data, err = json.Marshal(body); err == nil {
		err = i.sign(m)
	}
	if err == nil {
		err = nc.PublishMsg(m)
	}
	return err
}

// A sealer encrypts and signs commands. Each coordinator has a new key, so agents notice that another one continues.
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
func (s *sealer) seal(agent *agentInfo, o *command) (*nats.Msg, error) {
	m := nats.NewMsg(agent.orderSubject())
	m.Header.Set(fromHeader, s.identity.Public())
	m.Header.Set(sealHeader, s.public)
	text, err := json.Marshal(o)
	if err == nil {
		m.Data, err = s.key.Seal(text, agent.SealKey)
	}
	if err == nil {
		err = s.identity.sign(m)
	}
	return m, err
}

// decrypt checks a message and decrypts its command.
func (a *agent) decrypt(m *nats.Msg) (*command, error) {
	o := &command{from: m.Header.Get(fromHeader), sealKey: m.Header.Get(sealHeader)}
	if len(a.Trust) > 0 && !slices.Contains(a.Trust, o.from) {
		shown := o.from
		if !nkeys.IsValidPublicKey(shown) {
			shown = "without a key"
		}
		return nil, fmt.Errorf("the coordinator %s is not trusted here: start the agent with --trust %[1]s if you trust it", shown)
	}
	if !signedBy(o.from, m) {
		return nil, errors.New("the signature of the command is wrong")
	}
	text, err := a.unseal.Open(m.Data, o.sealKey)
	if err != nil {
		return nil, errors.New("the command is encrypted for another agent")
	}
	if json.Unmarshal(text, o) != nil {
		return nil, errors.New("the command cannot be decoded")
	}
	return o, nil
}

// CheckKey returns an error if a key is not a public key.
func CheckKey(key string) error {
	if !nkeys.IsValidPublicKey(key) {
		return fmt.Errorf("%q is not a public key: copy the one that tacho bench --agents prints", key)
	}
	return nil
}
