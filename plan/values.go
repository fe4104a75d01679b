package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// formatFloat formats infinity as Python parses it.
func formatFloat(f float64) string {
	if math.IsInf(f, 1) {
		return "inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// parseLevels parses a list of numbers. Three dots are expanded to doublings if
// the number after the dots is a power of two times the number before them,
// otherwise to equal steps.
func parseLevels(s string) ([]float64, error) {
	var out []float64
	dots := false
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "..." || part == "…" {
			if len(out) == 0 || dots {
				return nil, fmt.Errorf("levels %q: the dots need a number before them, as in 1,2,...,64", s)
			}
			dots = true
			continue
		}
		f, err := strconv.ParseFloat(part, 64)
		if err != nil || math.IsNaN(f) {
			return nil, fmt.Errorf("%q is not a number or a list like 1,2,4 or 1,2,...,64", part)
		}
		if dots {
			if out, err = fillLevels(out, f); err != nil {
				return nil, fmt.Errorf("levels %q: %w", s, err)
			}
			dots = false
		}
		out = append(out, f)
	}
	if dots {
		return nil, fmt.Errorf("levels %q: the dots need a number after them, as in 1,2,...,64", s)
	}
	return out, nil
}

// fillLevels appends the numbers that the dots between out and last represent.
func fillLevels(out []float64, last float64) ([]float64, error) {
	from := out[len(out)-1]
	if math.IsInf(last, 0) || !(last > from) {
		return nil, fmt.Errorf("the dots cannot go from %s to %s", formatFloat(from), formatFloat(last))
	}
	next := func(f float64) float64 { return 2 * f }
	if !doubles(out, last) {
		step := 1.0
		if n := len(out); n > 1 {
			step = from - out[n-2]
		}
		if n := (last - from) / step; step <= 0 || n != math.Trunc(n) {
			return nil, fmt.Errorf("%s is not a doubling of %s and not a multiple of step %s above it", formatFloat(last), formatFloat(from), formatFloat(step))
		}
		next = func(f float64) float64 { return f + step }
	}
	for f := next(from); f < last; f = next(f) {
		if out = append(out, f); len(out) > maxLevels {
			return nil, fmt.Errorf("more than %d levels", maxLevels)
		}
	}
	return out, nil
}

// doubles reports whether each number in the list is twice the previous one,
// and last is a further doubling.
func doubles(out []float64, last float64) bool {
	if out[0] <= 0 {
		return false
	}
	for i := 1; i < len(out); i++ {
		if out[i] != 2*out[i-1] {
			return false
		}
	}
	steps := math.Log2(last / out[len(out)-1])
	return steps == math.Trunc(steps)
}

// Seconds is a duration as users write it: a number of seconds, or 500ms, 2m.
type Seconds float64

// Duration converts s to a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Seconds) UnmarshalText(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		d, err := time.ParseDuration(string(b))
		if err != nil {
			return fmt.Errorf("%q is not a duration, write seconds, 500ms or 2m", b)
		}
		f = d.Seconds()
	}
	if !(f >= 0 && f < 1e9) {
		return fmt.Errorf("duration %q is out of range", b)
	}
	*s = Seconds(f)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (s Seconds) MarshalText() ([]byte, error) { return []byte(formatFloat(float64(s))), nil }

// JSONObject is a JSON object on the command line.
type JSONObject map[string]any

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *JSONObject) UnmarshalText(b []byte) error {
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf(`not a JSON object like {"key": 1}: %w`, err)
	}
	*o = m
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (o JSONObject) MarshalText() ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	return json.Marshal(map[string]any(o))
}

// A GPU is a GPU model and the number of GPUs of that model.
type GPU struct {
	Count int
	Name  string
}

// GPUs are the GPUs of a server.
type GPUs []GPU

// Count returns the total number of GPUs.
func (g GPUs) Count() (n int) {
	for _, gpu := range g {
		n += gpu.Count
	}
	return n
}

// UnmarshalText reads 8xMI300X, H100 or 4xH100,4xA100.
func (g *GPUs) UnmarshalText(b []byte) error {
	*g = nil
	for part := range strings.SplitSeq(string(b), ",") {
		gpu := GPU{1, strings.TrimSpace(part)}
		if count, name, found := strings.Cut(gpu.Name, "x"); found {
			if n, err := strconv.Atoi(count); err == nil {
				gpu = GPU{n, strings.TrimSpace(name)}
			}
		}
		if gpu.Count < 1 || gpu.Name == "" {
			return errors.New("write number and model, as in 8xMI300X or 4xH100,4xA100")
		}
		*g = append(*g, gpu)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (g GPUs) MarshalText() ([]byte, error) {
	parts := make([]string, len(g))
	for i, gpu := range g {
		parts[i] = fmt.Sprintf("%dx%s", gpu.Count, gpu.Name)
	}
	return []byte(strings.Join(parts, ",")), nil
}
