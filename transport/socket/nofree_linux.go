//go:build !(go1.26 && !go1.28 && (amd64 || arm64) && !race && !tacho_ordinary)

package socket

// canRunWithoutP reports whether this build has the receive thread without a P.
const canRunWithoutP = false

// receiveWithoutP is never called, because canRunWithoutP is false.
func (*thread) receiveWithoutP() {}
