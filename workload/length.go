package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/rows"
	"github.com/tacho-bench/tacho/stat"
)

// Length is a number of tokens: a constant, or a distribution from which each request
// draws. Its zero value is the constant 0. It is written as
//
//	1024                       the number itself
//	uniform(100,2000)          uniform from 100 to 2000
//	normal(1000,200)           mean and standard deviation
//	lognormal(600,0.8)         median, and standard deviation of the logarithm
//	gamma(2,800)               shape and mean
//	zipf(1.2,4000)             exponent and largest number
//	file(lengths.csv)          a histogram: lines of LENGTH,WEIGHT or LOW-HIGH,WEIGHT
//
// A colon may replace the parentheses (normal:1000,200), one letter may replace the name
// (N(1000,200)), and [LOW,HIGH] at the end limits the drawn values.
type Length struct {
	kind      *lengthKind // nil for a constant
	a, b      float64     // parameters; a is the constant
	low, high int         // limits; high 0 means unlimited
	sums      []float64   // cumulative weights of table
	table     []bin       // bins of the histogram
	text      string      // original text
}

// bin is a range of equally likely lengths.
type bin struct{ low, high int }

// lengthKind is one distribution.
type lengthKind struct {
	name, letter string
	params       int
	check        func(a, b float64) error
	draw         func(l *Length, r *rand.Rand) float64
}

var lengthKinds = []lengthKind{
	{"constant", "d", 1, nil, func(l *Length, _ *rand.Rand) float64 { return l.a }},
	{"uniform", "u", 2, func(a, b float64) error {
		if a > b || a != math.Trunc(a) || b != math.Trunc(b) {
			return fmt.Errorf("from %v to %v: write two integers, the smaller first", a, b)
		}
		return nil
	}, func(l *Length, r *rand.Rand) float64 { return l.a + float64(r.IntN(int(l.b-l.a)+1)) }},
	{"normal", "n", 2, nil, func(l *Length, r *rand.Rand) float64 { return l.a + l.b*r.NormFloat64() }},
	{"lognormal", "l", 2, func(a, _ float64) error {
		return positive("a median", a)
	}, func(l *Length, r *rand.Rand) float64 { return l.a * math.Exp(l.b*r.NormFloat64()) }},
	{"gamma", "g", 2, func(a, b float64) error {
		return firstError(positive("a shape", a), positive("a mean", b))
	}, func(l *Length, r *rand.Rand) float64 { return stat.Gamma(r, l.a) * l.b / l.a }},
	{"zipf", "z", 2, func(a, b float64) error {
		if b != math.Trunc(b) || b < 1 || b > MaxRanks {
			return fmt.Errorf("largest number %v: write an integer from 1 to %d", b, MaxRanks)
		}
		return positive("an exponent", a)
	}, func(l *Length, r *rand.Rand) float64 { return float64(1 + pick(l.sums, r)) }},
}

const (
	// MaxRanks limits the number of ranks of a Zipf distribution.
	MaxRanks = 1 << 20
	// MaxTokens limits a length. No model takes longer prompts, and prompts are made in
	// memory.
	MaxTokens = 1 << 24
)

func positive(what string, v float64) error {
	if !(v > 0) {
		return fmt.Errorf("%s of %v must be above 0", what, v)
	}
	return nil
}

func firstError(errs ...error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

// Fixed returns the constant length n.
func Fixed(n int) Length { return Length{a: float64(n)} }

// Constant returns the length, and whether it is constant.
func (l Length) Constant() (n int, ok bool) { return int(l.a), l.kind == nil && l.table == nil }

// Draw draws a length, at least least. A constant does not use r.
func (l *Length) Draw(r *rand.Rand, least int) int {
	n := int(l.a)
	switch {
	case l.table != nil:
		b := l.table[pick(l.sums, r)]
		n = b.low + r.IntN(b.high-b.low+1)
	case l.kind != nil:
		n = int(min(math.Round(l.kind.draw(l, r)), MaxTokens))
	}
	if l.high > 0 {
		n = min(max(n, l.low), l.high)
	}
	return max(n, least)
}

// within returns a uniform distribution around a constant n: from floor(n(1-ratio)), but
// at least least, to ceil(n(1+ratio)).
func (l Length) within(ratio float64, least int) (Length, error) {
	n, constant := l.Constant()
	switch {
	case !(ratio >= 0 && ratio < 1):
		return l, fmt.Errorf("range ratio %v must be at least 0 and below 1", ratio)
	case ratio == 0:
		return l, nil
	case !constant:
		return l, fmt.Errorf("a range ratio of %v needs a constant length, not %v", ratio, l)
	}
	low := max(math.Floor(float64(n)*(1-ratio)), float64(least))
	high := max(math.Ceil(float64(n)*(1+ratio)), low)
	return Length{kind: lengthNamed("uniform"), a: low, b: high, text: fmt.Sprintf("uniform(%v,%v)", low, high)}, nil
}

// minimum returns the smallest length Draw can return, or 0 if the distribution has no
// lower limit.
func (l *Length) minimum() int {
	n := 0
	switch {
	case l.table != nil:
		n = slices.MinFunc(l.table, func(a, b bin) int { return a.low - b.low }).low
	case l.kind == nil, l.kind.name == "uniform":
		n = int(l.a)
	case l.kind.name == "zipf":
		n = 1
	}
	return max(n, l.low)
}

// String returns the length in flag format.
func (l Length) String() string {
	if l.text != "" {
		return l.text
	}
	return strconv.Itoa(int(l.a))
}

// MarshalText implements encoding.TextMarshaler.
func (l Length) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// MarshalJSON writes a constant as a number, for compatibility with existing manifests.
func (l Length) MarshalJSON() ([]byte, error) {
	if n, ok := l.Constant(); ok {
		return strconv.AppendInt(nil, int64(n), 10), nil
	}
	return json.Marshal(l.String())
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Length) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	n, err := strconv.Atoi(text)
	if err == nil && n <= MaxTokens && n >= -MaxTokens {
		*l = Fixed(n)
		return nil
	}
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("length %s: must be at most %d", text, MaxTokens)
	}
	name, rest, ok := cutAny(text, "(:")
	if !ok {
		return fmt.Errorf("length %q: write a number, or a distribution like normal(1000,200)", text)
	}
	args, bounds, bounded := strings.Cut(rest, "[")
	args = strings.TrimSuffix(strings.TrimSpace(args), ")")
	out := Length{text: text}
	if strings.EqualFold(name, "file") {
		err = out.readFile(args)
	} else {
		err = out.parse(strings.ToLower(strings.TrimSpace(name)), args)
	}
	if err == nil && bounded {
		err = out.bound(bounds)
	}
	if err != nil {
		return fmt.Errorf("length %q: %w", text, err)
	}
	*l = out
	return nil
}

