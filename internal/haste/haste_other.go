//go:build !linux

// Package haste asks the kernel to run a thread soon whenever it has work.
package haste

// Ask does nothing here.
func Ask() {}
