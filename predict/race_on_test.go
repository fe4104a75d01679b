//go:build race

package predict

// raced says that the race detector is on, which makes fits ten times as long.
const raced = true
