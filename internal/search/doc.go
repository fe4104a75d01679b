// Package search chooses the load of the next measurement from the measurements so
// far. A Search finds the highest load that keeps an SLO. A Sweep draws a curve of
// throughput and latency. The package runs no request, reads no clock and prints
// nothing, so a search in virtual time takes the same decisions. docs/find-method.md
// derives the method.
//
// The files, in the order in which to read them:
//
//   - slo.go: a Goal is one condition of the SLO, such as TTFT p99 < 500 ms.
//   - probe.go: a Probe is a load to measure, and a Result is its outcome.
//   - watch.go, steady.go, evidence.go: a Watch judges a probe while it runs.
//   - search.go, next.go: a Search chooses the next probe.
//   - bracket.go, support.go, drift.go: these evaluate all probes without a model.
//   - limit.go: a Limit is the answer.
//   - constants.go: all tuned numbers.
//   - estimate.go: the usual time of a search or a sweep.
//   - sweep.go, tally.go: these serve other commands.
package search
