package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

var customImage = Kind{
	Name: "custom_image", Doc: `JSON lines with images: {"prompt": "...", "image_files": [...]} or {"content": [{"type": "text", ...}, {"type": "image", "image": "..."}]}; files are sent by name, or by contents with --custom-ensure-client-side-data`,
	reads:   [][]string{{"prompt", "image_files"}, {"content"}},
	options: customOptions,
	New: func(ctx context.Context, o Options) (Workload, error) {
		if !o.Media {
			return nil, errors.New("custom_image needs a backend that accepts images in messages, such as openai-chat")
		}
		return newCustomOf(ctx, o, "custom_image", func(e *entry) error {
			if len(e.ImageFiles) == 0 && e.Content == nil {
				return errors.New(`neither "image_files" nor "content"`)
			}
			return nil
		})
	},
}

var customAudio = Kind{
	Name: "custom_audio", Doc: `JSON lines with audio: {"prompt": "...", "audio": "/path.wav"}, for transcription (openai-audio, without the prompt) or in a message`,
	reads:   [][]string{{"prompt", "audio"}},
	options: customOptions,
	New: func(ctx context.Context, o Options) (Workload, error) {
		if !o.Media && !o.Audio {
			return nil, errors.New("custom_audio needs a backend that accepts audio, such as openai-audio or openai-chat")
		}
		return newCustomOf(ctx, o, "custom_audio", func(e *entry) error {
			if e.Audio == "" {
				return errors.New(`no "audio"`)
			}
			return nil
		})
	},
}

// checkMedia checks the images and audio of a line. It only looks for the files; they are
// read when they are sent.
func (e *entry) checkMedia() error {
	files := e.ImageFiles
	if e.Audio != "" {
		files = append(files[:len(files):len(files)], e.Audio)
	}
	for _, where := range files {
		path, isFile := strings.CutPrefix(where, "file://")
		if strings.HasPrefix(where, "data:") || !isFile && strings.Contains(where, "://") && where != e.Audio {
			continue
		}
		if _, err := atomicfile.Stat(path); err != nil {
			return err
		}
	}
	if e.Content != nil {
		_, err := contentParts(e.Content, false)
		return err
	}
	return nil
}

// contentText returns the text in the content parts of a line.
func (e *entry) contentText() string {
	var list []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(e.Content, &list) // checked before
	var b strings.Builder
	for _, p := range list {
		b.WriteString(p.Text)
	}
	return b.String()
}

// mediaParts returns the parts of a line with images. Files of "images" are always sent;
// files of "image_files" and "content" only if send is set.
func (e *entry) mediaParts(opening string, send bool) ([]part, error) {
	if e.Content != nil {
		parts, err := contentParts(e.Content, send)
		if err == nil && opening != "" {
			parts = append([]part{textPart(opening)}, parts...)
		}
		return parts, err
	}
	parts := []part{textPart(opening + e.text())}
	for _, where := range e.Images {
		url, err := imageAddress(where, true)
		if err != nil {
			return nil, err
		}
		parts = append(parts, imagePart(url))
	}
	for _, where := range e.ImageFiles {
		url, err := clientImage(where, send)
		if err != nil {
			return nil, fmt.Errorf("image_files: %w", err)
		}
		parts = append(parts, imagePart(url))
	}
	return parts, nil
}
