package cli

import "strconv"

// The exit codes.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitMissed    = 3
	exitInvalid   = 4
	exitUnjudged  = 5
	exitUndecided = 6
	exitSignaled  = 128 // plus the number of the signal
)

// exitCodes describe the exit codes for help, manual pages and documents.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "success"},
	{exitFailed, "failure, with an error message"},
	{exitUsage, "invalid usage; nothing was sent"},
	{exitMissed, "a condition of --fail-if holds, or no load meets the SLO of tacho find"},
	{exitInvalid, "the verdict is INVALID, results are not usable"},
	{exitUnjudged, "a condition of --fail-if could not be judged, and none failed; --allow-unjudged returns 0"},
	{exitUndecided, "tacho find could not determine the limit"},
	{exitSignaled, "stopped by signal n; finished requests are stored (129: terminal closed, 130: Ctrl-C, 143: kill)"},
}

// exitPart returns the table of exit codes.
func exitPart() part {
	p := part{title: "Exit codes"}
	for _, e := range exitCodes {
		name := strconv.Itoa(e.code)
		if e.code == exitSignaled {
			name += "+n"
		}
		p.rows = append(p.rows, row{name, e.meaning})
	}
	return p
}
