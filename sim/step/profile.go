package step

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"tacho/internal/spelling"
	"tacho/internal/wholefile"
	"tacho/sim/profiles"

	"go.yaml.in/yaml/v3"
)

// A Profile describes one inference engine serving one model on one machine.
// It is what a profile file holds; every field that is left out is zero.
type Profile struct {
	Name   string `yaml:"name"`
	About  string `yaml:"about"`  // for people: what it describes and how far to trust it
	Engine string `yaml:"engine"` // the server it poses as: vllm, tgi, sglang, llamacpp, ...
	Model  string `yaml:"model"`  // the model name it answers to

	Source  string `yaml:"source"`   // for people: what its numbers come from
	HeldOut string `yaml:"held_out"` // for people: how far it is off what it was not made from

	Policy        string `yaml:"policy"`         // one of policies
	MaxSequences  int    `yaml:"max_sequences"`  // most sequences that run together
	StepTokens    int    `yaml:"step_tokens"`    // most tokens one step computes
	ContextTokens int    `yaml:"context_tokens"` // most tokens of prompt and output together; 0: no limit of its own
	Priority      bool   `yaml:"priority"`       // requests of a lower priority number go first, and are preempted last

	KV          KV          `yaml:"kv"`
	Reserve     Reserve     `yaml:"reserve"`
	Speculation Speculation `yaml:"speculation"`
	Output      Lengths     `yaml:"output"`
	FrontEnd    FrontEnd    `yaml:"front_end"`
	API         API         `yaml:"api"`
	Host        Host        `yaml:"host"`
	Cost        Cost        `yaml:"cost"`
	LoRA        LoRA        `yaml:"lora"`
	Offload     Offload     `yaml:"offload"`
	Parallel    Parallel    `yaml:"parallel"`
	Split       Split       `yaml:"split"`

	// Errors are the standard errors of numbers that were fitted, as shares of
	// them, by their names: api.event_us, "cost.step at 64".
	Errors map[string]float64 `yaml:"errors"`
	// Correlations are those of such errors, by both names: "api.event_us, api.token_us".
	// A pair that is not here has none.
	Correlations map[string]float64 `yaml:"correlations"`

	HeldOutErrors HeldOutErrors `yaml:"held_out_errors"`
	FittedTo      FittedTo      `yaml:"fitted_to"`
}

// KV is the memory for keys and values, in blocks.
type KV struct {
	BlockTokens int     `yaml:"block_tokens"` // tokens in a block
	Blocks      int     `yaml:"blocks"`       // blocks there are; 0: never the limit
	Watermark   float64 `yaml:"watermark"`    // share of blocks kept free when a sequence is let in
	PrefixCache bool    `yaml:"prefix_cache"` // blocks with a known hash are kept and shared

	BytesPerToken int `yaml:"bytes_per_token"` // what a token takes: only where it goes to another memory
}

// moveMs is how long the keys and values of so many tokens take over a link.
func (k *KV) moveMs(tokens int, gbPerS float64) float64 {
	return float64(tokens) * float64(k.BytesPerToken) / gbPerS / 1e6
}

// Reserve is how the policy of that name waits before it interrupts decoding
// for a prefill.
type Reserve struct {
	WaitSteps    int     `yaml:"wait_steps"`    // decode steps after which any waiting request is let in
	WaitingRatio float64 `yaml:"waiting_ratio"` // before that: at least this many waiting for each one running
}

// Speculation is speculative decoding: each decode proposes DraftTokens and
// keeps those before the first that is rejected, and always one more.
type Speculation struct {
	DraftTokens int     `yaml:"draft_tokens"`
	Acceptance  float64 `yaml:"acceptance"` // probability that a draft token is kept, given those before it were

	DraftMs            float64 `yaml:"draft_ms"`              // longer is a step for each of DraftTokens: the draft model makes them one after the other ...
	DraftPerSequenceUs float64 `yaml:"draft_per_sequence_us"` // ... and by this much for each sequence that decodes
}

// Parallel is an engine on several GPUs. The costs of the profile are those of one.
type Parallel struct {
	Tensor              int     `yaml:"tensor"`                  // GPUs that share each layer: each step takes this part of its time ...
	AllReduceMs         float64 `yaml:"all_reduce_ms"`           // ... and then so much, for they tell each other what they have ...
	AllReducePerTokenUs float64 `yaml:"all_reduce_per_token_us"` // ... of each token

	Pipeline int     `yaml:"pipeline"` // groups of layers, one behind the other: as many steps are under way, each of other sequences
	HopMs    float64 `yaml:"hop_ms"`   // from one of them to the next

	Data     int  `yaml:"data"`      // whole engines behind one address, each with memory and a batch of its own
	LockStep bool `yaml:"lock_step"` // they step together, and the slowest says how long that takes
}

// Split is engines that only read prompts and engines that only write, with keys
// and values sent from one to the other. The first token comes out when they are
// there. Each engine is one of the profile.
type Split struct {
	Prefill   int     `yaml:"prefill"` // engines that read
	Decode    int     `yaml:"decode"`  // engines that write
	GBPerS    float64 `yaml:"gb_per_s"`
	LatencyMs float64 `yaml:"latency_ms"` // of a transfer; those of one engine go one after the other
}

