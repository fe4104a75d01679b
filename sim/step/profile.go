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

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/sim/profiles"

	"go.yaml.in/yaml/v3"
)

// A Profile describes one inference engine serving one model on one machine. It is
// the content of a profile file; missing fields are zero.
type Profile struct {
	Name   string `yaml:"name"`
	About  string `yaml:"about"`  // for people: what the profile describes and how accurate it is
	Engine string `yaml:"engine"` // API and metrics dialect of the server: vllm, tgi, sglang, llamacpp, ...
	Model  string `yaml:"model"`  // model name the server accepts

	Source  string `yaml:"source"`   // for people: origin of the numbers
	HeldOut string `yaml:"held_out"` // for people: error on data excluded from the fit

	Policy        string `yaml:"policy"`         // one of policies
	MaxSequences  int    `yaml:"max_sequences"`  // maximum number of running sequences
	StepTokens    int    `yaml:"step_tokens"`    // maximum number of tokens in a step
	ContextTokens int    `yaml:"context_tokens"` // maximum number of prompt and output tokens; 0: no limit
	Priority      bool   `yaml:"priority"`       // a lower priority number runs first and is preempted last

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
	Pauses      Pauses      `yaml:"pauses"`

	// Faults are faults of the server, as tacho sim --fault accepts them. A computed engine has none.
	Faults []string `yaml:"faults"`

	// Errors are the relative standard errors of fitted numbers, by name:
	// api.event_us, "cost.step at 64".
	Errors map[string]float64 `yaml:"errors"`
	// Correlations are the correlations of these errors, by both names:
	// "api.event_us, api.token_us". A missing pair is uncorrelated.
	Correlations map[string]float64 `yaml:"correlations"`

	HeldOutErrors HeldOutErrors `yaml:"held_out_errors"`
	FittedTo      FittedTo      `yaml:"fitted_to"`
}

// KV is the memory for keys and values, in blocks.
type KV struct {
	BlockTokens int     `yaml:"block_tokens"` // tokens in a block
	Blocks      int     `yaml:"blocks"`       // number of blocks; 0: unlimited
	Watermark   float64 `yaml:"watermark"`    // fraction of blocks kept free at admission
	PrefixCache bool    `yaml:"prefix_cache"` // blocks with a known hash are kept and shared

	BytesPerToken int `yaml:"bytes_per_token"` // size of a token's keys and values; needed only for transfers to another memory
}

// moveMs is the transfer time of the keys and values of tokens over a link.
func (k *KV) moveMs(tokens int, gbPerS float64) float64 {
	return float64(tokens) * float64(k.BytesPerToken) / gbPerS / 1e6
}

// Reserve configures when the reserve policy interrupts decoding for a prefill.
type Reserve struct {
	WaitSteps    int     `yaml:"wait_steps"`    // decode steps after which any waiting request is admitted
	WaitingRatio float64 `yaml:"waiting_ratio"` // before that: minimum number of waiting requests for each running one
}

// Speculation is speculative decoding. Each decode proposes DraftTokens tokens,
// keeps those before the first rejected one, and always generates one more.
type Speculation struct {
	DraftTokens int     `yaml:"draft_tokens"`
	Acceptance  float64 `yaml:"acceptance"` // probability that a draft token is kept if all before it were kept

	DraftMs            float64 `yaml:"draft_ms"`              // added to a step for each of DraftTokens, which the draft model generates one after the other
	DraftPerSequenceUs float64 `yaml:"draft_per_sequence_us"` // added for each decoding sequence
}

// Parallel is an engine on several GPUs. The costs of the profile are those of one
// GPU.
type Parallel struct {
	Tensor              int     `yaml:"tensor"`                  // GPUs for each layer; divides the duration of a step
	AllReduceMs         float64 `yaml:"all_reduce_ms"`           // added to each step for the all-reduce ...
	AllReducePerTokenUs float64 `yaml:"all_reduce_per_token_us"` // ... and for each of its tokens

	Pipeline int     `yaml:"pipeline"` // groups of layers on consecutive GPUs; as many steps are in flight, each with other sequences
	HopMs    float64 `yaml:"hop_ms"`   // latency from one group to the next

	Data     int  `yaml:"data"`      // complete engines behind one address, each with its own memory and batch
	LockStep bool `yaml:"lock_step"` // the engines step together, at the pace of the slowest
}

// Split is disaggregated serving: some engines only prefill, others only decode,
// and keys and values are sent from one to the other. The first token is delivered
// when they have arrived. Each engine has the costs of the profile.
type Split struct {
	Prefill   int     `yaml:"prefill"` // engines for prefill
	Decode    int     `yaml:"decode"`  // engines for decoding
	GBPerS    float64 `yaml:"gb_per_s"`
	LatencyMs float64 `yaml:"latency_ms"` // of a transfer; the transfers of one engine are sequential
}

// engines is the number of engines in a server of this profile.
func (p *Profile) engines() int { return max(p.Split.Prefill+p.Split.Decode, p.Parallel.Data, 1) }

// MostRunning is the maximum number of running sequences of a server.
func (p *Profile) MostRunning() int { return p.engines() * p.MaxSequences }

// GPUs is the number of GPUs of a server.
func (p *Profile) GPUs() int {
	return p.engines() * max(p.Parallel.Tensor, 1) * max(p.Parallel.Pipeline, 1)
}

