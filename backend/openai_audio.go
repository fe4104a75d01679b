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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/jsonscan"
	"github.com/tacho-bench/tacho/internal/wire"
)

const translationsPath = "/v1/audio/translations" // into English

var openAIAudio = Kind{
	Name:        "openai-audio",
	Aliases:     []string{"audio", "transcriptions"},
	Doc:         "vLLM's version of the OpenAI transcription endpoint: audio in, text out; --endpoint " + translationsPath + " translates",
	Endpoint:    "/v1/audio/transcriptions",
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Audio: true},
	otherPaths:  []string{translationsPath},
	supports:    allSampling,
	encode:      encodeAudio,
	contentType: formType,
	decoder:     func(*Options) decoder { return new(transcriptionDecoder) },
	tokenMarks:  []string{`"content":"`, `"content": "`, `"delta":"`, `"delta": "`},
	models:      openAIModels,
	count:       countPromptTokens,
	flush:       resetPrefixCache,
}

// encodeAudio writes the form in the order used by vLLM's own benchmark. Extra fields of the options or the request
// replace these fields. A null removes the field, because a form cannot contain null.
func encodeAudio(o *Options, r *tacho.Request) ([]byte, error) {
	form := audioForm{values: map[string]string{}}
	form.set("model", modelOf(o, r))
	if r.MaxTokens > 0 {
		form.set("max_completion_tokens", strconv.Itoa(r.MaxTokens))
	}
	form.set("stream", "true")
	form.set("language", "en")
	// A form cannot contain the stream_options object, so vLLM has these fields.
	form.set("stream_include_usage", "true")
	form.set("stream_continuous_usage_stats", "true")
	for _, extra := range []map[string]any{o.Sampling.fields(allSampling...), o.Extra, r.Extra} {
		if err := form.merge(extra); err != nil {
			return nil, err
		}
	}
	return form.encode(r)
}

// An audioForm is an ordered list of form fields.
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

// merge sets fields in the order of their names.
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

// encode writes the form, with the audio first. The boundary is a hash of the request, so equal requests have equal
// bodies. A hash is as unlikely to occur in a file as a random boundary.
func (f *audioForm) encode(r *tacho.Request) ([]byte, error) {
	sound := r.Input.Audio
	if len(sound.Data) == 0 {
		return nil, errors.New("the audio is empty")
	}
	var b bytes.Buffer
	b.Grow(len(sound.Data) + 4096)
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundaryOf(r)); err != nil {
		return nil, err
	}
	header := textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", sound.Name)},
		"Content-Type":        {audioType(sound.Name)},
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
	_, _ = fmt.Fprintf(h, "%s/%d.%d/", r.ID, r.Session, r.Turn) // writing to a hash cannot fail
	_ = binary.Write(h, binary.LittleEndian, uint64(len(r.Input.Audio.Data)))
	_, _ = h.Write(r.Input.Audio.Data)
	return "tacho-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// formType returns the content type of a form. The first line of the body is the boundary.
func formType(body []byte) string {
	line, _, _ := bytes.Cut(body, []byte("\r\n"))
	return "multipart/form-data; boundary=" + strings.TrimPrefix(string(line), "--")
}

// audioType returns the MIME type of an audio file by its extension.
func audioType(name string) string {
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

// A transcriptionDecoder decodes vLLM's chunks, which have the format of chat chunks, and OpenAI's own events.
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
	// Each segment of a long audio file carries a finish reason, so a finish reason does not end the stream.
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

// Event types of OpenAI's own service. The second ends the stream and carries the complete text and the token
// counts.
const (
	openaiTranscriptDelta = "transcript.text.delta"
	openaiTranscriptDone  = "transcript.text.done"
)
