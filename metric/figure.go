package metric

// A Figure is the definition of one number of a whole level, where a Metric is
// of a request.
type Figure struct {
	Name  string // stable: in JSON and CSV
	Title string
	Unit  Unit
	Doc   string // the formula, in words
	Of    func(s *Summary) *float64
}

// The units of figures alone.
const (
	PerMillion Unit = "per M tok" // of the currency that the price is in
	Joules     Unit = "J"
)

// Figures are all of them, in the order they are shown.
var Figures = []*Figure{
	{
		"cost_input", "Cost per Million Input Tokens", PerMillion,
		"price of all GPUs for the duration / million input tokens, as if output were free; where --gpu-price and the number of GPUs are known",
		func(s *Summary) *float64 { return s.cost(s.Tokens.Input) },
	},
	{
		"cost_output", "Cost per Million Output Tokens", PerMillion,
		"price of all GPUs for the duration / million output tokens, as if input were free; where --gpu-price and the number of GPUs are known",
		func(s *Summary) *float64 { return s.cost(s.Tokens.Output) },
	},
	{
		"cost_total", "Cost per Million Tokens", PerMillion,
		"price of all GPUs for the duration / million input and output tokens; where --gpu-price and the number of GPUs are known",
		func(s *Summary) *float64 { return s.cost(s.Tokens.Input + s.Tokens.Output) },
	},
	{
		"output_per_gpu", "Output per GPU", TokensPerSec,
		"output tokens / duration / GPUs; where the number of GPUs is known",
		func(s *Summary) *float64 { return s.perGPU(s.Tokens.Output) },
	},
	{
		"total_per_gpu", "Tokens per GPU", TokensPerSec,
		"input and output tokens / duration / GPUs; where the number of GPUs is known",
		func(s *Summary) *float64 { return s.perGPU(s.Tokens.Input + s.Tokens.Output) },
	},
	{
		"energy_per_token", "Energy per Output Token", Joules,
		"energy that the GPUs used in the course of the level / output tokens; where a metrics page tells their energy or power",
		(*Summary).EnergyPerToken,
	},
	{
		"prompt_cached_share", "Share of Prompt Tokens from a Cache", Share,
		"prompt tokens that the server took from a cache / prompt tokens, by its answers or else by its metrics page",
		func(s *Summary) *float64 {
			if share, told := foundShare(s); told {
				return &share
			}
			return nil
		},
	},
	{
		"draft_acceptance", "Acceptance of Drafts", Share,
		"drafted tokens that were accepted / drafted tokens, by the metrics page of a server that drafts",
		func(s *Summary) *float64 {
			if drafts := s.Speculation(); drafts != nil {
				share := drafts.AcceptedShare()
				return &share
			}
			return nil
		},
	},
	{
		"stalled_share", "Share of Requests that Stalled", Share,
		"requests with a gap longer than --stall-threshold / requests with two token events; successful requests",
		func(s *Summary) *float64 {
			if share, ok := ratio(s.Stalled, s.Dist(Stalls).N); ok {
				return &share
			}
			return nil
		},
	},
}

// figures are those that s can tell.
func figures(s *Summary) map[string]float64 {
	var known map[string]float64
	for _, f := range Figures {
		if v := f.Of(s); v != nil {
			if known == nil {
				known = map[string]float64{}
			}
			known[f.Name] = *v
		}
	}
	return known
}

// cost is what a million tokens come to, if all is paid for these.
func (s *Summary) cost(tokens int) *float64 {
	if s.Config.GPUPrice <= 0 || s.Config.GPUs <= 0 || tokens == 0 {
		return nil
	}
	perMillion := s.Config.GPUPrice * s.Config.GPUs * s.DurationS / 3600 / float64(tokens) * 1e6
	return &perMillion
}

func (s *Summary) perGPU(tokens int) *float64 {
	if s.Config.GPUs <= 0 || s.DurationS == 0 {
		return nil
	}
	rate := float64(tokens) / s.DurationS / s.Config.GPUs
	return &rate
}
