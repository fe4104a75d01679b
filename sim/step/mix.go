package step

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Share is so many engines of one profile.
type Share struct {
	Profile
	From  string // its name or path
	Count int
}

// several is the beginning of a share that says how many.
var several = regexp.MustCompile(`^([0-9]{1,5})x(.+)$`)

// LoadMix reads engines of several kinds, as 4xvllm-8b-h100+2xmine.yaml: how many
// of each, and the name or path that Load takes. One that has no number is one.
func LoadMix(text string) ([]Share, error) {
	var out []Share
	for part := range strings.SplitSeq(text, "+") {
		s := Share{From: part, Count: 1}
		if m := several.FindStringSubmatch(part); m != nil {
			s.Count, _ = strconv.Atoi(m[1]) // its digits are few
			s.From = m[2]
		}
		if s.Count == 0 {
			return nil, fmt.Errorf("%s: none of an engine: write at least one, or leave it out", part)
		}
		if s.From == "" {
			return nil, fmt.Errorf("%s: an engine is missing: write its name or its file on both sides of a +", text)
		}
		var err error
		if s.Profile, err = Load(s.From); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
