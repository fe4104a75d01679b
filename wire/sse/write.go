package sse

// Begin and End stand around the data of an event without a name, for a server
// that writes its data piece by piece. The data must be one line, as JSON is.
const (
	Begin = "data: "
	End   = "\n\n"
)

// Append appends a whole event. Its data must be one line. An empty name is
// left out.
func Append(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(b, Begin...), data...)
	return append(b, End...)
}
