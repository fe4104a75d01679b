package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/wav"
	"github.com/tacho-bench/tacho/internal/wire"
)

// transcription converts audio to text as in vLLM: the request is a form, and the
// answer consists of chunks like a chat answer.
var transcription = &dialect{
	paths:       []string{wire.OpenAITranscriptionsPath, wire.OpenAITranslationsPath},
	mime:        sseMime,
	read:        readTranscription,
	errorBody:   openAIErrorBody,
	streamError: openAIStreamError,
}

const (
	// audioTokensPerSecond is vLLM's rate for Whisper: frames of 160 samples at
	// 16,000 samples per second.
	audioTokensPerSecond = 100
	// bytesPerSecond is assumed for audio of unknown duration: 16 bits, one
	// channel, 16,000 samples per second.
	bytesPerSecond = 32_000
)

// readTranscription reads the form. The prompt is the words of its prompt field and
// 100 tokens for each second of audio. A WAV file contains its duration; for other
// files it is estimated from the size.
func readTranscription(in *incoming) (*generation, error) {
	form, sound, err := readForm(in.r.Header.Get("Content-Type"), in.body)
	if err != nil {
		return nil, &apiError{syntax: true, message: "parse the form: " + err.Error()}
	}
	seconds := soundSeconds(sound)
	p := in.newPrompt()
	p.AddText(form[wire.OpenAIPromptField])
	p.addData(sound, soundTokens(seconds))
	limit := 0
	if text, ok := form[wire.OpenAIMaxTokensField]; ok {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, fmt.Errorf("%s: %q is not a positive number", wire.OpenAIMaxTokensField, text)
		}
	}
	// Clients often ask for more tokens than fit. Lower the limit.
	limit = min(limit, max(in.opt.MaxModelLen-p.Tokens, 1))
	stream := parseFormBool(form[wire.OpenAIStreamField])
	a, err := in.generation(p, params{model: form[wire.OpenAIModelField], limit: limit, stream: stream})
	if err != nil {
		return nil, err
	}
	v := &transcriptionEncoder{openAIEncoder: openAIEncoder{generation: a, variant: &vllmVariant}, object: "transcription.chunk", prefix: "trsc-", seconds: seconds}
	if in.r.URL.Path == wire.OpenAITranslationsPath {
		v.object, v.prefix = "translation.chunk", "trsl-"
	}
	if stream && parseFormBool(form[wire.OpenAIIncludeUsageField]) {
		v.usage, v.continuous = true, parseFormBool(form[wire.OpenAIContinuousUsageField])
	}
	v.created = time.Now().Unix()
	v.token = v.template(v.chunk(textHole, false, v.holeUsage()))
	a.encoder = v
	return a, nil
}

// readForm returns the fields of a form and its file.
func readForm(contentType string, body []byte) (fields map[string]string, file []byte, err error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return nil, nil, fmt.Errorf("the body is %q, want multipart/form-data", contentType)
	}
	fields = map[string]string{}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, err
		}
		if part.FormName() == wire.OpenAIFileField {
			file = data
		} else {
			fields[part.FormName()] = string(data)
		}
	}
	if len(file) == 0 {
		return nil, nil, errors.New("file: Field required")
	}
	return fields, file, nil
}

// parseFormBool parses a boolean of a form. Python capitalizes it.
func parseFormBool(text string) bool {
	yes, err := strconv.ParseBool(strings.ToLower(text))
	return err == nil && yes
}

// mostSoundTokens bounds the token count of audio above the limit of any model.
const mostSoundTokens = 1 << 22

func soundTokens(seconds float64) int {
	return int(math.Ceil(min(seconds*audioTokensPerSecond, mostSoundTokens)))
}

// addData adds n tokens determined by the data alone.
func (p *prompt) addData(data []byte, n int) {
	h := fnv.New64a()
	_, _ = h.Write(data) // a hash never fails
	for k := range n {
		p.Add(h.Sum64() + uint64(k))
	}
}

// soundSeconds is the duration of audio.
func soundSeconds(data []byte) float64 {
	return cmp.Or(wav.Seconds(data), float64(len(data))/bytesPerSecond)
}

// transcriptionEncoder encodes transcriptions and translations.
type transcriptionEncoder struct {
	openAIEncoder
	object, prefix string
	seconds        float64
}

func (v *transcriptionEncoder) chunk(text string, last bool, u *openaiUsage) *openaiTranscriptionChunk {
	c := openaiTranscriptionChoice{Delta: openaiTranscriptionDelta{Content: text}}
	if last {
		c.FinishReason = v.finishReason(true)
	}
	return &openaiTranscriptionChunk{
		ID: v.prefix + v.id, Object: v.object, Created: v.created, Model: v.model,
		Choices: []openaiTranscriptionChoice{c}, Usage: u,
	}
}

func (v *transcriptionEncoder) early(b []byte) []byte { return b }

func (v *transcriptionEncoder) tokens(b []byte, from, to int) []byte {
	if v.isLast(to) {
		return v.fill(b, v.template(v.chunk(textHole, true, v.holeUsage())), from, to)
	}
	return v.fill(b, v.token, from, to)
}

func (v *transcriptionEncoder) last(b []byte) []byte {
	if v.usage && !v.fx.noUsage {
		c := v.chunk("", true, v.realUsage())
		c.Choices = []openaiTranscriptionChoice{}
		b = append(b, v.encodeEvent(c)...)
	}
	return append(b, doneEvent...)
}

func (v *transcriptionEncoder) whole(b []byte) []byte {
	answer := openaiTranscription{Text: textHole}
	if !v.fx.noUsage {
		answer.Usage = &openaiDurationUsage{Type: "duration", Seconds: int(math.Ceil(v.seconds))}
	}
	return v.fillHoles(b, appendJSON(nil, answer), 0, v.output)
}
