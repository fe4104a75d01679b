package tacho

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A Message is one entry of a conversation.
type Message struct {
	Role    string
	Content string // the text of the message; for a message with parts, the text of all parts
	// If Answer is above 0, Quote sets Content to the server's answer to this turn of the session, counted from 1.
	Answer int
	// Raw is the message in OpenAI's format, if the message is more than a role and a text: parts with images, or
	// tool calls. Backends for other protocols translate Raw.
	Raw json.RawMessage
}

type plainMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Answer  int    `json:"answer,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Raw != nil {
		return m.Raw, nil
	}
	return json.Marshal(plainMessage{m.Role, m.Content, m.Answer})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(b []byte) error {
	var all struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
		Answer  int             `json:"answer"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if all.Role == nil || *all.Role == "" {
		return errors.New(`a message has no "role"`)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	delete(members, "role")
	delete(members, "content")
	delete(members, "answer")
	*m = Message{Role: *all.Role, Answer: all.Answer}
	var text string
	if json.Unmarshal(all.Content, &text) == nil && len(members) == 0 || all.Answer > 0 {
		m.Content = text
		return nil
	}
	m.Raw = slices.Clone(b)
	m.Content = textOf(all.Content)
	return nil
}

// textOf returns the text in a content, which is a string or a list of parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// HasMedia reports whether the message contains images, audio or video.
func (m *Message) HasMedia() bool {
	if m.Raw == nil {
		return false
	}
	var all struct {
		Content []struct {
			Type string `json:"type"`
		} `json:"content"`
	}
	if json.Unmarshal(m.Raw, &all) != nil {
		return false // the content is a string or missing
	}
	for _, p := range all.Content {
		if p.Type != "text" {
			return true
		}
	}
	return false
}

// An Answer is the server's answer in an earlier turn.
type Answer struct {
	Text   string
	Tokens int
}

// Quotes reports whether the request contains the answer of an earlier turn.
func (r *Request) Quotes() bool {
	return slices.ContainsFunc(r.Input.Messages, func(m Message) bool { return m.Answer > 0 })
}

// Quote inserts the answers of earlier turns into the messages, answers[0] being the answer of the first turn, and
// brings the input into the form sent to the server. Every request with messages must be quoted before it is sent.
func (r *Request) Quote(answers []Answer) {
	if r.Input.Messages == nil {
		return
	}
	messages := slices.Clone(r.Input.Messages)
	for i := range messages {
		m := &messages[i]
		if m.Answer > 0 && m.Answer <= len(answers) {
			m.Content = answers[m.Answer-1].Text
			r.InputTokens += answers[m.Answer-1].Tokens
		}
		m.Answer = 0
	}
	r.Input.Messages = messages
	if r.Input.Plain {
		texts := make([]string, len(messages))
		for i, m := range messages {
			texts[i] = m.Content
		}
		r.Input = Input{Text: strings.Join(texts, "\n")}
	}
}
