package jsonscan

// Failure reads the value of an error member in any of the ways servers write
// one, an object with a message or the message itself, appends the message to
// dst and says whether there was an error: some servers always send the member
// and leave it null or empty. An object without a message speaks for itself.
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
