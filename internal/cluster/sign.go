package cluster

import (
	"encoding/base64"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// signatureHeader holds the sender's signature of a message.
const signatureHeader = "Tacho-Signature"

// signedText returns the bytes that a signature covers. The subject of an answer is
// unique to its question and the subject of records names run, level and agent, so a
// signature is worthless anywhere else.
func signedText(subject string, h nats.Header, body []byte) []byte {
	return fmt.Appendf(nil, "tacho message 1\n%s\n%s\n%s\n%s", subject, h.Get(offsetHeader), h.Get(endHeader), body)
}

// sign adds a signature to a message. The subject and all other headers must be set.
func (i *Identity) sign(m *nats.Msg) error {
	signature, err := i.pair.Sign(signedText(m.Subject, m.Header, m.Data))
	if err != nil {
		return err
	}
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Set(signatureHeader, base64.RawURLEncoding.EncodeToString(signature))
	return nil
}

// signedBy reports whether the owner of a public key signed a message.
func signedBy(key, subject string, h nats.Header, body []byte) bool {
	public, err := nkeys.FromPublicKey(key)
	if err != nil {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(h.Get(signatureHeader))
	return err == nil && public.Verify(signedText(subject, h, body), signature) == nil
}

// respond answers a request with a signed message.
func (i *Identity) respond(request *nats.Msg, body []byte) error {
	m := nats.NewMsg(request.Reply)
	m.Data = body
	if err := i.sign(m); err != nil {
		return err
	}
	return request.RespondMsg(m)
}
