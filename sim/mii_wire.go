package sim

// An miiErrorResponse is the body of a failure.
type miiErrorResponse struct {
	Error string `json:"error"`
}
