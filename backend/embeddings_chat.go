package backend

import (
	"encoding/json"
	"errors"
	"fmt"

	"tacho"
	"tacho/wire"
)

// The embeddings endpoint with messages, as vLLM has it for models that read
// pictures. What sets the three apart is the words that go with a picture.
var (
	openAIEmbeddingsChat = embeddingsChat("openai-embeddings-chat",
		"the embeddings endpoint with messages, as vLLM has it: text or messages, with pictures in them; no tokens out", nil)
	openAIEmbeddingsCLIP = embeddingsChat("openai-embeddings-clip",
		"the same for CLIP, which reads a picture or a text: the text beside a picture is left out", clipParts)
	openAIEmbeddingsVLM2Vec = embeddingsChat("openai-embeddings-vlm2vec",
		"the same for VLM2Vec: pictures come first, and the text asks for the picture alone or, every other time, for picture and prompt", vlm2vecParts)
)

func embeddingsChat(name, doc string, as wording) Kind {
	return pools(Kind{
		Name:     name,
		Doc:      doc,
		Endpoint: wire.EmbeddingsPath,
		Takes:    Forms{Text: true, Messages: true, Media: true},
		encode:   encodeEmbeddingsChat(as),
		count:    countChatTokens,
	})
}

// A wording is how the text and the pictures of one prompt are put to a model.
type wording func(r *tacho.Request, text string, pictures []any) (parts []any)

// encodeEmbeddingsChat writes a conversation. A prompt with pictures in it is
// worded as the model wants it; whatever is more than one message is somebody's
// own conversation, and stays as it is.
func encodeEmbeddingsChat(as wording) func(*Options, *tacho.Request) ([]byte, error) {
	return func(o *Options, r *tacho.Request) ([]byte, error) {
		if _, several := r.Extra["input"]; several {
			return nil, errors.New("the endpoint takes one conversation in a request: leave --random-batch-size out, or use openai-embeddings")
		}
		messages := chatMessages(&r.Input)
		if in := r.Input.Messages; as != nil && len(in) == 1 && in[0].HasMedia() {
			pictures, err := picturesOf(&in[0])
			if err != nil {
				return nil, err
			}
			messages[0].Raw, err = marshal(&struct {
				Role    string `json:"role"`
				Content []any  `json:"content"`
			}{in[0].Role, as(r, in[0].Content, pictures)})
			if err != nil {
				return nil, err
			}
		}
		return marshalWith(&struct {
			Model    string               `json:"model,omitempty"`
			Messages []wire.OpenAIMessage `json:"messages"`
			Truncate int                  `json:"truncate_prompt_tokens"` // -1: to what the model takes
		}{modelOf(o, r), messages, -1}, o.Extra, r.Extra)
	}
}

// A said is a part with a text, even an empty one.
type said struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// clipParts leave the text empty: the model takes one of the two.
func clipParts(_ *tacho.Request, _ string, pictures []any) []any {
	return append([]any{said{"text", ""}}, pictures...)
}

// vlm2vecParts have the words that the model was trained with.
func vlm2vecParts(r *tacho.Request, text string, pictures []any) []any {
	words := "Represent the given image."
	if r.Session%2 == 1 {
		words = "Represent the given image with the following question: " + text
	}
	return append(pictures, said{"text", words})
}

// picturesOf are the parts of a message that are no text, as they came.
func picturesOf(m *tacho.Message) ([]any, error) {
	var all struct {
		Content []rawJSON `json:"content"`
	}
	if err := json.Unmarshal(m.Raw, &all); err != nil {
		return nil, err
	}
	var out []any
	for i, raw := range all.Content {
		var p said
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		if p.Type != "text" {
			out = append(out, raw)
		}
	}
	return out, nil
}
