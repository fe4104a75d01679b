// Package proof measures tacho itself: how far its times are from a server's
// own, how late it sends, and what a stream costs. `make bench` prints what it
// finds. Servers and clients are processes of their own (this same test binary,
// told by an environment variable what to be), so that none takes the other's
// share of a processor or its memory.
package proof
