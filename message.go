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
	Content string // what it says; of a message with parts, the text in them
	// Answer, if above 0, says that the content is the server's answer to the
	// turn of this number in the session, counted from 1. Quote puts it there.
	Answer int
	// Raw is the message as the data has it, where it is more than a role and a
	// text: parts with images, tool calls. Its form is OpenAI's; a backend of
	// another protocol puts it into that protocol's words.
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

// textOf is the text in a content, whichever form it has.
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

// HasMedia says whether the message has parts that are not text: images,
// audio, videos.
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
		return false // its content is a text, or none
	}
	for _, p := range all.Content {
		if p.Type != "text" {
			return true
		}
	}
	return false
}

// An Answer is what the server said in an earlier turn.
type Answer struct {
	Text   string
	Tokens int
}

// Quotes says whether the request waits for an answer of an earlier turn.
func (r *Request) Quotes() bool {
	return slices.ContainsFunc(r.Input.Messages, func(m Message) bool { return m.Answer > 0 })
}

// Quote puts the answers of earlier turns, answers[0] being that of the first,
// where the request's messages ask for them, and gives the input the form in
// which it is sent. A request with messages must not be sent without it.
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
