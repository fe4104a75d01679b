//go:build !race

package step

const raced = false
