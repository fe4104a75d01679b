package metric

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// otherNames are names of metrics in other tools. AIPerf's inter_token_latency is the mean of a request.
var otherNames = map[string]string{
	"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2el", "time_to_second_token": "ttst",
	"e2e": "e2el",
}

// ownName returns our name of a metric.
func ownName(name string) string {
	if ours := otherNames[name]; ours != "" && Named(name) == nil {
		return ours
	}
	return name
}

// ParseSLOs parses limits on each request, separated by commas or spaces: ttft:500, ttft:500ms,
// ttft<500ms, or itl.p99<50ms for a metric with many values per request. Numbers without a unit have the
// unit of the metric.
func ParseSLOs(text string) ([]SLO, error) {
	var out []SLO
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		slo, err := parseSLO(part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		out = append(out, slo)
	}
	if len(out) == 0 {
		return nil, errors.New("no limits given: use a list such as ttft:500ms,tpot:50ms")
	}
	return out, nil
}

func parseSLO(part string) (slo SLO, err error) {
	name, limit, compared := part, "", false
	if at := strings.IndexAny(part, "<>"); at >= 0 {
		name, limit, compared = part[:at], strings.TrimPrefix(part[at+1:], "="), true
	} else if at := strings.LastIndexByte(part, ':'); at >= 0 {
		name, limit = part[:at], part[at+1:]
	}
	name = strings.ToLower(name)
	name, which, percentile := strings.Cut(strings.Replace(name, ":", ".", 1), ".")
	slo.Metric = ownName(name)
	m := Named(slo.Metric)
	if m == nil {
		if name != "" && name[0] >= '0' && name[0] <= '9' {
			return slo, fmt.Errorf("the metric is missing, as in ttft:%s", part)
		}
		return slo, slo.validate()
	}
	if slo.LimitMillis, err = parseAmount(m.Unit, limit); err != nil {
		return slo, fmt.Errorf("%q is not a limit: use NAME:LIMIT with a number in %s, such as %s:200%s", limit, m.Unit, m.Name, m.Unit)
	}
	if compared && strings.Contains(part, ">") != m.MoreIsBetter {
		return slo, fmt.Errorf("a good request has %s %s", m.Name, map[bool]string{true: "above the limit: use >", false: "below the limit: use <"}[m.MoreIsBetter])
	}
	if !percentile {
		return slo, nil
	}
	if slo.Percentile, err = strconv.ParseFloat(strings.TrimPrefix(which, "p"), 64); err != nil || slo.Percentile <= 0 {
		return slo, fmt.Errorf("%q is not a percentile: use one such as itl.p99:50ms", which)
	}
	if !m.PerEvent {
		return slo, fmt.Errorf("a request has one %s: goodput limits every request, as in %s:%s, and --slo limits percentiles of all requests", m.Name, m.Name, limit)
	}
	return slo, nil
}
