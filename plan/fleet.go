package plan

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// minMTBF is the shortest mean time between failures in seconds. Each failure is an event of the simulation.
const minMTBF = 1

// validateFleet checks the engines of a prediction. The engine count of a mixed
// fleet (4xa+2xb) is unknown here.
func (p *Plan) validateFleet() error {
	switch {
	case p.Replicas < 0 || p.Replicas == 0 && p.Given("replicas"):
		return fmt.Errorf("--replicas %d: write at least 1", p.Replicas)
	case p.AutoscaleMax < 0 || p.AutoscaleMax > 0 && p.AutoscaleMax < p.Replicas:
		return fmt.Errorf("--autoscale-max %d: write at least as many as --replicas, %d", p.AutoscaleMax, p.Replicas)
	case !(p.AutoscaleTarget >= 0) || p.AutoscaleTarget == 0 && p.Given("autoscale-target"):
		return fmt.Errorf("--autoscale-target %v: want a value above 0", p.AutoscaleTarget)
	case p.Draws < 0:
		return fmt.Errorf("--draws %d: want 0 or more", p.Draws)
	case p.ReplicaMTBF > 0 && p.ReplicaMTBF < minMTBF:
		return fmt.Errorf("--replica-mtbf %v: want at least %v s, or no engine would finish a request", float64(p.ReplicaMTBF), float64(minMTBF))
	case len(p.ReplicaFailsAt) == 0 && p.ReplicaMTBF == 0 && p.Given("replica-repair"):
		return errors.New("--replica-repair needs --replica-fails-at or --replica-mtbf")
	}
	for _, name := range []string{"autoscale-by", "autoscale-target", "autoscale-delay", "autoscale-down-after"} {
		if p.AutoscaleMax == 0 && p.Given(name) {
			return fmt.Errorf("--%s needs --autoscale-max", name)
		}
	}
	_, err := p.FailureTimes()
	return err
}

// FailureTimes parses --replica-fails-at: times after the start at which
// engines fail.
func (p *Plan) FailureTimes() (out []time.Duration, err error) {
	for _, text := range p.ReplicaFailsAt {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0 && seconds < 1e9) {
			return nil, fmt.Errorf("--replica-fails-at %s: want seconds after the start", text)
		}
		out = append(out, time.Duration(seconds*float64(time.Second)))
	}
	return out, nil
}
