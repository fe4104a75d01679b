// Package terminal is the screen of the command: text without control sequences,
// wrapped and coloured, the alternate screen with the live view of a run, and its keys.
// It knows neither plans nor metrics.
package terminal
