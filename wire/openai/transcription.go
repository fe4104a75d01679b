package openai

// The paths of speech. What is sent there is a form, with the sound as a file
// in it.
const (
	TranscriptionsPath = "/v1/audio/transcriptions"
	TranslationsPath   = "/v1/audio/translations" // into English
)

// The fields of the form. Those whose names begin with stream_ are vLLM's: a
// form has no place for the stream options of other requests.
const (
	FileField            = "file"
	ModelField           = "model"
	LanguageField        = "language" // of the sound
	PromptField          = "prompt"   // words that came before it
	MaxTokensField       = "max_completion_tokens"
	StreamField          = "stream"
	IncludeUsageField    = "stream_include_usage"
	ContinuousUsageField = "stream_continuous_usage_stats"
)

// The types of event in a stream of OpenAI's own. The second ends it, and has
// the whole text and the counts.
const (
	TranscriptDelta = "transcript.text.delta"
	TranscriptDone  = "transcript.text.done"
)

// A TranscriptionChoice is what a chunk adds to the text.
type TranscriptionChoice struct {
	Delta        TranscriptionDelta `json:"delta"`
	FinishReason *string            `json:"finish_reason,omitempty"`
}

// A TranscriptionDelta is a piece of the text.
type TranscriptionDelta struct {
	Content string `json:"content"`
}

// A Transcription is the whole answer when no stream was asked.
type Transcription struct {
	Text  string         `json:"text"`
	Usage *DurationUsage `json:"usage,omitempty"`
}

// DurationUsage counts a sound by its length.
type DurationUsage struct {
	Type    string `json:"type"` // duration
	Seconds int    `json:"seconds"`
}
