//go:build !linux

package proof

var platformRoles map[string]func(args []string) error
