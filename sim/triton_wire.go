package sim

// tritonGeneratePath is where requests for a whole answer go.
func tritonGeneratePath(model string) string { return "/v2/models/" + model + "/generate" }

// A tritonErrorResponse is the body of a failure, and its event within a stream.
type tritonErrorResponse struct {
	Error string `json:"error"`
}
