package sim

// An miiErrorResponse is the body of an error response.
type miiErrorResponse struct {
	Error string `json:"error"`
}
