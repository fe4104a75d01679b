package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/textproto"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tacho"
	"tacho/internal/jsonscan"
	"tacho/wire"
)

var openAIAudio = Kind{
	Name:        "openai-audio",
	Aliases:     []string{"audio", "transcriptions"},
	Doc:         "the OpenAI transcription endpoint, as vLLM offers it: a sound in, its words out; --endpoint " + wire.OpenAITranslationsPath + " translates",
	Endpoint:    wire.OpenAITranscriptionsPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Audio: true},
	others:      []string{wire.OpenAITranslationsPath},
	carries:     allSampling,
	encode:      encodeAudio,
	contentType: formType,
	decoder:     func(*Options) decoder { return new(transcriptionDecoder) },
	live:        []string{`"content":"`, `"content": "`, `"delta":"`, `"delta": "`},
	models:      openAIModels,
	count:       countPromptTokens,
	flush:       resetPrefixCache,
}

// encodeAudio writes the form in the order of vLLM's own benchmark. A further
// field of the options or the request takes the place of one of these; null
// leaves it out, for a form has no null.
func encodeAudio(o *Options, r *tacho.Request) ([]byte, error) {
	form := audioForm{values: map[string]string{}}
	form.set(wire.OpenAIModelField, modelOf(o, r))
	if r.MaxTokens > 0 {
		form.set(wire.OpenAIMaxTokensField, strconv.Itoa(r.MaxTokens))
	}
	form.set(wire.OpenAIStreamField, "true")
	form.set(wire.OpenAILanguageField, "en")
	form.set(wire.OpenAIIncludeUsageField, "true")
	form.set(wire.OpenAIContinuousUsageField, "true")
	for _, extra := range []map[string]any{o.Sampling.fields(allSampling...), o.Extra, r.Extra} {
		if err := form.merge(extra); err != nil {
			return nil, err
		}
	}
	return form.encode(r)
}

// An audioForm is the fields of a form, in order.
type audioForm struct {
	names  []string
	values map[string]string
}

func (f *audioForm) set(name, value string) {
	if _, has := f.values[name]; !has {
		f.names = append(f.names, name)
	}
	f.values[name] = value
}

// merge sets fields, in the order of their names.
func (f *audioForm) merge(extra map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		switch value := extra[name].(type) {
		case nil:
			f.names = slices.DeleteFunc(f.names, func(n string) bool { return n == name })
			delete(f.values, name)
		case string:
			f.set(name, value)
		default:
			text, err := marshal(value)
			if err != nil {
				return fmt.Errorf("extra body field %q: %w", name, err)
			}
			f.set(name, string(text))
		}
	}
	return nil
}

// encode writes the form, the sound first. Equal requests have equal bodies: the
// boundary is a hash of the request, which is as unlikely to occur in a file as
// a random one.
func (f *audioForm) encode(r *tacho.Request) ([]byte, error) {
	sound := r.Input.Audio
	if len(sound.Data) == 0 {
		return nil, errors.New("the sound is empty")
	}
	var b bytes.Buffer
	b.Grow(len(sound.Data) + 4096)
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundaryOf(r)); err != nil {
		return nil, err
	}
	header := textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition(wire.OpenAIFileField, sound.Name)},
		"Content-Type":        {soundType(sound.Name)},
	}
	file, err := w.CreatePart(header)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(sound.Data); err != nil {
		return nil, err
	}
	for _, name := range f.names {
		if err := w.WriteField(name, f.values[name]); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return b.Bytes(), err
}

func boundaryOf(r *tacho.Request) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s/%d.%d/", r.ID, r.Session, r.Turn) // a hash takes all
	_ = binary.Write(h, binary.LittleEndian, uint64(len(r.Input.Audio.Data)))
	_, _ = h.Write(r.Input.Audio.Data)
	return "tacho-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// formType is the type of a body that is a form. Its first line is the boundary.
func formType(body []byte) string {
	line, _, _ := bytes.Cut(body, []byte("\r\n"))
	return "multipart/form-data; boundary=" + strings.TrimPrefix(string(line), "--")
}

// soundType is the MIME type of a file of sound, by the ending of its name.
func soundType(name string) string {
	switch ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), "."); ext {
	case "":
		return "application/octet-stream"
	case "mp3", "mpga":
		return "audio/mpeg"
	case "m4a":
		return "audio/mp4"
	default:
		return "audio/" + ext
	}
}

// A transcriptionDecoder reads vLLM's chunks, which are those of a chat, and
// OpenAI's own events.
type transcriptionDecoder struct {
	chunks openAIDecoder
	scan   jsonscan.Scanner

	kind, text []byte
	usage      tacho.Usage
	counted    bool
}

func (d *transcriptionDecoder) decode(payload []byte, c *chunk) error {
	if bytes.Contains(payload, []byte(`"transcript.`)) {
		d.kind, d.text, d.usage, d.counted = d.kind[:0], d.text[:0], tacho.Usage{}, false
		if err := d.scan.Document(payload, d.member); err != nil {
			return err
		}
		switch string(d.kind) {
		case openaiTranscriptDelta:
			c.text, c.token = d.text, len(d.text) > 0
			return nil
		case openaiTranscriptDone:
			c.end, c.counted, c.usage = true, d.counted, d.usage
			return nil
		}
	}
	if err := d.chunks.decode(payload, c); err != nil {
		return err
	}
	// Each piece of a long sound has a finish reason: it is not the end.
	c.end = string(payload) == wire.OpenAIDone
	return nil
}

func (d *transcriptionDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "type":
		d.kind, _ = s.String(d.kind[:0])
	case "delta":
		d.text, _ = s.String(d.text[:0])
	case "usage":
		s.Object(func(key []byte) {
			switch string(key) {
			case "input_tokens":
				d.usage.Prompt, d.counted = s.Natural(), true
			case "output_tokens":
				d.usage.Completion, d.counted = s.Natural(), true
			}
		})
	}
}

// The types of event in a stream of OpenAI's own. The second ends it, and has
// the whole text and the counts.
const (
	openaiTranscriptDelta = "transcript.text.delta"
	openaiTranscriptDone  = "transcript.text.done"
)
