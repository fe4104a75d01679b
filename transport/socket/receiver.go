package socket

import (
	"fmt"
	"os"
)

// ReceiverVariable is the environment variable that selects the receiver on Linux. The
// value "ordinary" replaces the receive thread, which runs outside Go's scheduler, with an
// ordinary goroutine. Builds without the receive thread ignore the value.
const ReceiverVariable = "TACHO_RECEIVER"

// CheckReceiver returns an error if ReceiverVariable has an unknown value.
func CheckReceiver() error {
	_, err := wantsOrdinary()
	return err
}

// wantsOrdinary reports whether the environment selects the ordinary receiver.
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
