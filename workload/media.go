package workload

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"tacho"
	"tacho/internal/wholefile"
)

// A part is one piece of a message, in OpenAI's words, and in vLLM's for videos.
type part struct {
	Type  string         `json:"type"`
	Text  string         `json:"text,omitempty"`
	Image map[string]any `json:"image_url,omitempty"`
	Video map[string]any `json:"video_url,omitempty"`
	Audio map[string]any `json:"input_audio,omitempty"`
}

func textPart(text string) part { return part{Type: "text", Text: text} }

func imagePart(url string) part {
	return part{Type: "image_url", Image: map[string]any{"url": url}}
}

func videoPart(url string) part {
	return part{Type: "video_url", Video: map[string]any{"url": url}}
}

func soundPart(a *tacho.Audio) part {
	return part{Type: "input_audio", Audio: map[string]any{"data": base64.StdEncoding.EncodeToString(a.Data), "format": soundFormat(a)}}
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// userMessage is a message of the user that has parts.
func userMessage(parts []part) (tacho.Message, error) {
	m := tacho.Message{Role: "user"}
	for _, p := range parts {
		m.Content += p.Text
	}
	var err error
	m.Raw, err = json.Marshal(struct {
		Role    string `json:"role"`
		Content []part `json:"content"`
	}{"user", parts})
	return m, err
}

// setSound makes a sound the input of a request: to be written down, where the
// backend does that, or in a message beside a text.
func setSound(q *tacho.Request, text string, sound *tacho.Audio, o Options) error {
	q.InputTokens, q.AudioS = 0, soundSeconds(sound.Data)
	switch {
	case o.Audio:
		q.Input = tacho.Input{Audio: sound}
		return nil
	case !o.Media:
		return errors.New("audio needs a backend that takes it, such as openai-audio or openai-chat")
	}
	parts := []part{soundPart(sound)}
	if text != "" {
		parts = []part{textPart(text), parts[0]}
	}
	m, err := userMessage(parts)
	q.Input = tacho.Input{Messages: []tacho.Message{m}}
	return err
}

// imageAddress is where the server finds a picture. With send files of this
// machine are sent along, and otherwise they are named: the server must have
// them too.
func imageAddress(where string, send bool) (string, error) {
	path, isFile := strings.CutPrefix(where, "file://")
	switch {
	case strings.HasPrefix(where, "data:"):
		return where, nil
	case !isFile && strings.Contains(where, "://"):
		return where, nil
	case !send:
		full, err := filepath.Abs(path)
		return "file://" + full, err
	}
	b, err := wholefile.Read(path)
	if err != nil {
		return "", fmt.Errorf("image: %w", err)
	}
	return dataURL(imageType(path, b), b), nil
}

// imageType is the MIME type of a picture, by what is in it, or else by its
// name.
func imageType(path string, data []byte) string {
	if found := http.DetectContentType(data); strings.HasPrefix(found, "image/") {
		return found
	}
	kind := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if kind == "jpg" || kind == "" {
		kind = "jpeg"
	}
	return "image/" + kind
}

// contentParts are the parts of a line of custom_image: texts and images in
// any order, an image as {"type":"image","image":WHERE} or as OpenAI has it.
func contentParts(content json.RawMessage, send bool) ([]part, error) {
	var list []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Image string          `json:"image"`
		URL   json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf(`"content" is no list of parts: %w`, err)
	}
	var out []part
	for i, p := range list {
		image := map[string]any{"url": p.Image}
		switch p.Type {
		case "text":
			out = append(out, textPart(p.Text))
			continue
		case "image":
		case "image_url":
			var url string
			if json.Unmarshal(p.URL, &url) == nil {
				image["url"] = url
			} else if err := json.Unmarshal(p.URL, &image); err != nil {
				return nil, fmt.Errorf(`part %d: "image_url" is neither an address nor an object with a "url": %w`, i, err)
			}
		default:
			return nil, fmt.Errorf("part %d has type %q: text, image and image_url are known", i, p.Type)
		}
		where, _ := image["url"].(string)
		if where == "" {
			return nil, fmt.Errorf("part %d has no image", i)
		}
		var err error
		if image["url"], err = clientImage(where, send); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		out = append(out, part{Type: "image_url", Image: image})
	}
	return out, nil
}

// clientImage is imageAddress for those who want all data sent along, and
// nothing fetched by the server.
func clientImage(where string, send bool) (string, error) {
	address, err := imageAddress(where, send)
	if err == nil && send && !strings.HasPrefix(address, "data:") {
		err = fmt.Errorf("%q is on another machine: download it, or leave out --custom-ensure-client-side-data", where)
	}
	return address, err
}

// messageSeconds is how long the sounds in a message are.
func messageSeconds(m *tacho.Message) float64 {
	if !strings.Contains(string(m.Raw), `"input_audio"`) {
		return 0
	}
	var all struct {
		Content []struct {
			Audio struct {
				Data []byte `json:"data"`
			} `json:"input_audio"`
		} `json:"content"`
	}
	if json.Unmarshal(m.Raw, &all) != nil {
		return 0 // it is the server's to complain about
	}
	sum := 0.0
	for _, p := range all.Content {
		sum += soundSeconds(p.Audio.Data)
	}
	return sum
}
