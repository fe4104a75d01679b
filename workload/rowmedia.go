package workload

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"tacho"
	"tacho/internal/wholefile"
)

// A fileColumn is a picture or a sound in a row of a hub dataset: its contents,
// its path, or both.
type fileColumn struct {
	Bytes []byte `json:"bytes"`
	Path  string `json:"path"`
}

// mediaRows reads the sounds and pictures of a dataset's rows, where the
// backend can send them.
type mediaRows struct {
	Options
	outside int // sounds that are too short or too long
	unknown int // sounds whose length is not known, though it matters
}

// defaultTranscript is how many tokens are asked for where nobody says, as in
// the reference.
const defaultTranscript = 1024

// transcribe is what a chat model is told to do with a sound.
const transcribe = "Write down what is said."

// sound is the entry of a row with a sound, nil if it has none or the backend
// takes none; use is whether it is of a length that is wanted.
func (m *mediaRows) sound(row json.RawMessage) (e *entry, use bool, err error) {
	if !m.Audio && !m.Media {
		return nil, false, nil
	}
	var columns struct {
		Audio *fileColumn `json:"audio"`
	}
	_ = json.Unmarshal(row, &columns) // a column of another type has no sound
	if columns.Audio == nil || columns.Audio.Path == "" && len(columns.Audio.Bytes) == 0 {
		return nil, false, nil
	}
	data := columns.Audio.Bytes
	if len(data) == 0 {
		if data, err = wholefile.Read(columns.Audio.Path); err != nil {
			return nil, false, fmt.Errorf("audio: its bytes are not in the row: %w", err)
		}
	}
	text := transcribe
	e = &entry{Prompt: &text, OutputTokens: defaultTranscript, sound: &tacho.Audio{Name: filepath.Base(columns.Audio.Path), Data: data}}
	if len(filepath.Ext(e.sound.Name)) < 2 {
		e.sound.Name = "audio." + soundFormat(e.sound)
	}
	return e, m.wanted(soundSeconds(data)), nil
}

func (m *mediaRows) wanted(seconds float64) bool {
	o := m.Sounds
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

// images are the pictures of a row, as data URLs.
func (m *mediaRows) images(row json.RawMessage) (urls []string) {
	if !m.Media {
		return nil
	}
	var columns struct {
		Image  *fileColumn  `json:"image"`
		Images []fileColumn `json:"images"`
	}
	_ = json.Unmarshal(row, &columns) // columns of other types have no pictures
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

// notes tells which sounds were left out.
func (m *mediaRows) notes() (out []string) {
	if m.outside > 0 {
		most := "any"
		if m.Sounds.MaxS > 0 {
			most = fmt.Sprint(m.Sounds.MaxS)
		}
		out = append(out, fmt.Sprintf("%d sounds were left out: they are not between %v and %s s long; --asr-min-audio-len-sec and --asr-max-audio-len-sec set the bounds", m.outside, m.Sounds.MinS, most))
	}
	if m.unknown > 0 {
		out = append(out, fmt.Sprintf("%d sounds were left out: how long they are is not known, for only %s tell it; convert them, or leave out the bounds (--asr-min-audio-len-sec, --asr-max-audio-len-sec)", m.unknown, soundFormats))
	}
	return out
}

func (m *mediaRows) also() string {
	if notes := m.notes(); len(notes) > 0 {
		return " that can be used: " + fmt.Sprint(notes)
	}
	return ""
}
