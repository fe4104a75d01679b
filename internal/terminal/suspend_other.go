//go:build !unix

package terminal

// onSuspend does nothing, because no key suspends a process on this system.
func onSuspend(_, _ func()) (stop func()) { return func() {} }
