package metric

import "slices"

// A Figure is the definition of one number of a whole level. A Metric is a number of one request.
type Figure struct {
	Name  string // stable: used in JSON and CSV
	Title string
	Unit  Unit
	Doc   string // the formula in words
	Of    func(s *Summary) *float64
}

// Units used by figures only.
const (
	PerMillion Unit = "per M tok" // in the currency of the price
	Joules     Unit = "J"
)

// stalledShare is the name of the figure that counts stalled requests.
const stalledShare = "stalled_share"

// Figures are all figures in display order.
var Figures = slices.Concat(levelFigures, pageFigures)

// levelFigures are figures that tacho computes.
var levelFigures = []*Figure{
	{
		"cost_input", "Cost per Million Input Tokens", PerMillion,
		"price of all GPUs for the duration / million input tokens, with output free; if --gpu-price and the number of GPUs are known",
		func(s *Summary) *float64 { return s.cost(s.Tokens.Input) },
	},
	{
		"cost_output", "Cost per Million Output Tokens", PerMillion,
		"price of all GPUs for the duration / million output tokens, with input free; if --gpu-price and the number of GPUs are known",
		func(s *Summary) *float64 { return s.cost(s.Tokens.Output) },
	},
	{
		"cost_total", "Cost per Million Tokens", PerMillion,
		"price of all GPUs for the duration / million input and output tokens; if --gpu-price and the number of GPUs are known",
		func(s *Summary) *float64 { return s.cost(s.Tokens.Input + s.Tokens.Output) },
	},
	{
		"output_per_gpu", "Output per GPU", TokensPerSec,
		"output tokens / duration / GPUs; if the number of GPUs is known",
		func(s *Summary) *float64 { return s.perGPU(s.Tokens.Output) },
	},
	{
		"total_per_gpu", "Tokens per GPU", TokensPerSec,
		"input and output tokens / duration / GPUs; if the number of GPUs is known",
		func(s *Summary) *float64 { return s.perGPU(s.Tokens.Input + s.Tokens.Output) },
	},
	{
		"energy_per_token", "Energy per Output Token", Joules,
		"energy used by the GPUs during the level / output tokens; if a metrics page reports energy or power",
		(*Summary).EnergyPerToken,
	},
	{
		"prompt_cached_share", "Prompt Tokens from Cache (share)", Share,
		"prompt tokens from the server's cache / prompt tokens, by the answers or otherwise by the metrics page",
		func(s *Summary) *float64 {
			if share, known := foundShare(s); known {
				return &share
			}
			return nil
		},
	},
	{
		PageDraftRate, "Draft Acceptance (share)", Share,
		"accepted draft tokens / draft tokens, by the metrics page of a server with speculative decoding",
		func(s *Summary) *float64 {
			if drafts := s.Speculation(); drafts != nil {
				share := drafts.AcceptedShare()
				return &share
			}
			return s.page(PageDraftRate)
		},
	},
	{
		stalledShare, "Stalled Requests (share)", Share,
		"requests with a gap longer than --stall-threshold / requests with two token events; successful requests",
		func(s *Summary) *float64 {
			if share, ok := ratio(s.Stalled, s.Dist(Stalls).N); ok {
				return &share
			}
			return nil
		},
	},
}

// figures returns the figures known for s.
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

// cost returns the price of a million tokens if these tokens pay for everything.
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
