package workload

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// fileColumn is an image or audio in a row of a hub dataset: its contents, its path, or
// both.
type fileColumn struct {
	Bytes []byte `json:"bytes"`
	Path  string `json:"path"`
}

// mediaRows reads the audio and images of rows if the backend can send them.
type mediaRows struct {
	Options
	outside int // audio outside the length limits
	unknown int // audio of unknown length, if there are limits
}

// defaultTranscript is the default number of output tokens for transcription, as in the
// reference.
const defaultTranscript = 1024

// transcribe is the instruction for a chat model with audio input.
const transcribe = "Write down what is said."

// audio returns the entry of a row with audio. It returns nil if the row contains no audio or
// the backend does not accept audio. use is set if the length of the audio is within
// limits.
func (m *mediaRows) audio(row json.RawMessage) (e *entry, use bool, err error) {
	if !m.Audio && !m.Media {
		return nil, false, nil
	}
	var columns struct {
		Audio *fileColumn `json:"audio"`
	}
	_ = json.Unmarshal(row, &columns) // ignore columns of another type
	if columns.Audio == nil || columns.Audio.Path == "" && len(columns.Audio.Bytes) == 0 {
		return nil, false, nil
	}
	data := columns.Audio.Bytes
	if len(data) == 0 {
		if data, err = atomicfile.Read(columns.Audio.Path); err != nil {
			return nil, false, fmt.Errorf("audio: the row does not contain its bytes: %w", err)
		}
	}
	text := transcribe
	e = &entry{Prompt: &text, OutputTokens: defaultTranscript, audio: &tacho.Audio{Name: filepath.Base(columns.Audio.Path), Data: data}}
	if len(filepath.Ext(e.audio.Name)) < 2 {
		e.audio.Name = "audio." + audioFormat(e.audio)
	}
	return e, m.wanted(audioSeconds(data)), nil
}

func (m *mediaRows) wanted(seconds float64) bool {
	o := m.AudioLimits
	bounded := o.MinS > 0 || o.MaxS > 0
	switch {
	case seconds == 0 && bounded:
		m.unknown++
		return false
	case seconds < o.MinS || o.MaxS > 0 && seconds > o.MaxS:
		m.outside++
		return false
	}
	return true
}

// images returns the images of a row as data URLs.
func (m *mediaRows) images(row json.RawMessage) (urls []string) {
	if !m.Media {
		return nil
	}
	var columns struct {
		Image  *fileColumn  `json:"image"`
		Images []fileColumn `json:"images"`
	}
	_ = json.Unmarshal(row, &columns) // columns of other types have no images
	files := columns.Images
	if columns.Image != nil {
		files = slices.Insert(files, 0, *columns.Image)
	}
	for _, f := range files {
		if len(f.Bytes) > 0 {
			urls = append(urls, dataURL(imageType(f.Path, f.Bytes), f.Bytes))
		}
	}
	return urls
}

// notes reports the audio that was left out.
func (m *mediaRows) notes() (out []string) {
	if m.outside > 0 {
		most := "any"
		if m.AudioLimits.MaxS > 0 {
			most = fmt.Sprint(m.AudioLimits.MaxS)
		}
		out = append(out, fmt.Sprintf("%d audio inputs not between %v and %s s were left out (--asr-min-audio-len-sec, --asr-max-audio-len-sec)", m.outside, m.AudioLimits.MinS, most))
	}
	if m.unknown > 0 {
		out = append(out, fmt.Sprintf("%d audio inputs of unknown length were left out; convert them to %s, or remove --asr-min-audio-len-sec and --asr-max-audio-len-sec", m.unknown, audioFormats))
	}
	return out
}

func (m *mediaRows) also() string {
	if notes := m.notes(); len(notes) > 0 {
		return " that can be used: " + fmt.Sprint(notes)
	}
	return ""
}
