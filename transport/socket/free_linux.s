//go:build go1.26 && !go1.28 && (amd64 || arm64) && !race && !tacho_ordinary

// This file is here so that functions of the runtime may be declared without a body.
