package workload

import (
	"errors"
	"fmt"
	"math"
)

// Translate replaces options of other tools with the equivalent options of tacho.
func (d *Dataset) Translate(given func(option string) bool) error {
	if err := d.translateMultiTurn(given); err != nil {
		return err
	}
	return d.translateCacheHits()
}

// translateMultiTurn replaces --multi-turn with the equivalent options.
func (d *Dataset) translateMultiTurn(given func(option string) bool) error {
	if !d.MultiTurn {
		if d.DatasetName == "conversation" {
			return d.checkPrefixRatios()
		}
		if d.MinTurns != 0 || d.MaxTurns != 0 || d.GlobalRatio != 0 || d.ConversationRatio != 0 {
			return errors.New("--multi-turn-min-turns, --multi-turn-max-turns and --multi-turn-prefix-*-ratio need --multi-turn")
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
			d.TurnOutputLen = Fixed(-1) // the length of the answer in the data
		}
		if d.GlobalRatio != 0 || d.ConversationRatio != 0 {
			return errors.New("--multi-turn-prefix-*-ratio needs --dataset-name random, because the texts of a file cannot change")
		}
	default:
		return fmt.Errorf("--multi-turn needs --dataset-name random or sharegpt, not %s", d.DatasetName)
	}
	d.DatasetName, d.MultiTurn = "conversation", false
	if !given("turns") {
		d.Turns = Fixed(3)
	}
	if err := d.checkPrefixRatios(); err != nil {
		return err
	}
	return d.translateTurns()
}

// checkPrefixRatios checks that a prompt is longer than its shared prefix.
func (d *Dataset) checkPrefixRatios() error {
	if d.GlobalRatio == 0 && d.ConversationRatio == 0 {
		return nil
	}
	first, one := d.FirstInputLen.Constant()
	each, same := d.TurnInputLen.Constant()
	if one && first == 0 {
		first = each
	}
	shared := int(d.GlobalRatio*float64(first)) + int(d.ConversationRatio*float64(first))
	switch {
	case !(d.GlobalRatio >= 0 && d.ConversationRatio >= 0 && d.GlobalRatio+d.ConversationRatio <= 1):
		return errors.New("--multi-turn-prefix-global-ratio and --multi-turn-prefix-conversation-ratio must be from 0 to 1, and their sum at most 1")
	case !one || !same:
		return errors.New("--multi-turn-prefix-*-ratio needs constant --random-input-len and --per-turn-input-len")
	case shared >= each:
		return fmt.Errorf("turns of %d tokens are too short for %d shared tokens; increase --per-turn-input-len or reduce --multi-turn-prefix-*-ratio", each, shared)
	case d.SubAgents > 0:
		return errors.New("--sub-agents needs the earlier turns, which --multi-turn-prefix-*-ratio leaves out")
	}
	return nil
}

// translateTurns replaces the minimum and maximum number of turns with a uniform
// distribution.
func (d *Dataset) translateTurns() error {
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

// translateCacheHits replaces --random-cache-hit-fraction with a mix of prompts with and
// without a shared prefix.
func (d *Dataset) translateCacheHits() error {
	if d.CacheHit == 0 && d.CacheRatio == 0 {
		return nil
	}
	n, always := d.RandomInputLen.Constant()
	switch share := func(f float64) bool { return f > 0 && f <= 1 }; {
	case !share(d.CacheHit) || !share(d.CacheRatio):
		return errors.New("--random-cache-hit-fraction and --random-cache-ratio must both be set, above 0 and at most 1")
	case len(d.Mix) > 0 || d.DatasetName != "random" || d.RandomPrefixLen > 0:
		return errors.New("--random-cache-hit-fraction cannot be combined with --mix, --random-prefix-len or another dataset")
	case !always:
		return errors.New("--random-cache-hit-fraction needs a constant --random-input-len")
	}
	prefix := min(int(math.Round(d.CacheRatio*float64(n))), n-1)
	d.Mix = []string{fmt.Sprintf("label=warm weight=%g random-prefix-len=%d random-input-len=%d", d.CacheHit, prefix, n-prefix)}
	if d.CacheHit < 1 {
		d.Mix = append(d.Mix, fmt.Sprintf("label=cold weight=%g random-input-len=%d", 1-d.CacheHit, n))
	}
	d.CacheHit, d.CacheRatio = 0, 0
	return nil
}
