package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/tacho-bench/tacho"
)

// A message is one entry of a conversation, independent of the protocol. Workloads use OpenAI's format; read parses
// it, and each protocol encodes messages in its own format.
type message struct {
	role   string
	parts  []part
	calls  []toolCall // function calls by the assistant
	callID string     // id of the call this message answers
}

// text returns the text of all parts.
func (m *message) text() string {
	var b strings.Builder
	for i := range m.parts {
		b.WriteString(m.parts[i].text)
	}
	return b.String()
}

// A toolCall is a function call.
type toolCall struct {
	id, name  string
	arguments rawJSON // an object
}

// A part is one piece of a message: text, image, audio or video. Media are either data or a URL.
type part struct {
	kind partKind
	text string
	mime string // MIME type of data
	data string // base64
	url  string // set if data is empty
}

type partKind string

const (
	textPart  partKind = "text"
	imagePart partKind = "image"
	audioPart partKind = "audio"
	videoPart partKind = "video"
)

// errUnsupported is the error if the protocol cannot carry the part.
func (p *part) errUnsupported(protocol string) error {
	return fmt.Errorf("%s does not support %s: use another backend (openai-chat supports image, audio and video), or another workload", protocol, p.kind)
}

// errNeedsData is the error if the protocol accepts the part only as data.
func (p *part) errNeedsData(protocol string) error {
	return fmt.Errorf("%s accepts %s only as data, not as the URL %.80q: send the file itself (--custom-ensure-client-side-data for custom_image)", protocol, p.kind, p.url)
}

// checkReachable rejects the URL of a file on the server's machine, which only some servers can be configured to
// allow.
func (p *part) checkReachable(protocol string) error {
	if strings.HasPrefix(p.url, "file:") {
		return p.errNeedsData(protocol)
	}
	return nil
}

// readMessages converts a text or messages.
func readMessages(in *tacho.Input) ([]message, error) {
	if in.Messages == nil {
		return []message{{role: "user", parts: []part{{kind: textPart, text: in.Text}}}}, nil
	}
	out := make([]message, len(in.Messages))
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Raw == nil {
			out[i] = message{role: m.Role, parts: []part{{kind: textPart, text: m.Content}}}
			continue
		}
		if err := out[i].read(m.Raw); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return out, nil
}

