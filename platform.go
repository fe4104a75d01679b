//go:build 386 || arm || mips || mipsle || wasm

package tacho

// Counts of tokens and nanoseconds need 64 bits. This name is undefined, so that the compiler
// names the reason.
const _ = tacho_supports_64_bit_platforms_only