// FrontEnd is the work on a request between its arrival and the scheduler.
type FrontEnd struct {
	FixedMs      float64 `yaml:"fixed_ms"`       // delay of every request; delays overlap
	PerRequestMs float64 `yaml:"per_request_ms"` // work on each request, one after the other
	HoldsBurst   bool    `yaml:"holds_burst"`    // no request of a burst is scheduled before the last is done

	// PerEventMs is the work on each outgoing event, one after the other over all
	// answers. A front end that falls behind merges several tokens into an event.
	// It belongs to the server; the step loop does not use it.
	PerEventMs float64 `yaml:"per_event_ms"`
}

// Names lists the embedded profiles.
func Names() []string {
	entries, err := fs.ReadDir(profiles.FS, ".")
	if err != nil { // an embedded directory always exists
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load returns the embedded profile of that name, or the profile in a file if
// nameOrPath contains a slash or ends in .yaml or .yml.
func Load(nameOrPath string) (Profile, error) {
	ext := filepath.Ext(nameOrPath)
	if strings.ContainsAny(nameOrPath, `/\`) || ext == ".yaml" || ext == ".yml" {
		b, err := atomicfile.ReadShort(nameOrPath)
		if err != nil {
			return Profile{}, fmt.Errorf("read profile: %w", err)
		}
		return named(nameOrPath, b)
	}
	b, err := profiles.FS.ReadFile(nameOrPath + ".yaml")
	if err != nil {
		return Profile{}, fmt.Errorf("%w; the path of a profile file contains a slash or ends in .yaml", spelling.Unknown("profile", nameOrPath, Names()))
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

// goType matches the part of an error that names a Go type, which users of profiles
// do not know.
var goType = regexp.MustCompile(` in type step\.\w+`)

// parse reads a profile from YAML and validates it. An unknown field is an error,
// because it is probably misspelt.
func parse(b []byte) (Profile, error) {
	var p Profile
	if err := limit.Depth(b); err != nil {
		return Profile{}, err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		if errors.Is(err, io.EOF) {
			return Profile{}, errors.New("the file is empty")
		}
		return Profile{}, errors.New(goType.ReplaceAllString(err.Error(), "; docs/profile.md lists all fields"))
	}
	if err := p.Validate(); err != nil {
		return Profile{}, err
	}
	return p, nil
}

// Bounds far beyond real engines that keep the arithmetic exact.
const (
	maxCount = 1 << 31
	maxMs    = 3.6e6

	mostEngines = 1024
)

// Validate returns an error that names an invalid field and its valid range.
func (p *Profile) Validate() error {
	if !slices.ContainsFunc(policies, func(k policy) bool { return k.Name == p.Policy }) {
		return fmt.Errorf("policy: %q is not one of %s", p.Policy, strings.Join(policyNames(), ", "))
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
			return fmt.Errorf("correlations: %q must be two names of errors, separated by a comma and a space", pair)
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
		{"pauses.every_s", p.Pauses.EveryS, 0, maxMs / 1000},
		{"pauses.length_s", p.Pauses.LengthS, 0, p.Pauses.EveryS / 2},
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

// validateTogether reports fields that cannot be combined.
func (p *Profile) validateTogether() error {
	switch {
	case p.LoRA.Slots == 0 && p.LoRA != (LoRA{}):
		return errors.New("lora.slots: set the number of adapters that fit in memory")
	case p.Offload != (Offload{}) && (p.Offload.Blocks == 0 || p.Offload.GBPerS == 0 || p.KV.BytesPerToken == 0):
		return errors.New("offload: set blocks, gb_per_s and kv.bytes_per_token")
	case p.Offload.Blocks > 0 && p.KV.Blocks == 0:
		return errors.New("offload: kv.blocks is 0 (unlimited), so nothing is ever offloaded")
	case p.Parallel.Tensor <= 1 && (p.Parallel.AllReduceMs > 0 || p.Parallel.AllReducePerTokenUs > 0):
		return errors.New("parallel.tensor: set the number of GPUs for each layer, or omit all_reduce")
	case p.Parallel.Pipeline <= 1 && p.Parallel.HopMs > 0:
		return errors.New("parallel.pipeline: set the number of stages, or omit hop_ms")
	case p.Parallel.Data <= 1 && p.Parallel.LockStep:
		return errors.New("parallel.data: set the number of engines in lock step, or omit lock_step")
	case p.Split != (Split{}) && (p.Split.Prefill == 0 || p.Split.Decode == 0 || p.Split.GBPerS == 0 || p.KV.BytesPerToken == 0):
		return errors.New("split: set prefill, decode, gb_per_s and kv.bytes_per_token")
	case p.Split.Prefill > 0 && p.Parallel.Data > 1:
		return errors.New("split and parallel.data both set the number of engines: keep one of them")
	}
	if p.API != (API{}) && p.FrontEnd != (FrontEnd{}) {
		return errors.New("front_end and api both describe the work before the engine: keep one of them")
	}
	return nil
}

// allTimes iterates over the floating-point fields of a section, by their YAML
// names.
func allTimes(section string, v reflect.Value) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Float64 && !yield(section+"."+v.Type().Field(i).Tag.Get("yaml"), v.Field(i).Float()) {
				return
			}
		}
	}
}

// within returns an error if v is NaN or outside [lo, hi].
func within(field string, v, lo, hi float64) error {
	if math.IsNaN(v) || v < lo || v > hi {
		return fmt.Errorf("%s: %v is not between %v and %v", field, v, lo, hi)
	}
	return nil
}
