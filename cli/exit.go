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
	exitSignaled  = 128 // and the signal's number
)

// exitCodes say what each of them means. The help, the manual and the documents
// have it from here.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "all went well"},
	{exitFailed, "something failed, and what it was is printed"},
	{exitUsage, "the command cannot be carried out as it is written; nothing was sent"},
	{exitMissed, "a condition of --fail-if holds, or no load keeps the SLO of tacho find"},
	{exitInvalid, "the verdict is INVALID: the measurement proves nothing"},
	{exitUnjudged, "a condition of --fail-if could not be judged, and none failed; --allow-unjudged makes it 0"},
	{exitUndecided, "tacho find could not name a limit: what it knows is printed"},
	{exitSignaled, "stopped by signal n; what finished is kept (129 is a terminal that closed, 130 is Ctrl-C, 143 is kill)"},
}

// exitPart is the table of exit codes.
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