// read parses a message in OpenAI's format.
func (m *message) read(raw rawJSON) error {
	var all struct {
		Role    string  `json:"role"`
		Content rawJSON `json:"content"`
		CallID  string  `json:"tool_call_id"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	m.role, m.callID = all.Role, all.CallID
	for _, c := range all.Calls {
		arguments := rawJSON(strings.TrimSpace(c.Function.Arguments))
		if len(arguments) == 0 {
			arguments = rawJSON("{}")
		}
		if !json.Valid(arguments) || arguments[0] != '{' {
			return fmt.Errorf("the arguments of the call of %q are not a JSON object: %.80q", c.Function.Name, arguments)
		}
		m.calls = append(m.calls, toolCall{c.ID, c.Function.Name, arguments})
	}
	var text *string
	if len(all.Content) == 0 || json.Unmarshal(all.Content, &text) == nil {
		if text != nil {
			m.parts = []part{{kind: textPart, text: *text}}
		}
		return nil
	}
	var parts []openAIPart
	if err := json.Unmarshal(all.Content, &parts); err != nil {
		return fmt.Errorf("its content is neither a string nor a list of parts: %w", err)
	}
	for i := range parts {
		p, err := parts[i].neutral()
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		m.parts = append(m.parts, p)
	}
	return nil
}

// An openAIPart is a part in OpenAI's format, including vLLM's extensions.
type openAIPart struct {
	Type  string  `json:"type"`
	Text  string  `json:"text"`
	Image address `json:"image_url"`
	Video address `json:"video_url"`
	Audio address `json:"audio_url"`
	Input struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// An address is a URL, as a string or as an object.
type address string

// UnmarshalJSON implements json.Unmarshaler.
func (a *address) UnmarshalJSON(b []byte) error {
	var object struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(b, (*string)(a)) == nil {
		return nil
	}
	err := json.Unmarshal(b, &object)
	*a = address(object.URL)
	return err
}

func (p *openAIPart) neutral() (part, error) {
	switch p.Type {
	case "text":
		return part{kind: textPart, text: p.Text}, nil
	case "image_url":
		return p.Image.part(imagePart)
	case "video_url":
		return p.Video.part(videoPart)
	case "audio_url":
		return p.Audio.part(audioPart)
	case "input_audio":
		if p.Input.Data == "" || p.Input.Format == "" {
			return part{}, errors.New(`"input_audio" needs "data" and "format"`)
		}
		return part{kind: audioPart, mime: "audio/" + p.Input.Format, data: p.Input.Data}, nil
	default:
		return part{}, fmt.Errorf("unknown type %q (have text, image_url, input_audio, audio_url, video_url)", p.Type)
	}
}

// part converts a URL to a part. A data URL becomes data.
func (a address) part(kind partKind) (part, error) {
	head, data, isData := strings.Cut(string(a), ",")
	mime, ok := strings.CutPrefix(head, "data:")
	switch {
	case a == "":
		return part{}, fmt.Errorf("the %s has no URL", kind)
	case !ok:
		return part{kind: kind, url: string(a)}, nil
	case !isData || !strings.HasSuffix(mime, ";base64"):
		return part{}, fmt.Errorf("the data URL of the %s is not base64: %.40q", kind, string(a))
	}
	return part{kind: kind, mime: strings.TrimSuffix(mime, ";base64"), data: data}, nil
}

// format returns the file format of the MIME type.
func (p *part) format() string {
	_, format, _ := strings.Cut(p.mime, "/")
	return strings.TrimPrefix(format, "x-")
}

// A function is a function the model may call.
type function struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Parameters  rawJSON `json:"parameters"`
}

// schema returns the schema of the parameters, or an empty schema if there are none.
func (f *function) schema() rawJSON {
	if len(f.Parameters) == 0 {
		return rawJSON(`{"type":"object","properties":{}}`)
	}
	return f.Parameters
}

// toolOptions are the tool settings of a request.
type toolOptions struct {
	functions []function
	choice    string // auto, none, required or a function name; empty if not set
	forced    bool   // choice is a function name
}

// takeTools moves OpenAI's tools and tool_choice from the extra fields to t. Later maps override earlier ones.
// Values not in OpenAI's format stay in rest, because they are the server's own.
func takeTools(extras ...map[string]any) (t toolOptions, rest map[string]any, err error) {
	rest = map[string]any{}
	for _, extra := range extras {
		maps.Copy(rest, extra)
	}
	if tools, ok := rest["tools"]; ok {
		raw, err := marshal(tools)
		if err != nil {
			return t, rest, fmt.Errorf("tools: %w", err)
		}
		if t.readTools(raw) {
			delete(rest, "tools")
		}
	}
	if choice, ok := rest["tool_choice"]; ok {
		raw, err := marshal(choice)
		if err != nil {
			return t, rest, fmt.Errorf("tool_choice: %w", err)
		}
		if t.readChoice(raw) {
			delete(rest, "tool_choice")
		}
	}
	return t, rest, nil
}

// readTools parses a list of tools and reports whether the list is in OpenAI's format.
func (t *toolOptions) readTools(raw rawJSON) bool {
	var list []struct {
		Type     string    `json:"type"`
		Function *function `json:"function"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return false
	}
	var functions []function
	for _, tool := range list {
		if tool.Type != "function" || tool.Function == nil {
			return false
		}
		functions = append(functions, *tool.Function)
	}
	t.functions = functions
	return true
}

// readChoice parses the tool choice and reports whether the choice is in OpenAI's format.
func (t *toolOptions) readChoice(raw rawJSON) bool {
	var named struct {
		Function *function `json:"function"`
	}
	switch {
	case json.Unmarshal(raw, &t.choice) == nil:
		return true
	case json.Unmarshal(raw, &named) == nil && named.Function != nil:
		t.choice, t.forced = named.Function.Name, true
		return true
	}
	return false
}
