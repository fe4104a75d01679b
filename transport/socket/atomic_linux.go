package socket

import "sync/atomic"

// Atomic operations for the receive thread. They are nosplit, as all functions it calls:
// see receiveWithoutP.

//go:nosplit
func load32(p *uint32) uint32 { return atomic.LoadUint32(p) }

//go:nosplit
func store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

//go:nosplit
func cas32(p *uint32, old, now uint32) bool { return atomic.CompareAndSwapUint32(p, old, now) }

//go:nosplit
func load64(p *int64) int64 { return atomic.LoadInt64(p) }

//go:nosplit
func store64(p *int64, v int64) { atomic.StoreInt64(p, v) }

//go:nosplit
func cas64(p *int64, old, now int64) bool { return atomic.CompareAndSwapInt64(p, old, now) }
