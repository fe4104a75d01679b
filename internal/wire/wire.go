// Package wire defines the protocols spoken by both client and simulator: paths, server-sent events, lines of JSON,
// and shared types. Each name starts with its protocol. Types used by only one side are defined in the package of
// that side.
package wire
