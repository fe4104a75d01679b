package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/tacho-bench/tacho"
)

// Infinity's embeddings endpoint. An image URL takes the place of a text.
var (
	infinityEmbeddings = infinity("infinity-embeddings", "Infinity's embeddings endpoint: text; no output tokens",
		Forms{Text: true}, "infinity")
	infinityEmbeddingsCLIP = infinity("infinity-embeddings-clip",
		"the same for models that read images, audio or text: the text next to an image is dropped", Forms{Text: true, Media: true})
)

func infinity(name, doc string, takes Forms, aliases ...string) Kind {
	return pools(Kind{
		Name:     name,
		Aliases:  aliases,
		Doc:      doc,
		Endpoint: "/embeddings",
		Port:     7997,
		Takes:    takes,
		encode:   encodeInfinity,
		inputs:   inputsOf,
		models:   infinityModels,
	})
}

func encodeInfinity(o *Options, r *tacho.Request) ([]byte, error) {
	input, modality := r.Input.Text, ""
	if r.Input.Messages != nil {
		var err error
		if input, modality, err = infinityMedia(&r.Input); err != nil {
			return nil, err
		}
	}
	return marshalWith(&struct {
		Model    string `json:"model,omitempty"`
		Input    string `json:"input"`
		Modality string `json:"modality,omitempty"`
	}{modelOf(o, r), input, modality}, o.Extra, r.Extra)
}

// infinityMedia returns the only part of a message that is not text.
func infinityMedia(in *tacho.Input) (address, modality string, err error) {
	messages, err := readMessages(in)
	if err != nil {
		return "", "", err
	}
	for _, p := range messages[0].parts {
		switch {
		case p.kind == textPart:
			continue
		case p.kind == videoPart:
			return "", "", p.errUnsupported("Infinity")
		case address != "":
			return "", "", errors.New("the Infinity API accepts one image per request: set --random-mm-base-items-per-request 1")
		}
		address, modality = p.url, string(p.kind)
		if p.data != "" {
			address = fmt.Sprintf("data:%s;base64,%s", p.mime, p.data)
		}
	}
	return address, modality, nil
}

func infinityModels(ctx context.Context, c *client) ([]Model, error) {
	return listModels(ctx, c, "/models")
}
