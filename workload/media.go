package workload

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// part is one content part of a message in OpenAI's format; videos use vLLM's extension.
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

func audioPart(a *tacho.Audio) part {
	return part{Type: "input_audio", Audio: map[string]any{"data": base64.StdEncoding.EncodeToString(a.Data), "format": audioFormat(a)}}
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// userMessage returns a user message with content parts.
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

// setAudio makes audio the input of a request: as a transcription request if the backend
// transcribes, otherwise as a message next to a text.
func setAudio(q *tacho.Request, text string, audio *tacho.Audio, o Options) error {
	q.InputTokens, q.AudioS = 0, audioSeconds(audio.Data)
	switch {
	case o.Audio:
		q.Input = tacho.Input{Audio: audio}
		return nil
	case !o.Media:
		return errors.New("audio needs a backend that accepts it, such as openai-audio or openai-chat")
	}
	parts := []part{audioPart(audio)}
	if text != "" {
		parts = []part{textPart(text), parts[0]}
	}
	m, err := userMessage(parts)
	q.Input = tacho.Input{Messages: []tacho.Message{m}}
	return err
}

// imageAddress returns the URL of an image for the server. If send is set, local files
// are sent as data URLs; otherwise the server must have the same files.
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
	b, err := atomicfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("image: %w", err)
	}
	return dataURL(imageType(path, b), b), nil
}

// imageType returns the MIME type of an image, by its contents or else by its name.
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

// contentParts parses the content of a custom_image line: texts and images in any order.
// An image is {"type":"image","image":WHERE} or in OpenAI's format.
func contentParts(content json.RawMessage, send bool) ([]part, error) {
	var list []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Image string          `json:"image"`
		URL   json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf(`"content" is not a list of parts: %w`, err)
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
			return nil, fmt.Errorf("part %d has the unknown type %q; use text, image or image_url", i, p.Type)
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

// clientImage is imageAddress for users who want all data sent by the client. It rejects
// images the server would have to fetch.
func clientImage(where string, send bool) (string, error) {
	address, err := imageAddress(where, send)
	if err == nil && send && !strings.HasPrefix(address, "data:") {
		err = fmt.Errorf("%q is on another machine; download it, or remove --custom-ensure-client-side-data", where)
	}
	return address, err
}

// messageSeconds returns the total length of the audio in a message.
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
		return 0 // invalid messages are left for the server to reject
	}
	sum := 0.0
	for _, p := range all.Content {
		sum += audioSeconds(p.Audio.Data)
	}
	return sum
}
