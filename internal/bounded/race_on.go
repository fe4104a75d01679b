//go:build race

package bounded

// raced reports whether the race detector is on. It makes sync.Pool drop buffers at random, so a parser or an encoder
// allocates several times as much, and Run limits only time.
const raced = true
