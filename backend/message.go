package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"tacho"
)

// A message is an entry of a conversation in no protocol's words: what a
// workload has in OpenAI's is read into it, and each other protocol writes it
// its own way.
type message struct {
	role   string
	parts  []part
	calls  []toolCall // of functions, by the assistant
	callID string     // of the call whose result it is
}

// text is what its parts say.
func (m *message) text() string {
	var b strings.Builder
	for i := range m.parts {
		b.WriteString(m.parts[i].text)
	}
	return b.String()
}

// A toolCall is a call of a function.
type toolCall struct {
	id, name  string
	arguments rawJSON // an object
}

// A part is one piece of a message: text, or an image, audio or a video,
// either its data or its address.
type part struct {
	kind partKind
	text string
	mime string // of data
	data string // in base64
	url  string // if it is not here
}

type partKind string

const (
	textPart  partKind = "text"
	imagePart partKind = "image"
	audioPart partKind = "audio"
	videoPart partKind = "video"
)

// noPlace is the error of a protocol that cannot carry a part.
func (p *part) noPlace(protocol string) error {
	return fmt.Errorf("%s has no place for %s: use a backend that has (openai-chat has one for image, audio and video), or a workload without", protocol, p.kind)
}

// notHere is the error of a protocol that wants the thing itself.
func (p *part) notHere(protocol string) error {
	return fmt.Errorf("%s takes %s only as data, and not by its address %.80q: give the file itself, with --custom-ensure-client-side-data if the data is custom_image", protocol, p.kind, p.url)
}

// reachable complains about an address that means a file of the server's
// machine, which is for servers that were told to allow it.
func (p *part) reachable(protocol string) error {
	if strings.HasPrefix(p.url, "file:") {
		return p.notHere(protocol)
	}
	return nil
}

// readMessages reads an input of text or of messages.
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

// read takes a message in OpenAI's words.
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
			return fmt.Errorf("the arguments of the call of %q are no JSON object: %.80q", c.Function.Name, arguments)
		}
		m.calls = append(m.calls, toolCall{c.ID, c.Function.Name, arguments})
	}
	return m.readContent(all.Content)
}

func (m *message) readContent(content rawJSON) error {
	var text *string
	if len(content) == 0 || json.Unmarshal(content, &text) == nil {
		if text != nil {
			m.parts = []part{{kind: textPart, text: *text}}
		}
		return nil
	}
	var parts []openAIPart
	if err := json.Unmarshal(content, &parts); err != nil {
		return fmt.Errorf("its content is neither a text nor a list of parts: %w", err)
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

// An openAIPart is a part in OpenAI's words, and in vLLM's for what OpenAI has
// no word for.
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

// An address is a URL, bare or in an object.
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
		return part{}, fmt.Errorf("type %q is not known: text, image_url, input_audio, audio_url and video_url are", p.Type)
	}
}

// part is what an address means: a data URL has the thing in it.
func (a address) part(kind partKind) (part, error) {
	head, data, isData := strings.Cut(string(a), ",")
	mime, ok := strings.CutPrefix(head, "data:")
	switch {
	case a == "":
		return part{}, fmt.Errorf("the %s has no address", kind)
	case !ok:
		return part{kind: kind, url: string(a)}, nil
	case !isData || !strings.HasSuffix(mime, ";base64"):
		return part{}, fmt.Errorf("the %s is in a data URL that is not in base64: %.40q", kind, string(a))
	}
	return part{kind: kind, mime: strings.TrimSuffix(mime, ";base64"), data: data}, nil
}

// format is the name of the file format that a MIME type stands for.
func (p *part) format() string {
	_, format, _ := strings.Cut(p.mime, "/")
	return strings.TrimPrefix(format, "x-")
}

// A function is what the model may call.
type function struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Parameters  rawJSON `json:"parameters"`
}

// schema is that of its parameters; the empty one if it has none.
func (f *function) schema() rawJSON {
	if len(f.Parameters) == 0 {
		return rawJSON(`{"type":"object","properties":{}}`)
	}
	return f.Parameters
}

// A toolbox is what a request says of tools.
type toolbox struct {
	functions []function
	choice    string // auto, none, required or a function's name; empty if it is not said
	forced    bool   // choice is a function's name
}

// takeTools takes OpenAI's tools and tool_choice out of the fields that are
// merged into a body, the later map over the earlier. What is not in OpenAI's
// words stays there: it is the server's own.
func takeTools(extras ...map[string]any) (t toolbox, rest map[string]any, err error) {
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

// readTools reads a list of tools, and says whether it is in OpenAI's words.
func (t *toolbox) readTools(raw rawJSON) bool {
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

// readChoice reads which tool is to be called, and says whether it is in
// OpenAI's words.
func (t *toolbox) readChoice(raw rawJSON) bool {
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
