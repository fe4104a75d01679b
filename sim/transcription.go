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

	"tacho/internal/wav"
	"tacho/wire"
)

// transcription turns sound into text, as vLLM does: the request is a form, and
// the answer comes in chunks like those of a chat.
var transcription = &dialect{
	paths:   []string{wire.OpenAITranscriptionsPath, wire.OpenAITranslationsPath},
	mime:    sseMime,
	read:    readTranscription,
	refusal: openAIRefusal,
	broken:  openAIBroken,
}

const (
	// audioTokensPerSecond is what vLLM counts for Whisper: frames of 160
	// samples, of which 16,000 are a second.
	audioTokensPerSecond = 100
	// bytesPerSecond is taken for a sound that does not say how long it is: 16
	// bits of one channel, 16,000 times a second.
	bytesPerSecond = 32_000
)

// readTranscription reads the form. The prompt is the words of its prompt
// field, and 100 tokens for each second of sound. A WAV file says how long it
// is; for others their size gives a guess.
func readTranscription(in *incoming) (*ask, error) {
	form, sound, err := readForm(in.r.Header.Get("Content-Type"), in.body)
	if err != nil {
		return nil, &complaint{syntax: true, message: "parse the form: " + err.Error()}
	}
	seconds := soundSeconds(sound)
	p := in.newPrompt()
	p.AddText(form[wire.OpenAIPromptField])
	p.addData(sound, soundTokens(seconds))
	limit := 0
	if text, ok := form[wire.OpenAIMaxTokensField]; ok {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, fmt.Errorf("%s: %q is no positive number", wire.OpenAIMaxTokensField, text)
		}
	}
	// Clients often ask for more than there is room for. They get as much as fits.
	limit = min(limit, max(in.opt.MaxModelLen-p.Tokens, 1))
	stream := truthy(form[wire.OpenAIStreamField])
	a, err := in.ask(p, wish{model: form[wire.OpenAIModelField], limit: limit, stream: stream})
	if err != nil {
		return nil, err
	}
	v := &transcriptionVoice{openAIVoice: openAIVoice{ask: a, manner: &vllmManner}, object: "transcription.chunk", prefix: "trsc-", seconds: seconds}
	if in.r.URL.Path == wire.OpenAITranslationsPath {
		v.object, v.prefix = "translation.chunk", "trsl-"
	}
	if stream && truthy(form[wire.OpenAIIncludeUsageField]) {
		v.usage, v.continuous = true, truthy(form[wire.OpenAIContinuousUsageField])
	}
	v.created = time.Now().Unix()
	v.token = v.template(v.chunk(textHole, false, v.holeUsage()))
	a.voice = v
	return a, nil
}

// readForm returns the fields of a form and the file in it.
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

// truthy is how a form says yes; Python says it with a capital letter.
func truthy(text string) bool {
	yes, err := strconv.ParseBool(strings.ToLower(text))
	return err == nil && yes
}

// mostSoundTokens bounds what is counted for a sound: it is more than any model
// takes.
const mostSoundTokens = 1 << 22

func soundTokens(seconds float64) int {
	return int(math.Ceil(min(seconds*audioTokensPerSecond, mostSoundTokens)))
}

// addData adds n tokens that are the same for the same data alone.
func (p *prompt) addData(data []byte, n int) {
	h := fnv.New64a()
	_, _ = h.Write(data) // a hash takes all
	for k := range n {
		p.Add(h.Sum64() + uint64(k))
	}
}

// soundSeconds is how long a sound is.
func soundSeconds(data []byte) float64 {
	return cmp.Or(wav.Seconds(data), float64(len(data))/bytesPerSecond)
}

// transcriptionVoice speaks of sounds.
type transcriptionVoice struct {
	openAIVoice
	object, prefix string
	seconds        float64
}

func (v *transcriptionVoice) chunk(text string, last bool, u *openaiUsage) *openaiTranscriptionChunk {
	c := openaiTranscriptionChoice{Delta: openaiTranscriptionDelta{Content: text}}
	if last {
		c.FinishReason = v.finishReason(true)
	}
	return &openaiTranscriptionChunk{
		ID: v.prefix + v.id, Object: v.object, Created: v.created, Model: v.model,
		Choices: []openaiTranscriptionChoice{c}, Usage: u,
	}
}

func (v *transcriptionVoice) early(b []byte) []byte { return b }

func (v *transcriptionVoice) tokens(b []byte, from, to int) []byte {
	if v.isLast(to) {
		return v.fill(b, v.template(v.chunk(textHole, true, v.holeUsage())), from, to)
	}
	return v.fill(b, v.token, from, to)
}

func (v *transcriptionVoice) last(b []byte) []byte {
	if v.usage && !v.fx.noUsage {
		c := v.chunk("", true, v.realUsage())
		c.Choices = []openaiTranscriptionChoice{}
		b = append(b, v.dress(c)...)
	}
	return append(b, doneEvent...)
}

func (v *transcriptionVoice) whole(b []byte) []byte {
	answer := openaiTranscription{Text: textHole}
	if !v.fx.noUsage {
		answer.Usage = &openaiDurationUsage{Type: "duration", Seconds: int(math.Ceil(v.seconds))}
	}
	return v.retell(b, appendJSON(nil, answer), 0, v.output)
}