// engines is how many engines a server of this profile has.
func (p *Profile) engines() int { return max(p.Split.Prefill+p.Split.Decode, p.Parallel.Data, 1) }

// MostRunning is how many sequences can run together in a server.
func (p *Profile) MostRunning() int { return p.engines() * p.MaxSequences }

// GPUs is how many a server has.
func (p *Profile) GPUs() int {
	return p.engines() * max(p.Parallel.Tensor, 1) * max(p.Parallel.Pipeline, 1)
}

// FrontEnd is what happens to a request between its arrival and the scheduler.
type FrontEnd struct {
	FixedMs      float64 `yaml:"fixed_ms"`       // delay of every request; they overlap
	PerRequestMs float64 `yaml:"per_request_ms"` // work on each request, one after the other
	HoldsBurst   bool    `yaml:"holds_burst"`    // nothing of a burst is scheduled until the last of it is through

	// PerEventMs is the work on each event that goes out, one after the other over
	// all answers: a front end that falls behind puts several tokens in one. It is
	// the server's; the step loop has nothing to do with it.
	PerEventMs float64 `yaml:"per_event_ms"`
}

// Names lists the embedded profiles.
func Names() []string {
	entries, err := fs.ReadDir(profiles.FS, ".")
	if err != nil { // an embedded directory is always there
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load returns the embedded profile of that name or, where nameOrPath has a
// slash or ends in .yaml or .yml, the one in that file.
func Load(nameOrPath string) (Profile, error) {
	ext := filepath.Ext(nameOrPath)
	if strings.ContainsAny(nameOrPath, `/\`) || ext == ".yaml" || ext == ".yml" {
		b, err := wholefile.ReadShort(nameOrPath)
		if err != nil {
			return Profile{}, fmt.Errorf("read profile: %w", err)
		}
		return named(nameOrPath, b)
	}
	b, err := profiles.FS.ReadFile(nameOrPath + ".yaml")
	if err != nil {
		return Profile{}, fmt.Errorf("%w; a path to a file of your own has a slash or ends in .yaml", spelling.Unknown("profile", nameOrPath, Names()))
	}
	return named(nameOrPath, b)
}

func named(name string, b []byte) (Profile, error) {
	p, err := parse(b)
	if err != nil {
		return Profile{}, fmt.Errorf("profile %s: %w", name, err)
	}
	return p, nil
}

// goType is what tells a reader of Go where a field is missing, and nobody else.
var goType = regexp.MustCompile(` in type step\.\w+`)

// parse reads a profile from YAML and checks it. A field it does not know is
// an error, since it is most likely a misspelt one.
func parse(b []byte) (Profile, error) {
	var p Profile
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		if errors.Is(err, io.EOF) {
			return Profile{}, errors.New("the file is empty")
		}
		return Profile{}, errors.New(goType.ReplaceAllString(err.Error(), "; docs/profile.md has all fields"))
	}
	if err := p.Validate(); err != nil {
		return Profile{}, err
	}
	return p, nil
}

// Bounds that no real engine comes near and that keep the arithmetic exact.
const (
	maxCount = 1 << 31
	maxMs    = 3.6e6

	mostEngines = 1024
)

// Validate says which field cannot be used, and what it may be.
func (p *Profile) Validate() error {
	if !slices.ContainsFunc(policies, func(k policy) bool { return k.Name == p.Policy }) {
		return fmt.Errorf("policy: %q is none of %s", p.Policy, strings.Join(policyNames(), ", "))
	}
	if err := p.validateNumbers(); err != nil {
		return err
	}
	if err := p.Output.validate(); err != nil {
		return fmt.Errorf("output.%w", err)
	}
	if err := p.Cost.validate(); err != nil {
		return fmt.Errorf("cost.%w", err)
	}
	for name, e := range p.Errors {
		if err := within("errors."+name, e, 0, 100); err != nil {
			return err
		}
	}
	for pair, r := range p.Correlations {
		a, b, two := strings.Cut(pair, ", ")
		if _, ok := p.Errors[a]; !ok || !two {
			return fmt.Errorf("correlations: %q must be two names of errors, with a comma and a space between", pair)
		}
		if _, ok := p.Errors[b]; !ok {
			return fmt.Errorf("correlations: %q has no error", b)
		}
		if err := within("correlations."+pair, r, -1, 1); err != nil {
			return err
		}
	}
	return nil
}

func (p *Profile) validateNumbers() error {
	for _, f := range []struct {
		field  string
		value  float64
		lo, hi float64
	}{
		{"max_sequences", float64(p.MaxSequences), 1, maxCount},
		{"step_tokens", float64(p.StepTokens), 1, maxCount},
		{"context_tokens", float64(p.ContextTokens), 0, maxCount},
		{"kv.block_tokens", float64(p.KV.BlockTokens), 1, maxCount},
		{"kv.blocks", float64(p.KV.Blocks), 0, maxCount},
		{"kv.watermark", p.KV.Watermark, 0, 0.9},
		{"reserve.wait_steps", float64(p.Reserve.WaitSteps), 0, maxCount},
		{"reserve.waiting_ratio", p.Reserve.WaitingRatio, 0, maxCount},
		{"speculation.draft_tokens", float64(p.Speculation.DraftTokens), 0, 1024},
		{"speculation.acceptance", p.Speculation.Acceptance, 0, 1},
		{"speculation.draft_ms", p.Speculation.DraftMs, 0, maxMs},
		{"speculation.draft_per_sequence_us", p.Speculation.DraftPerSequenceUs, 0, maxMs},
		{"kv.bytes_per_token", float64(p.KV.BytesPerToken), 0, maxCount},
		{"lora.slots", float64(p.LoRA.Slots), 0, maxCount},
		{"offload.blocks", float64(p.Offload.Blocks), 0, maxCount},
		{"offload.gb_per_s", p.Offload.GBPerS, 0, maxCount},
		{"parallel.tensor", float64(p.Parallel.Tensor), 0, mostEngines},
		{"parallel.pipeline", float64(p.Parallel.Pipeline), 0, mostEngines},
		{"parallel.data", float64(p.Parallel.Data), 0, mostEngines},
		{"split.prefill", float64(p.Split.Prefill), 0, mostEngines},
		{"split.decode", float64(p.Split.Decode), 0, mostEngines},
		{"split.gb_per_s", p.Split.GBPerS, 0, maxCount},
		{"split.latency_ms", p.Split.LatencyMs, 0, maxMs},
		{"front_end.fixed_ms", p.FrontEnd.FixedMs, 0, maxMs},
		{"front_end.per_request_ms", p.FrontEnd.PerRequestMs, 0, maxMs},
		{"front_end.per_event_ms", p.FrontEnd.PerEventMs, 0, maxMs},
		{"host.steps_in_flight", float64(p.Host.StepsInFlight), 0, 2},
		{"host.graph_tokens", float64(p.Host.GraphTokens), 0, maxCount},
		{"host.noise", p.Host.Noise, 0, 2},
		{"api.turns", float64(p.API.Turns), 0, 1000},
		{"api.piece_tokens", float64(p.API.PieceTokens), 0, maxCount},
	} {
		if err := within(f.field, f.value, f.lo, f.hi); err != nil {
			return err
		}
	}
	for section, of := range map[string]any{"host": p.Host, "api": p.API, "lora": p.LoRA, "parallel": p.Parallel} {
		for name, v := range allTimes(section, reflect.ValueOf(of)) {
			if err := within(name, v, 0, maxMs); err != nil {
				return err
			}
		}
	}
	return p.validateTogether()
}

// validateTogether says which fields do not go with others.
func (p *Profile) validateTogether() error {
	switch {
	case p.LoRA.Slots == 0 && p.LoRA != (LoRA{}):
		return errors.New("lora.slots: say how many adapters fit in memory together")
	case p.Offload != (Offload{}) && (p.Offload.Blocks == 0 || p.Offload.GBPerS == 0 || p.KV.BytesPerToken == 0):
		return errors.New("offload: it needs blocks, gb_per_s and kv.bytes_per_token")
	case p.Offload.Blocks > 0 && p.KV.Blocks == 0:
		return errors.New("offload: kv.blocks is 0, and memory that never ends has nothing to offload")
	case p.Parallel.Tensor <= 1 && (p.Parallel.AllReduceMs > 0 || p.Parallel.AllReducePerTokenUs > 0):
		return errors.New("parallel.tensor: say over how many GPUs a layer goes, or leave all_reduce out")
	case p.Parallel.Pipeline <= 1 && p.Parallel.HopMs > 0:
		return errors.New("parallel.pipeline: say how many stages there are, or leave hop_ms out")
	case p.Parallel.Data <= 1 && p.Parallel.LockStep:
		return errors.New("parallel.data: say how many engines go in lock step, or leave lock_step out")
	case p.Split != (Split{}) && (p.Split.Prefill == 0 || p.Split.Decode == 0 || p.Split.GBPerS == 0 || p.KV.BytesPerToken == 0):
		return errors.New("split: it needs prefill, decode, gb_per_s and kv.bytes_per_token")
	case p.Split.Prefill > 0 && p.Parallel.Data > 1:
		return errors.New("split and parallel.data: both say how many engines there are: keep one of them")
	}
	if p.API != (API{}) && p.FrontEnd != (FrontEnd{}) {
		return errors.New("front_end and api: both describe what is before the engine: keep one of them")
	}
	return nil
}

// allTimes are the fields of a section that are numbers with a fraction, by
// their names in a file.
func allTimes(section string, v reflect.Value) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Float64 && !yield(section+"."+v.Type().Field(i).Tag.Get("yaml"), v.Field(i).Float()) {
				return
			}
		}
	}
}

// within complains about a value outside [lo, hi], and about NaN.
func within(field string, v, lo, hi float64) error {
	if math.IsNaN(v) || v < lo || v > hi {
		return fmt.Errorf("%s: %v is not between %v and %v", field, v, lo, hi)
	}
	return nil
}
