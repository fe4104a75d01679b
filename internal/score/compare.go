package score

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// Error rates of the tests of a run, 5 % together. Every rate is divided by the number of levels.
const (
	scoreAlpha  = 0.03 // of the loss of score
	mixedAlpha  = 0.01 // of differences at the start
	brokenAlpha = 0.01 // of findings of the checks
)

// margin is the loss that does not matter: answers are as unloaded if the interval of the loss ends below.
const margin = 0.02

// A difference is early if it is in the first earlyWords words of an answer with at least longWords. earlyFactor allows
// for models that are less certain at the start.
const (
	earlyWords  = 3
	longWords   = 16
	earlyFactor = 2
)

// firstEdges are the lower ends of the histogram of first differences, in words.
var firstEdges = []int{0, 1, 3, 8, 16, 32, 64, 128}

// Bounds of the examples of a level.
const (
	mostExamples = 5
	exampleBytes = 160
)

// A Baseline holds the answers to prompts that were sent alone, twice.
type Baseline struct {
	First, Second *Book
	byKey         [2]map[key]*kept
}

// Has reports whether a session was sent alone.
func (b *Baseline) Has(session uint64) bool {
	b.index()
	_, has := b.byKey[0][key{session, 0}]
	return has
}

func (b *Baseline) index() {
	for i, book := range []*Book{b.First, b.Second} {
		if len(b.byKey[i]) == len(book.kept) {
			continue
		}
		b.byKey[i] = map[key]*kept{}
		for k := range book.kept {
			b.byKey[i][book.kept[k].key] = &book.kept[k]
		}
	}
}

// Compare compares judged answers under load with the same prompts alone. levels is the number of levels of the run.
func (b *Baseline) Compare(load *Book, levels int) *metric.PairedAnswers {
	b.index()
	out := &metric.PairedAnswers{Levels: max(levels, 1), First: make([]int, len(firstEdges)), FirstEdges: firstEdges}
	var scores, alone, changed, broken stat.Paired
	var expected float64
	counted, sessions, parted := map[[sha256.Size]byte]bool{}, map[uint64]*tacho.Session{}, map[uint64]bool{}
	for i := range load.kept {
		under := &load.kept[i]
		first, second := b.byKey[0][under.key], b.byKey[1][under.key]
		if first == nil || second == nil || !first.text || !second.text || !under.text || parted[under.session] {
			continue
		}
		// Later prompts of a conversation contain this answer.
		parted[under.session] = !same(first, under) || !same(first, second)
		if prompt, known := load.prompt(under.key, sessions); known {
			if counted[prompt] {
				continue // the same prompt again tells nothing new
			}
			counted[prompt] = true
		}
		out.Prompts++
		if under.scored && first.scored && second.scored && under.result.Mark != LeftOut {
			pair(&scores, first.result.Mark == Right, under.result.Mark == Right)
			pair(&alone, first.result.Mark == Right, second.result.Mark == Right)
		}
		pair(&broken, !first.broken, !under.broken)
		differs, differed := !same(first, under), !same(first, second)
		pair(&changed, !differs, !differed) // "lost" has changed alone only
		if differed {
			out.Floor++
		}
		if differs {
			expected += difference(out, first, under, !differed)
		}
	}
	out.OnlyLoad, out.OnlyAlone = changed.Gained, changed.Lost
	more := stat.Paired{Both: changed.Neither, Lost: changed.Gained, Gained: changed.Lost, Neither: changed.Both}
	out.ChangedP, out.Broken, out.EarlyP = more.LossP(), broken.Lost, 1
	if out.Long > 0 {
		out.EarlyP = stat.BinomialTail(out.Early, out.Long, expected/float64(out.Long))
	}
	out.Detectable = min(stat.DetectableLoss(out.Prompts, 0), 1)
	if scores.N() > 0 {
		out.Detectable = min(stat.DetectableLoss(scores.N(), float64(alone.Lost+alone.Gained)/float64(alone.N())), 1)
		out.Score = pairedScore(scores, alone)
	}
	out.Verdict = verdict(out, &more, &broken)
	return out
}

// difference counts an answer that differs under load. onlyLoad reports whether the answers alone are equal. It returns the
// probability of an early difference if differences are spread over the answer.
func difference(out *metric.PairedAnswers, first, under *kept, onlyLoad bool) (early float64) {
	out.Changed++
	at, words := firstDifference(first.Text, under.Text)
	out.First[lastEdge(at)]++
	if !onlyLoad {
		return 0
	}
	if len(out.Examples) < mostExamples {
		out.Examples = append(out.Examples, example(first, under, at))
	}
	if words < longWords {
		return 0
	}
	out.Long++
	if at < earlyWords {
		out.Early++
	}
	return min(1, earlyFactor*float64(earlyWords)/float64(words))
}

func pair(t *stat.Paired, before, after bool) {
	switch {
	case before && after:
		t.Both++
	case before:
		t.Lost++
	case after:
		t.Gained++
	default:
		t.Neither++
	}
}

func pairedScore(t, alone stat.Paired) *metric.PairedScore {
	low, high := t.LossInterval(z95)
	return &metric.PairedScore{
		Both: t.Both, Lost: t.Lost, Gained: t.Gained, Neither: t.Neither,
		Loss: t.Loss(), Range: metric.Limits{Low: low, High: high}, P: t.LossP(), AloneP: alone.McNemarP(),
	}
}

// verdict judges a level.
func verdict(p *metric.PairedAnswers, changed, broken *stat.Paired) metric.Answer {
	levels := float64(p.Levels)
	_, most := changed.LossInterval(z95)
	more := p.ChangedP*levels < scoreAlpha
	switch {
	case p.Prompts == 0:
		return metric.CannotTell
	case p.Score != nil && p.Score.P*levels < scoreAlpha:
		return metric.WorseAnswer
	case broken.LossP()*levels < brokenAlpha:
		return metric.BrokenAnswer
	case more && p.EarlyP*levels < mixedAlpha:
		return metric.MixedAnswer
	case p.Score != nil && p.Score.Range.High < margin && p.Score.RightAlone() > 0:
		return metric.AsUnloaded
	case p.Score != nil:
		return metric.CannotTell
	case more:
		return metric.MoreChanged
	case most < margin:
		return metric.AsUnloaded
	}
	return metric.CannotTell
}

func same(a, b *kept) bool { return a.Text == b.Text && slices.Equal(a.Calls, b.Calls) }

// firstDifference returns the number of equal words at the start of two texts, and the number of words of the longer
// text.
func firstDifference(a, b string) (at, words int) {
	x, y := strings.Fields(a), strings.Fields(b)
	for at < len(x) && at < len(y) && x[at] == y[at] {
		at++
	}
	return at, max(len(x), len(y))
}

func lastEdge(at int) int {
	i := len(firstEdges) - 1
	for firstEdges[i] > at {
		i--
	}
	return i
}

// example quotes two answers from shortly before their first difference.
func example(a, b *kept, at int) metric.Pair {
	from := 0
	for from < len(a.Text) && from < len(b.Text) && a.Text[from] == b.Text[from] {
		from++
	}
	from = max(from-exampleBytes/4, 0)
	clip := func(text string) string {
		text = text[min(from, len(text)):]
		return strings.ToValidUTF8(text[:min(len(text), exampleBytes)], "")
	}
	return metric.Pair{Session: a.session, Alone: clip(a.Text), Load: clip(b.Text), At: at}
}
