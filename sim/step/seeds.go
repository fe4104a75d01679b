package step

import (
	"bytes"
	_ "embed" // for the reports
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// seedsCSV has one line for each block of the four reports that the first profiles
// are fitted to.
//
//go:embed seeds.csv
var seedsCSV []byte

// A seedRow is one block of a report: its parameters and its measurements.
type seedRow struct {
	seed         string // the first three characters of the report's name
	requests     int
	promptTokens int // of all requests
	outputTokens int // of all requests, without the end of sequence
	seen         measures
}

// A seedSystem describes how the runs of one report were driven, as far as the
// report states or implies, and the profile of the measured system.
type seedSystem struct {
	seed     string
	profile  string
	drive    func(row seedRow, rng *rand.Rand) []Arrival
	shuffles uint64         // number of shuffled workloads; a simulated measure is their mean
	excepted map[int]string // reason to exclude a row, by number of requests
}

// stall explains why two rows of report 001 are excluded.
const stall = "one stall of about 1.3 s, in no other row"

var seedSystems = []seedSystem{
	{"000", "vllm-405b-mi300x", allAtOnce(150, 22), 3, nil},
	{"001", "tgi-405b-mi300x", allAtOnce(150, 16), 3, map[int]string{2: stall, 32: stall}},
	{"002", "prefill-decode-002", allAtOnce(0, 0), 3, nil},
	// The queue of an open loop near its limit depends on the order of arrivals:
	// the mean TTFT of one shuffle has a standard deviation of half its size.
	{"003", "rate-limited-003", openLoop, 64, nil},
}

// allAtOnce sends every request at time zero. Outputs are normal about the row's
// mean and limited to maxNew. Their standard deviation is sd up to 1,000 prompt
// tokens and 25 above, because the reports only give sums. If maxNew is 0, every
// output has exactly the row's mean, as with ignore_eos.
func allAtOnce(maxNew int, sd float64) func(seedRow, *rand.Rand) []Arrival {
	return func(row seedRow, rng *rand.Rand) []Arrival {
		meanPrompt := float64(row.promptTokens) / float64(row.requests)
		prompts := normalLengths(row.requests, row.promptTokens, min(2, meanPrompt/10), maxCount, rng)
		limit, outputSD := maxNew, sd
		if maxNew == 0 {
			limit = row.outputTokens / row.requests
		}
		if meanPrompt > 1000 && sd > 0 {
			outputSD = 25
		}
		outputs := normalLengths(row.requests, row.outputTokens, outputSD, limit, rng)
		arrivals := make([]Arrival, row.requests)
		for i := range arrivals {
			arrivals[i].Request = Request{ID: uint64(i), Prompt: prompts[i], MaxNew: limit, Output: outputs[i], IgnoreEOS: maxNew == 0}
		}
		return arrivals
	}
}

// The shape of the workload of report 003. The report only gives sums and latency
// percentiles; these values agree with them best.
const (
	openLoopSpanS       = 1007  // from the first arrival to the last
	openLoopMaxNew      = 1024  // limit of outputs
	openLoopShareAtEnd  = 0.472 // fraction of requests with openLoopMaxNew tokens
	openLoopPromptSigma = 1.129 // of the logarithm of prompt lengths
	openLoopMaxPrompt   = 1024
)

// openLoop sends requests as a Poisson process of nearly three per second.
func openLoop(row seedRow, rng *rand.Rand) []Arrival {
	n := row.requests
	prompts := make([]int, n)
	mu := math.Log(float64(row.promptTokens) / float64(n))
	for range 30 { // find the mu whose clipped lengths have the row's sum
		sum := 0
		for i := range prompts {
			v := math.Exp(mu + openLoopPromptSigma*normalQuantile(i, n))
			prompts[i] = int(max(4, min(openLoopMaxPrompt, v)))
			sum += prompts[i]
		}
		mu += math.Log(float64(row.promptTokens) / float64(sum))
	}
	outputs := make([]int, n)
	mean := float64(row.outputTokens) / float64(n) / openLoopMaxNew
	power := (1-openLoopShareAtEnd)/(mean-openLoopShareAtEnd) - 1
	for i := range outputs {
		u := (float64(i) + 0.5) / float64(n) / (1 - openLoopShareAtEnd)
		outputs[i] = max(1, int(openLoopMaxNew*min(1, math.Pow(u, power))))
	}
	rng.Shuffle(n, func(i, j int) { prompts[i], prompts[j] = prompts[j], prompts[i] })
	rng.Shuffle(n, func(i, j int) { outputs[i], outputs[j] = outputs[j], outputs[i] })

	at := make([]float64, n)
	for i := 1; i < n; i++ {
		at[i] = at[i-1] + rng.ExpFloat64()
	}
	arrivals := make([]Arrival, n)
	for i := range arrivals {
		arrivals[i].At = time.Duration(at[i] / at[n-1] * openLoopSpanS * float64(time.Second))
		arrivals[i].Request = Request{ID: uint64(i), Prompt: prompts[i], MaxNew: openLoopMaxNew, Output: outputs[i]}
	}
	return arrivals
}

// normalQuantile is the middle of the i-th of n equal parts of a standard normal
// distribution. Lengths are placed on quantiles and shuffled rather than drawn,
// because the sum of a few drawn lengths would vary at random.
func normalQuantile(i, n int) float64 {
	return math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/float64(n)-1)
}

// normalLengths places n normal lengths from 1 to longest whose sum is total, and
// shuffles them.
func normalLengths(n, total int, sd float64, longest int, rng *rand.Rand) []int {
	lengths := make([]int, n)
	mean, sum := float64(total)/float64(n), 0
	for range 40 {
		sum = 0
		for i := range lengths {
			lengths[i] = max(1, min(longest, int(math.Round(mean+sd*normalQuantile(i, n)))))
			sum += lengths[i]
		}
		if sum == total {
			break
		}
		mean += float64(total-sum) / float64(n)
	}
	for i := 0; sum != total; i = (i + 1) % n { // distribute the rounding error
		if sum < total && lengths[i] < longest {
			lengths[i]++
			sum++
		} else if sum > total && lengths[i] > 1 {
			lengths[i]--
			sum--
		}
	}
	rng.Shuffle(n, func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	return lengths
}

// seedRows reads the embedded reports.
func seedRows() ([]seedRow, error) {
	lines, err := csv.NewReader(bytes.NewReader(seedsCSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("seeds.csv: %w", err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	rows := make([]seedRow, 0, len(lines)-1)
	for n, line := range lines[1:] {
		number := func(name string) float64 {
			i, ok := column[name]
			if !ok {
				err = fmt.Errorf("seeds.csv: no column %s", name)
				return 0
			}
			v, e := strconv.ParseFloat(line[i], 64)
			if e != nil {
				err = fmt.Errorf("seeds.csv line %d, %s: %w", n+2, name, e)
			}
			return v
		}
		rows = append(rows, seedRow{
			seed:         line[column["source"]][:3],
			requests:     int(number("num_prompts")),
			promptTokens: int(number("total_input_tokens")),
			outputTokens: int(number("total_generated_tokens")),
			seen: measures{
				number("mean_ttft_ms"), number("mean_tpot_ms"), number("mean_itl_ms"),
				number("output_token_throughput_tok_per_s"), number("benchmark_duration_s"),
				number("p99_ttft_ms"), number("p99_itl_ms"),
			},
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
