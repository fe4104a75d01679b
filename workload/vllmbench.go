package workload

import (
	"errors"
	"fmt"
	"math"
)

// Translate makes of options that other tools have those that say the same here.
func (d *Dataset) Translate(given func(option string) bool) error {
	if err := d.takeMultiTurn(given); err != nil {
		return err
	}
	return d.takeCacheHits()
}

// takeMultiTurn makes of --multi-turn the options that say the same here.
func (d *Dataset) takeMultiTurn(given func(option string) bool) error {
	if !d.MultiTurn {
		if d.DatasetName == "conversation" {
			return d.checkShared()
		}
		if d.MinTurns != 0 || d.MaxTurns != 0 || d.AllRatio != 0 || d.OwnRatio != 0 {
			return errors.New("--multi-turn-min-turns, --multi-turn-max-turns and --multi-turn-prefix-*-ratio go with --multi-turn")
		}
		return nil
	}
	switch d.DatasetName {
	case "random":
		d.FirstInputLen, d.TurnOutputLen = d.RandomInputLen, d.RandomOutputLen
		if n, always := d.TurnInputLen.Constant(); !given("turn-input-len") || always && n == 0 {
			d.TurnInputLen = d.RandomInputLen
		}
	case "sharegpt":
		if !given("turn-output-len") {
			d.TurnOutputLen = Fixed(-1) // that of the answer in the data
		}
		if d.AllRatio != 0 || d.OwnRatio != 0 {
			return errors.New("--multi-turn-prefix-*-ratio goes with --dataset-name random: the texts of a file are what they are")
		}
	default:
		return fmt.Errorf("--multi-turn goes with --dataset-name random or sharegpt, not %s", d.DatasetName)
	}
	d.DatasetName, d.MultiTurn = "conversation", false
	if !given("turns") {
		d.Turns = Fixed(3)
	}
	if err := d.checkShared(); err != nil {
		return err
	}
	return d.takeTurns()
}

// checkShared says whether a prompt has room for what it shares with others.
func (d *Dataset) checkShared() error {
	if d.AllRatio == 0 && d.OwnRatio == 0 {
		return nil
	}
	first, one := d.FirstInputLen.Constant()
	each, same := d.TurnInputLen.Constant()
	if one && first == 0 {
		first = each
	}
	shared := int(d.AllRatio*float64(first)) + int(d.OwnRatio*float64(first))
	switch {
	case !(d.AllRatio >= 0 && d.OwnRatio >= 0 && d.AllRatio+d.OwnRatio <= 1):
		return errors.New("--multi-turn-prefix-global-ratio and --multi-turn-prefix-conversation-ratio are shares of a prompt: from 0 to 1, together at most 1")
	case !one || !same:
		return errors.New("--multi-turn-prefix-*-ratio needs one --random-input-len and one --per-turn-input-len, of which the prefixes are shares")
	case shared >= each:
		return fmt.Errorf("turns of %d tokens have no room beside the %d that they share: raise --per-turn-input-len or lower --multi-turn-prefix-*-ratio", each, shared)
	case d.SubAgents > 0:
		return errors.New("--sub-agents need what was said before, and --multi-turn-prefix-*-ratio leaves that out")
	}
	return nil
}

// takeTurns makes of the least and the largest number of turns a number that is
// drawn.
func (d *Dataset) takeTurns() error {
	if d.MinTurns == 0 && d.MaxTurns == 0 {
		return nil
	}
	n, _ := d.Turns.Constant()
	low, high := n, n
	if d.MinTurns > 0 {
		low = d.MinTurns
	}
	if d.MaxTurns > 0 {
		high = d.MaxTurns
	}
	if low > high {
		return fmt.Errorf("from %d to %d turns: --multi-turn-max-turns must not be below --multi-turn-min-turns", low, high)
	}
	d.MinTurns, d.MaxTurns = 0, 0
	return d.Turns.UnmarshalText(fmt.Appendf(nil, "uniform(%d,%d)", low, high))
}

// takeCacheHits makes of --random-cache-hit-fraction a mix of prompts that begin
// alike and prompts that do not.
func (d *Dataset) takeCacheHits() error {
	if d.CacheHit == 0 && d.CacheRatio == 0 {
		return nil
	}
	n, always := d.RandomInputLen.Constant()
	switch share := func(f float64) bool { return f > 0 && f <= 1 }; {
	case !share(d.CacheHit) || !share(d.CacheRatio):
		return errors.New("--random-cache-hit-fraction and --random-cache-ratio go together: each is a share above 0, up to 1")
	case len(d.Mix) > 0 || d.DatasetName != "random" || d.RandomPrefixLen > 0:
		return errors.New("--random-cache-hit-fraction is a mix of random prompts by itself: leave out --mix, --random-prefix-len and other datasets")
	case !always:
		return errors.New("--random-cache-hit-fraction needs one --random-input-len, of which the prefix is a share")
	}
	prefix := min(int(math.Round(d.CacheRatio*float64(n))), n-1)
	d.Mix = []string{fmt.Sprintf("label=warm weight=%g random-prefix-len=%d random-input-len=%d", d.CacheHit, prefix, n-prefix)}
	if d.CacheHit < 1 {
		d.Mix = append(d.Mix, fmt.Sprintf("label=cold weight=%g random-input-len=%d", 1-d.CacheHit, n))
	}
	d.CacheHit, d.CacheRatio = 0, 0
	return nil
}
