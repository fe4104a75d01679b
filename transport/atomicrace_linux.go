//go:build race

package transport

import _ "unsafe" // for linkname

// The race detector's own atomics need a turn (a P) of Go's scheduler, which the
// thread that receives does not have. These are what the runtime itself uses.

//go:linkname load32 internal/runtime/atomic.Load
//go:nosplit
func load32(p *uint32) uint32

//go:linkname store32 internal/runtime/atomic.Store
//go:nosplit
func store32(p *uint32, v uint32)

//go:linkname cas32 internal/runtime/atomic.Cas
//go:nosplit
func cas32(p *uint32, old, now uint32) bool

//go:linkname load64 internal/runtime/atomic.Load64
//go:nosplit
func load64(p *int64) int64

//go:linkname store64 internal/runtime/atomic.Store64
//go:nosplit
func store64(p *int64, v int64)

//go:linkname cas64 internal/runtime/atomic.Cas64
//go:nosplit
func cas64(p *int64, old, now int64) bool
