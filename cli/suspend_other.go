//go:build !unix

package cli

// onSuspend has nothing to do: no key stops a process here.
func onSuspend(_, _ func()) (stop func()) { return func() {} }