func cutAny(s, chars string) (before, after string, ok bool) {
	i := strings.IndexAny(s, chars)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func lengthNamed(name string) *lengthKind {
	i := slices.IndexFunc(lengthKinds, func(k lengthKind) bool { return k.name == name || k.letter == name })
	if i < 0 {
		return nil
	}
	return &lengthKinds[i]
}

func (l *Length) parse(name, args string) error {
	k := lengthNamed(name)
	if k == nil {
		names := []string{"file"}
		for _, k := range lengthKinds {
			names = append(names, k.name)
		}
		return fmt.Errorf("unknown distribution %q, choose from %s", name, strings.Join(names, ", "))
	}
	parts := strings.Split(args, ",")
	if len(parts) != k.params {
		return fmt.Errorf("%s takes %d numbers, not %d", k.name, k.params, len(parts))
	}
	for i, p := range []*float64{&l.a, &l.b}[:k.params] {
		v, err := strconv.ParseFloat(strings.TrimSpace(parts[i]), 64)
		if err != nil || !(v >= 0 && v <= MaxTokens) {
			return fmt.Errorf("%q is not a number from 0 to %d", parts[i], MaxTokens)
		}
		*p = v
	}
	if k.check != nil {
		if err := k.check(l.a, l.b); err != nil {
			return err
		}
	}
	l.kind = k
	switch k.name {
	case "constant":
		l.kind, l.a, l.text = nil, math.Round(l.a), ""
	case "zipf":
		l.sums = zipfSums(l.a, int(l.b))
	}
	return nil
}

func (l *Length) bound(text string) error {
	low, high, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(text), "]"), ",")
	var err [2]error
	l.low, err[0] = strconv.Atoi(strings.TrimSpace(low))
	l.high, err[1] = strconv.Atoi(strings.TrimSpace(high))
	if !ok || err[0] != nil || err[1] != nil || l.low < 0 || l.high < max(l.low, 1) || l.high > MaxTokens {
		return fmt.Errorf("bounds [%s: write [LOW,HIGH], as in [1,4096]", text)
	}
	return nil
}

// readFile reads a histogram.
func (l *Length) readFile(path string) error {
	lines, err := rows.OpenLines(path)
	if err != nil {
		return err
	}
	defer lines.Close()
	sum := 0.0
	for text := range lines.All {
		b, weight, err := parseBin(string(text))
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, lines.Number(), err)
		}
		if weight == 0 {
			continue
		}
		sum += weight
		l.sums, l.table = append(l.sums, sum), append(l.table, b)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(l.table) == 0 {
		return fmt.Errorf("%s contains no weight above 0; write lines of LENGTH,WEIGHT", path)
	}
	return nil
}

func parseBin(text string) (b bin, weight float64, err error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t;", r) })
	if len(fields) == 1 {
		fields = append(fields, "1") // a plain list of observed lengths
	}
	if len(fields) != 2 {
		return b, 0, fmt.Errorf("%q: write LENGTH,WEIGHT or LOW-HIGH,WEIGHT", text)
	}
	low, high, isRange := strings.Cut(fields[0], "-")
	if !isRange {
		high = low
	}
	var errs [3]error
	b.low, errs[0] = strconv.Atoi(low)
	b.high, errs[1] = strconv.Atoi(high)
	weight, errs[2] = strconv.ParseFloat(fields[1], 64)
	if firstError(errs[:]...) != nil || b.low < 0 || b.high < b.low || b.high > MaxTokens || !(weight >= 0) || math.IsInf(weight, 0) {
		return b, 0, fmt.Errorf("%q: write LENGTH,WEIGHT or LOW-HIGH,WEIGHT", text)
	}
	return b, weight, nil
}

// pick returns a random index with the probabilities given by cumulative sums.
func pick(sums []float64, r *rand.Rand) int {
	at := r.Float64() * sums[len(sums)-1]
	i, found := slices.BinarySearch(sums, at)
	if found {
		i++ // at == sums[i] belongs to the next index
	}
	return min(i, len(sums)-1)
}

// zipfSums returns the cumulative sums of 1/k^s for k = 1..n.
func zipfSums(s float64, n int) []float64 {
	sums, sum := make([]float64, n), 0.0
	for k := range sums {
		sum += math.Pow(float64(k+1), -s)
		sums[k] = sum
	}
	return sums
}
