package transport

import (
	"fmt"
	"os"
)

// ReceiverVariable is the environment variable that replaces the receive thread of Linux,
// which runs outside Go's scheduler, by an ordinary goroutine. Its only value is "ordinary".
// Builds without such a thread ignore the value.
const ReceiverVariable = "TACHO_RECEIVER"

// wantsOrdinary says whether the environment asks for the ordinary receiver.
func wantsOrdinary() (bool, error) {
	switch value := os.Getenv(ReceiverVariable); value {
	case "":
		return false, nil
	case "ordinary":
		return true, nil
	default:
		return false, fmt.Errorf("%q is not a receiver: unset TACHO_RECEIVER, or set it to ordinary", value)
	}
}
