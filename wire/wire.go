// Package wire is the shape of the protocols that both client and simulator speak:
// paths, server-sent events, lines of JSON, and the types that both of them use. A
// name begins with its protocol. Types that one of them alone uses are in its package.
package wire
