// Package wav computes the duration of WAV files.
package wav

import "encoding/binary"

// Is reports whether data starts with a WAV header.
func Is(data []byte) bool {
	return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WAVE"
}

// Seconds returns the duration of a WAV file, or 0 if the chunks do not contain one. A file written to a pipe
// stores no data size; then all remaining bytes are data.
func Seconds(data []byte) float64 {
	if !Is(data) {
		return 0
	}
	perSecond := uint32(0)
	for rest := data[12:]; len(rest) >= 8; {
		name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[8:]
		switch {
		case name == "fmt " && len(rest) >= 12:
			perSecond = binary.LittleEndian.Uint32(rest[8:])
		case name == "data" && perSecond > 0:
			if size == 0 {
				size = int64(len(rest))
			}
			return float64(min(size, int64(len(rest)))) / float64(perSecond)
		}
		rest = rest[min(size+size%2, int64(len(rest))):]
	}
	return 0
}
