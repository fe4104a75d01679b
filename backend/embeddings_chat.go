package backend

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

// vLLM's embeddings endpoint with messages, for models that read images. The three kinds differ in the text sent
// with an image.
var (
	openAIEmbeddingsChat = embeddingsChat("openai-embeddings-chat",
		"vLLM's embeddings endpoint with messages: text or messages, with images; no output tokens", nil)
	openAIEmbeddingsCLIP = embeddingsChat("openai-embeddings-clip",
		"the same for CLIP, which reads an image or a text: the text next to an image is dropped", clipParts)
	openAIEmbeddingsVLM2Vec = embeddingsChat("openai-embeddings-vlm2vec",
		"the same for VLM2Vec: images come first, and the text alternates between the image alone and image with prompt", vlm2vecParts)
)

func embeddingsChat(name, doc string, as promptFormat) Kind {
	return pools(Kind{
		Name:     name,
		Doc:      doc,
		Endpoint: wire.EmbeddingsPath,
		Takes:    Forms{Text: true, Messages: true, Media: true},
		encode:   encodeEmbeddingsChat(as),
		count:    countChatTokens,
	})
}

// A promptFormat arranges the text and the images of one prompt for a model.
type promptFormat func(r *tacho.Request, text string, pictures []any) (parts []any)

// encodeEmbeddingsChat encodes a conversation. A single message with images is formatted for the model.
// Conversations of several messages are sent unchanged, because they come from the user's own data.
func encodeEmbeddingsChat(as promptFormat) func(*Options, *tacho.Request) ([]byte, error) {
	return func(o *Options, r *tacho.Request) ([]byte, error) {
		if _, several := r.Extra["input"]; several {
			return nil, errors.New("the endpoint accepts one conversation per request: remove --random-batch-size, or use openai-embeddings")
		}
		messages := chatMessages(&r.Input)
		if in := r.Input.Messages; as != nil && len(in) == 1 && in[0].HasMedia() {
			pictures, err := mediaPartsOf(&in[0])
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
			Truncate int                  `json:"truncate_prompt_tokens"` // -1 truncates to the model's maximum
		}{modelOf(o, r), messages, -1}, o.Extra, r.Extra)
	}
}

// A textContent is a text part. The text may be empty.
type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// clipParts sends an empty text, because the model reads either a text or an image.
func clipParts(_ *tacho.Request, _ string, pictures []any) []any {
	return append([]any{textContent{"text", ""}}, pictures...)
}

// vlm2vecParts uses the instructions the model was trained with.
func vlm2vecParts(r *tacho.Request, text string, pictures []any) []any {
	words := "Represent the given image."
	if r.Session%2 == 1 {
		words = "Represent the given image with the following question: " + text
	}
	return append(pictures, textContent{"text", words})
}

// mediaPartsOf returns the parts of a message other than text, unchanged.
func mediaPartsOf(m *tacho.Message) ([]any, error) {
	var all struct {
		Content []rawJSON `json:"content"`
	}
	if err := json.Unmarshal(m.Raw, &all); err != nil {
		return nil, err
	}
	var out []any
	for i, raw := range all.Content {
		var p textContent
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		if p.Type != "text" {
			out = append(out, raw)
		}
	}
	return out, nil
}
