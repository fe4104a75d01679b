package plan

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// validateFleet says what is wrong with the engines of a prediction. A number of
// them that a mix names (4xa+2xb) is not known here.
func (p *Plan) validateFleet() error {
	switch {
	case p.Replicas < 0 || p.Replicas == 0 && p.Given("replicas"):
		return fmt.Errorf("--replicas %d: write at least 1", p.Replicas)
	case p.AutoscaleMax < 0 || p.AutoscaleMax > 0 && p.AutoscaleMax < p.Replicas:
		return fmt.Errorf("--autoscale-max %d: write at least as many as --replicas, %d", p.AutoscaleMax, p.Replicas)
	case !(p.AutoscaleTarget >= 0) || p.AutoscaleTarget == 0 && p.Given("autoscale-target"):
		return fmt.Errorf("--autoscale-target %v: write what each engine is to have, above 0", p.AutoscaleTarget)
	case p.Draws < 0:
		return fmt.Errorf("--draws %d: write how often to draw, or 0 for never", p.Draws)
	case len(p.ReplicaFailsAt) == 0 && p.ReplicaMTBF == 0 && p.Given("replica-repair"):
		return errors.New("--replica-repair is for engines that fail: say when with --replica-fails-at or --replica-mtbf")
	}
	for _, name := range []string{"autoscale-by", "autoscale-target", "autoscale-delay", "autoscale-down-after"} {
		if p.AutoscaleMax == 0 && p.Given(name) {
			return fmt.Errorf("--%s is for a number of engines that follows the load: say how many there may be with --autoscale-max", name)
		}
	}
	_, err := p.FailureTimes()
	return err
}

// FailureTimes are when engines fail, after the start.
func (p *Plan) FailureTimes() (out []time.Duration, err error) {
	for _, text := range p.ReplicaFailsAt {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0 && seconds < 1e9) {
			return nil, fmt.Errorf("--replica-fails-at %s: write seconds after the start", text)
		}
		out = append(out, time.Duration(seconds*float64(time.Second)))
	}
	return out, nil
}
