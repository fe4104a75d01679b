package sim

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

var responses = &dialect{
	paths:     []string{wire.ResponsesPath},
	mime:      sseMime,
	read:      readResponses,
	errorBody: openAIErrorBody,
	streamError: func(_ *emulatedServer, c *apiError) []byte {
		return appendEvent(nil, wire.ResponsesFailed, responsesEvent{Type: wire.ResponsesFailed, Response: &responsesResponse{
			Object: "response", Status: "failed", Output: []responsesOutputItem{},
			Error: &responsesError{Code: "server_error", Message: c.message},
		}})
	},
}

func readResponses(in *incoming) (*generation, error) {
	var q wire.ResponsesRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.Instructions)
	p.AddText(q.Input.Text)
	for _, item := range q.Input.Parts {
		p.AddText(item.Content.Text)
		for _, part := range item.Content.Parts {
			p.AddText(part.Text)
		}
	}
	a, err := in.generation(p, params{model: q.Model, limit: q.MaxOutputTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	v := &responsesEncoder{generation: a, created: time.Now().Unix()}
	text := textHole
	v.token = newTemplate(string(appendEvent(nil, wire.ResponsesOutputTextDelta, v.part(responsesEvent{
		Type: wire.ResponsesOutputTextDelta, SequenceNumber: intHole, Delta: &text,
	}))), intHole, textHole)
	a.encoder = v
	return a, nil
}

type responsesEncoder struct {
	*generation
	created    int64
	eventsSent int // events so far
	token      template
}

func (v *responsesEncoder) itemID() string { return "msg_" + v.id }

// part sets the indices of an event to the first part of the first item.
func (v *responsesEncoder) part(e responsesEvent) responsesEvent {
	e.ItemID, e.OutputIndex, e.ContentIndex = v.itemID(), new(int), new(int)
	return e
}

func (v *responsesEncoder) event(b []byte, e responsesEvent) []byte {
	e.SequenceNumber = v.eventsSent
	v.eventsSent++
	return appendEvent(b, e.Type, e)
}

func (v *responsesEncoder) response(status string) *responsesResponse {
	return &responsesResponse{
		ID: "resp_" + v.id, Object: "response", CreatedAt: v.created, Status: status, Model: v.model,
		Output: []responsesOutputItem{}, Metadata: map[string]string{}, ToolChoice: "auto", Tools: []json.RawMessage{},
		ParallelToolCalls: true, Temperature: 1, TopP: 1,
	}
}

func (v *responsesEncoder) item(status string, content ...responsesOutputPart) *responsesOutputItem {
	if content == nil {
		content = []responsesOutputPart{}
	}
	return &responsesOutputItem{ID: v.itemID(), Type: "message", Status: status, Role: "assistant", Content: content}
}

func textPart(text string) *responsesOutputPart {
	return &responsesOutputPart{Type: "output_text", Text: text, Annotations: []json.RawMessage{}}
}

func (v *responsesEncoder) early(b []byte) []byte {
	b = v.event(b, responsesEvent{Type: wire.ResponsesCreated, Response: v.response("in_progress")})
	return v.event(b, responsesEvent{Type: wire.ResponsesInProgress, Response: v.response("in_progress")})
}

func (v *responsesEncoder) tokens(b []byte, from, to int) []byte {
	if from == 0 {
		b = v.event(b, responsesEvent{Type: wire.ResponsesOutputItemAdded, OutputIndex: new(int), Item: v.item("in_progress")})
		b = v.event(b, v.part(responsesEvent{Type: wire.ResponsesContentPartAdded, Part: textPart("")}))
	}
	if v.onlyEnds(from, to) {
		return b
	}
	b = strconv.AppendInt(append(b, v.token[0]...), int64(v.eventsSent), 10)
	v.eventsSent++
	b = v.text(append(b, v.token[1]...), from, to)
	return append(b, v.token[2]...)
}

// final is the response in the last event.
func (v *responsesEncoder) final() (kind string, r *responsesResponse) {
	kind, r = wire.ResponsesCompleted, v.response("completed")
	if v.finish == finishLength {
		kind, r.Status = wire.ResponsesIncomplete, "incomplete"
		r.IncompleteDetails = &responsesIncompleteDetails{Reason: responsesMaxOutputTokens}
	}
	r.Output = []responsesOutputItem{*v.item(r.Status, *textPart(textHole))}
	if !v.fx.noUsage {
		out := v.counted(v.output)
		r.Usage = &responsesUsage{
			InputTokens: v.Tokens, OutputTokens: out, TotalTokens: v.Tokens + out,
			InputTokensDetails: responsesInputTokensDetails{CachedTokens: v.cached},
		}
	}
	return kind, r
}

func (v *responsesEncoder) last(b []byte) []byte {
	kind, final := v.final()
	text := textHole
	var end []byte
	end = v.event(end, v.part(responsesEvent{Type: wire.ResponsesOutputTextDone, Text: &text}))
	end = v.event(end, v.part(responsesEvent{Type: wire.ResponsesContentPartDone, Part: textPart(textHole)}))
	end = v.event(end, responsesEvent{Type: wire.ResponsesOutputItemDone, OutputIndex: new(int), Item: &final.Output[0]})
	end = v.event(end, responsesEvent{Type: kind, Response: final})
	return v.fillHoles(b, end)
}

func (v *responsesEncoder) whole(b []byte) []byte {
	_, final := v.final()
	return v.fillHoles(b, appendJSON(nil, final))
}
