//go:build race

package compare_test

// raced says that the race detector is on. It has nothing to find in a package
// without goroutines, and makes the long tests ten times as long.
const raced = true
