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

// An apiError is an error response to a request.
type apiError struct {
	status  int    // 0: the dialect's status for invalid requests
	syntax  bool   // the body could not be parsed, as opposed to a body with invalid values
	param   string // the invalid member of the request, if servers report it
	message string
}

func (c *apiError) Error() string { return c.message }

// parseError is the error for a body that could not be decoded.
func parseError(err error) *apiError {
	c := &apiError{syntax: true, message: "parse the request: " + err.Error(), param: "body"}
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

// asAPIError converts any error to an apiError.
func asAPIError(err error) *apiError {
	c := &apiError{message: err.Error()}
	errors.As(err, &c)
	return c
}

// checkModel returns an error for a model that is not served, if the emulated
// server checks the name.
func (s *Server) checkModel(model string) error {
	latest := s.emulated.name == "ollama" && model == s.opt.Model+":latest"
	if model == "" || s.emulated.unknownModel == "" || latest || model == s.opt.Model || slices.Contains(s.opt.Adapters, model) {
		return nil
	}
	return &apiError{status: http.StatusNotFound, param: "model", message: fmt.Sprintf(s.emulated.unknownModel, model)}
}

// openAIErrorBody returns the error body of the emulated server, or vLLM's if it
// defines none.
func openAIErrorBody(p *emulatedServer, c *apiError) []byte {
	if p.openai.errorBody != nil {
		return p.openai.errorBody(p, c)
	}
	return nestedErrorBody(p, c)
}

// nestedErrorBody is vLLM's format.
func nestedErrorBody(_ *emulatedServer, c *apiError) []byte {
	e := openaiError{Message: c.message, Type: errorType(c.status), Code: c.status}
	if c.syntax {
		e.Type = http.StatusText(c.status)
	}
	if c.param != "" {
		e.Param = &c.param
	}
	return appendJSON(nil, openaiErrorResponse{Error: e})
}

// errorType is vLLM's name for a status. Other servers use the same names.
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

// flatErrorBody is the format of servers whose error is the document itself.
func flatErrorBody(_ *emulatedServer, c *apiError) []byte {
	return appendJSON(nil, map[string]any{"object": "error", "message": c.message, "type": errorType(c.status), "param": nil, "code": c.status})
}

// ollamaOpenAIErrorBody is Ollama's format on its OpenAI endpoints.
func ollamaOpenAIErrorBody(_ *emulatedServer, c *apiError) []byte {
	kind := "api_error"
	switch c.status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	}
	return appendJSON(nil, map[string]any{"error": map[string]any{"message": c.message, "type": kind, "param": nil, "code": nil}})
}
