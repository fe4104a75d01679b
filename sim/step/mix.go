package step

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Share is Count engines of one profile.
type Share struct {
	Profile
	From  string // name or path of the profile
	Count int
}

// countPattern matches a share with a count.
var countPattern = regexp.MustCompile(`^([0-9]{1,5})x(.+)$`)

// LoadMix reads engines of several kinds, such as 4xvllm-8b-h100+2xmine.yaml: a
// count and a name or path for Load. A share without a count is one engine.
func LoadMix(text string) ([]Share, error) {
	var out []Share
	for part := range strings.SplitSeq(text, "+") {
		s := Share{From: part, Count: 1}
		if m := countPattern.FindStringSubmatch(part); m != nil {
			s.Count, _ = strconv.Atoi(m[1]) // the expression limits the digits
			s.From = m[2]
		}
		if s.Count == 0 {
			return nil, fmt.Errorf("%s: the count must be at least 1, or omit the engine", part)
		}
		if s.From == "" {
			return nil, fmt.Errorf("%s: an engine is missing, write a name or a file on both sides of each +", text)
		}
		var err error
		if s.Profile, err = Load(s.From); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
