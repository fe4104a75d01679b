// Command generate writes the rank tables of package ranks from the Go sources of a
// module that contains them. Run it with make ranks.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tacho-bench/tacho/token/internal/ranks"
)

func main() {
	if len(os.Args) != 3 {
		fail(errors.New("usage: generate SOURCES OUT, where SOURCES is the directory with cl100k_base_vocab.go"))
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func generate(sources, out string) error {
	tables := map[string][][]byte{}
	for _, name := range []string{ranks.R50K, ranks.P50K, ranks.CL100K, ranks.O200K} {
		byRank, err := readSource(filepath.Join(sources, name+"_vocab.go"))
		if err != nil {
			return err
		}
		first := 0
		if name == ranks.P50K {
			first = ranks.FirstP50K
			if err := checkShared(tables[ranks.R50K], byRank); err != nil {
				return err
			}
		}
		for rank := first; byRank[rank] != nil; rank++ {
			tables[name] = append(tables[name], byRank[rank])
		}
		if first+len(tables[name]) != len(byRank)+min(first, 1) {
			return fmt.Errorf("%s: the ranks are not what was expected: %d in a row from %d, %d in all", name, len(tables[name]), first, len(byRank))
		}
		packed, err := ranks.Pack(mergedFrom(tables[name], byRank))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+ranks.Extension), packed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkShared checks that p50k_base starts with the ranks of r50k_base, because those
// ranks are not stored twice.
func checkShared(shared [][]byte, byRank map[int][]byte) error {
	for rank, text := range shared {
		if !bytes.Equal(byRank[rank], text) {
			return fmt.Errorf("%s and %s differ at rank %d", ranks.R50K, ranks.P50K, rank)
		}
	}
	return nil
}

// mergedFrom finds the two parts each token is merged from.
func mergedFrom(texts [][]byte, byRank map[int][]byte) []ranks.Token {
	rankOf := map[string]int{}
	for rank, text := range byRank {
		rankOf[string(text)] = rank
	}
	tokens := make([]ranks.Token, len(texts))
	for i, text := range texts {
		tokens[i] = ranks.Token{Text: text, Left: lastMerge(string(text), rankOf)}
	}
	return tokens
}

// lastMerge merges the bytes of a token, lowest rank first, until two parts are left, and
// returns the length of the first part. It returns 0 if the merges stop earlier.
func lastMerge(text string, rankOf map[string]int) int {
	ends := make([]int, len(text)+1) // ends of the parts; ends[0] is the start of the first part
	for i := range ends {
		ends[i] = i
	}
	for len(ends) > 3 {
		best, at := math.MaxInt, 0
		for i := range len(ends) - 2 {
			if rank, ok := rankOf[text[ends[i]:ends[i+2]]]; ok && rank < best {
				best, at = rank, i
			}
		}
		if best == math.MaxInt {
			return 0
		}
		ends = slices.Delete(ends, at+1, at+2)
	}
	if len(ends) < 3 {
		return 0
	}
	return ends[1]
}

// readSource returns the pairs of a string and a number in a Go file.
func readSource(path string) (map[int][]byte, error) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	byRank := map[int][]byte{}
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok || err != nil {
			return true
		}
		text, textErr := strconv.Unquote(literal(pair.Key))
		rank, rankErr := strconv.Atoi(literal(pair.Value))
		if err = errors.Join(textErr, rankErr); err == nil && byRank[rank] != nil {
			err = fmt.Errorf("rank %d appears twice", rank)
		}
		byRank[rank] = []byte(text)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return byRank, nil
}

func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok {
		return l.Value
	}
	return ""
}
