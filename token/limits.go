package token

import (
	"fmt"
	"time"
)

// Tokenizers come from model hubs, so loading and encoding are bounded in time and memory. The bounds are far above
// the tokenizers of all published models.
const (
	maxTokens     = 1 << 22  // tokens of a vocabulary, and merges
	maxTokenBytes = 4 << 10  // bytes of one token
	maxSquares    = 1 << 32  // sum of the squared lengths of all tokens: finding their merges takes that many steps
	maxProbes     = 1 << 12  // steps to insert into a hash table
	maxRun        = 1 << 14  // adjacent used slots of a hash table, which a lookup may have to pass
	maxAdded      = 8 << 20  // bytes of the list of added tokens in the file, and of their normalized texts
	maxComponent  = 4 << 20  // bytes of a normalizer, pre-tokenizer, post-processor or decoder
	maxSteps      = 32       // normalizers, or pre-tokenizers
	maxNesting    = 16       // sequences of these in one another
	maxFields     = 64       // fields of an object of the file
	maxExpression = 16 << 10 // bytes of a regular expression
	maxContent    = 256      // bytes that replace a match, or that are prepended
	maxSurround   = 1 << 10  // special tokens around a text
	maxGrowth     = 16       // times that normalizers, pre-tokenizers and decoders may lengthen a text
	growthFree    = 64 << 10 // bytes of a text below which it may grow more
	maxStack      = 4 << 20  // integers on the stack of the general engine for regular expressions
)

// The work on one text: all normalizers and pre-tokenizers share it.
const (
	// steps of the matcher of simple expressions per byte of the text. Expressions of published models take 12 at most
	// (a text of digits), and a step takes 15 ns: 1 s for 1 MB.
	stepsPerByte = 64
	stepsFree    = 1 << 24 // steps of any text: 0.25 s
	// The general engine, for expressions that the matcher does not support, cannot count steps, so its limits are times.
	// It takes 0.2 µs per byte with expressions of published models; a busy machine may take 20 times as long.
	searchFree    = 2 * time.Second      // of any text
	searchPerByte = 4 * time.Microsecond // of each byte
)

// maxMatch is the time to find one match with the general engine, which checks it during a match. It is a variable for
// tests.
var maxMatch = 2 * time.Second

// work is the work left to one text.
type work struct {
	steps  int
	search time.Duration
}

func newWork(bytes int) work {
	return work{stepsFree + stepsPerByte*bytes, searchFree + searchPerByte*time.Duration(bytes)}
}

// spend takes n steps.
func (w *work) spend(n int) {
	if w.steps -= n; w.steps < 0 {
		beyond("the regular expressions take more than %d steps for each byte of a text", stepsPerByte)
	}
}

// LimitError reports that a tokenizer needs more time or memory than it may use.
type LimitError struct {
	what string
	path string // of the file, if known
}

func (e *LimitError) Error() string {
	if e.path == "" {
		return e.what
	}
	return e.path + ": " + e.what + ": use the tokenizer of another revision of the model, or leave out --tokenizer: then the server counts"
}

// beyond stops the work on a tokenizer or a text. bounded turns it into an error.
func beyond(format string, args ...any) { panic(&LimitError{what: fmt.Sprintf(format, args...)}) }

// bounded runs work and returns the LimitError that stopped it.
func bounded(path string, work func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *LimitError:
			err = &LimitError{p.what, path}
		default:
			panic(p)
		}
	}()
	return work()
}

// checkLength limits a setting or a list of the file.
func checkLength(field string, bytes, most int) error {
	if bytes > most {
		return fmt.Errorf("%s: %d bytes, more than %d", field, bytes, most)
	}
	return nil
}

// checkEntries limits a vocabulary.
func checkEntries(entries []vocabEntry) error {
	squares := 0
	for _, e := range entries {
		if len(e.text) > maxTokenBytes {
			return fmt.Errorf("a token of %d bytes, more than %d", len(e.text), maxTokenBytes)
		}
		squares += len(e.text) * len(e.text)
	}
	switch {
	case len(entries) > maxTokens:
		return fmt.Errorf("%d tokens, more than %d", len(entries), maxTokens)
	case squares > maxSquares:
		return fmt.Errorf("the tokens are too long: the sum of their squared lengths is more than %d", maxSquares)
	}
	return nil
}

// longestRun returns the longest run of used slots of a hash table.
func longestRun(slots int, used func(i int) bool) int {
	longest, run := 0, 0
	for i := range 2 * slots { // twice, because a run may cross the end
		if run++; !used(i % slots) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// checkTable limits the time of a lookup. The hash function is known, so a file can contain tokens
// that fill one part of the table.
func checkTable(what string, slots int, used func(i int) bool) {
	if n := longestRun(slots, used); n > maxRun {
		beyond("%s: %d entries with neighbouring hashes, more than %d", what, n, maxRun)
	}
}

func totalLength(texts []string) (bytes int) {
	for _, s := range texts {
		bytes += len(s)
	}
	return bytes
}

// checkGrowth limits the text that normalizers, pre-tokenizers or decoders made of a text.
func checkGrowth(before, after int) {
	if after > growthFree && after > maxGrowth*before+growthFree {
		beyond("a normalizer, pre-tokenizer or decoder makes a text of %d bytes more than %d times longer", before, maxGrowth)
	}
}
