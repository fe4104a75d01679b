//go:build !linux

// Package priority raises the scheduling priority of a thread.
package priority

// Ask does nothing on this system.
func Ask() {}
