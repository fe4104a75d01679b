package sim

// tritonGeneratePath is the path for requests without streaming.
func tritonGeneratePath(model string) string { return "/v2/models/" + model + "/generate" }

// A tritonErrorResponse is the body of an error response, and the error event of a
// stream.
type tritonErrorResponse struct {
	Error string `json:"error"`
}
