package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A complaint is why a request is not answered.
type complaint struct {
	status  int    // 0 is what the dialect has for what cannot be answered
	syntax  bool   // it is not what the dialect expects at all, as opposed to something impossible
	param   string // the member of the request it is about, where servers say
	message string
}

func (c *complaint) Error() string { return c.message }

// unreadable is the complaint about a body that could not be decoded.
func unreadable(err error) *complaint {
	c := &complaint{syntax: true, message: "parse the request: " + err.Error(), param: "body"}
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		c.param += "." + strconv.FormatInt(syntax.Offset, 10)
	case errors.As(err, &wrong) && wrong.Field != "":
		field := "." + wrong.Field
		c.param += field[strings.LastIndexByte(field, '.'):] // without the types it is embedded in
	}
	return c
}

// complaintOf makes a complaint of any error.
func complaintOf(err error) *complaint {
	c := &complaint{message: err.Error()}
	errors.As(err, &c)
	return c
}

// knows complains about a model that is not served, as the servers do that look
// at the name.
func (s *Server) knows(model string) error {
	latest := s.pose.name == "ollama" && model == s.opt.Model+":latest"
	if model == "" || s.pose.unknownModel == "" || latest || model == s.opt.Model || slices.Contains(s.opt.Adapters, model) {
		return nil
	}
	return &complaint{status: http.StatusNotFound, param: "model", message: fmt.Sprintf(s.pose.unknownModel, model)}
}

// openAIRefusal is in the words of the pose, and vLLM's where it has none.
func openAIRefusal(p *pose, c *complaint) []byte {
	if p.openai.refusal != nil {
		return p.openai.refusal(p, c)
	}
	return nestedRefusal(p, c)
}

// nestedRefusal is vLLM's.
func nestedRefusal(_ *pose, c *complaint) []byte {
	e := openaiError{Message: c.message, Type: errorType(c.status), Code: c.status}
	if c.syntax {
		e.Type = http.StatusText(c.status)
	}
	if c.param != "" {
		e.Param = &c.param
	}
	return appendJSON(nil, openaiErrorResponse{Error: e})
}

// errorType is vLLM's name for a status, which others took over.
func errorType(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusInternalServerError:
		return "InternalServerError"
	}
	return http.StatusText(status)
}

// flatRefusal is that of servers whose error is the document itself.
func flatRefusal(_ *pose, c *complaint) []byte {
	return appendJSON(nil, map[string]any{"object": "error", "message": c.message, "type": errorType(c.status), "param": nil, "code": c.status})
}

// flatInvalidRefusal is that of those which have one type for all.
func flatInvalidRefusal(_ *pose, c *complaint) []byte {
	return appendJSON(nil, map[string]any{"object": "error", "message": c.message, "type": "invalid_request_error", "param": nil, "code": c.status})
}

// ollamaOpenAIRefusal is Ollama's, where it speaks as OpenAI does.
func ollamaOpenAIRefusal(_ *pose, c *complaint) []byte {
	kind := "api_error"
	switch c.status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	}
	return appendJSON(nil, map[string]any{"error": map[string]any{"message": c.message, "type": kind, "param": nil, "code": nil}})
}
