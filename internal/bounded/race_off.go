//go:build !race

package bounded

const raced = false
