//go:build !(go1.26 && !go1.28 && (amd64 || arm64) && !race && !tacho_ordinary)

package transport

// hasFree says whether this build has the receive thread without a P.
const hasFree = false

// free is never called, because hasFree is false.
func (*thread) free() {}
