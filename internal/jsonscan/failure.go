package jsonscan

// Failure reads the value of an error member and appends the error message to dst. The value is a message, or an
// object with a message; if the object contains no message, Failure appends the object. Failure reports whether
// there was an error, because some servers always send the member and leave the value null or empty.
func (s *Scanner) Failure(dst []byte) ([]byte, bool) {
	switch s.Type() {
	case '"':
		before := len(dst)
		dst, _ = s.String(dst)
		return dst, len(dst) > before
	case '{':
		start, before := s.pos, len(dst)
		s.Object(func(key []byte) {
			if string(key) == "message" {
				dst, _ = s.String(dst[:before])
			}
		})
		if len(dst) == before {
			dst = append(dst, s.since(start)...)
		}
		return dst, true
	}
	s.Skip()
	return dst, false
}
