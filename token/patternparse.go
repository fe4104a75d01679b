package token

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errBeyondPattern means that an expression needs a general regular expression engine.
var errBeyondPattern = errors.New("beyond simple patterns")

// parsePattern parses a regular expression. It returns errBeyondPattern if the expression
// uses syntax that pattern does not support.
func parsePattern(expr string) (*pattern, error) {
	if len(expr) > maxExpression {
		return nil, fmt.Errorf("pattern of %d bytes, more than %d", len(expr), maxExpression)
	}
	p := patternParser{rest: expr}
	alternatives, err := p.alternatives(false)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, err)
	}
	if p.rest != "" {
		return nil, fmt.Errorf("pattern %q: %w: %q", expr, errBeyondPattern, p.rest)
	}
	return &pattern{alternatives}, nil
}

type patternParser struct {
	rest string
	fold bool // inside (?i:...)
}

// take consumes prefix and reports whether the rest started with prefix.
func (p *patternParser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

// alternatives parses until the end of the expression, or until the closing parenthesis
// of a group.
func (p *patternParser) alternatives(inGroup bool) ([]sequence, error) {
	var all []sequence
	for {
		var q sequence
		for p.rest != "" && p.rest[0] != '|' && (p.rest[0] != ')' || !inGroup) {
			a, err := p.atom()
			if err != nil {
				return nil, err
			}
			q = append(q, a)
		}
		all = append(all, q)
		if !p.take("|") {
			return all, nil
		}
	}
}

func (p *patternParser) atom() (atom, error) {
	switch {
	case p.take("(?!"):
		set, err := p.set()
		if err != nil {
			return atom{}, err
		}
		return atom{kind: atomNotAhead, set: set}, p.close()
	case p.take("(?i:"):
		return p.group(true)
	case p.take("(?:"):
		return p.group(p.fold)
	case p.take("$"):
		return atom{kind: atomEnd}, nil
	}
	set, err := p.set()
	if err != nil {
		return atom{}, err
	}
	a := atom{kind: atomSet, set: set, min: 1, max: 1}
	err = p.quantifier(&a)
	return a, err
}

func (p *patternParser) close() error {
	if !p.take(")") {
		return fmt.Errorf("%w: no closing parenthesis at %q", errBeyondPattern, p.rest)
	}
	return nil
}

// group parses the alternatives of a group. Alternatives of variable length are rejected
// because they would need backtracking into the group.
func (p *patternParser) group(fold bool) (atom, error) {
	outer := p.fold
	p.fold = fold
	group, err := p.alternatives(true)
	p.fold = outer
	if err != nil {
		return atom{}, err
	}
	for _, q := range group {
		for _, a := range q {
			if a.kind != atomSet || a.min != a.max {
				return atom{}, fmt.Errorf("%w: a group of varying length", errBeyondPattern)
			}
		}
	}
	if err := p.close(); err != nil {
		return atom{}, err
	}
	a := atom{kind: atomGroup, group: group, min: 1, max: 1}
	if err := p.quantifier(&a); err != nil {
		return atom{}, err
	}
	if a.max != 1 || a.possessive {
		return atom{}, fmt.Errorf("%w: a repeated group", errBeyondPattern)
	}
	return a, nil
}

func (p *patternParser) quantifier(a *atom) error {
	possible := true
	switch {
	case p.take("?"):
		a.min, a.max = 0, 1
	case p.take("*"):
		a.min, a.max = 0, -1
	case p.take("+"):
		a.min, a.max = 1, -1
	case p.take("{"):
		possible = false // engines disagree about {m,n}+
		if err := p.bounds(a); err != nil {
			return err
		}
	default:
		return nil
	}
	if possible && p.take("+") {
		a.possessive = true
	}
	if p.rest != "" && strings.IndexByte("?*+{", p.rest[0]) >= 0 {
		return fmt.Errorf("%w: quantifier at %q", errBeyondPattern, p.rest)
	}
	return nil
}

func (p *patternParser) bounds(a *atom) error {
	body, rest, ok := strings.Cut(p.rest, "}")
	if !ok {
		return fmt.Errorf("%w: unclosed %q", errBeyondPattern, p.rest)
	}
	lo, hi, isRange := strings.Cut(body, ",")
	var err error
	if a.min, err = strconv.Atoi(lo); err != nil {
		return fmt.Errorf("%w: repetition {%s}", errBeyondPattern, body)
	}
	switch {
	case !isRange:
		a.max = a.min
	case hi == "":
		a.max = -1
	default:
		if a.max, err = strconv.Atoi(hi); err != nil || a.max < a.min {
			return fmt.Errorf("%w: repetition {%s}", errBeyondPattern, body)
		}
	}
	p.rest = rest
	return nil
}

// set parses one character, escape or bracketed class.
func (p *patternParser) set() (*runeSet, error) {
	set := &runeSet{}
	switch {
	case p.rest == "":
		return nil, fmt.Errorf("%w: expression ends too early", errBeyondPattern)
	case p.take("["):
		return p.class()
	case p.rest[0] == '\\':
		if _, err := p.escape(set); err != nil {
			return nil, err
		}
	case strings.IndexByte("().*+?^{}|$", p.rest[0]) >= 0:
		return nil, fmt.Errorf("%w: %q", errBeyondPattern, p.rest)
	default:
		r, size := utf8.DecodeRuneInString(p.rest)
		set.add(r, r, 1)
		p.rest = p.rest[size:]
	}
	if p.fold {
		set.addFold()
	}
	return set, nil
}

// class parses the inside of [...], including nested classes and intersections.
func (p *patternParser) class() (*runeSet, error) {
	negated := p.take("^")
	set := &runeSet{}
	var other *runeSet // left operand of the last &&
	for first := true; !p.take("]"); first = false {
		if p.take("&&") {
			if other != nil {
				set.intersect(other)
			}
			other, set = set, &runeSet{}
			continue
		}
		if err := p.classItem(set, first); err != nil {
			return nil, err
		}
	}
	if other != nil {
		set.intersect(other)
	}
	if p.fold {
		set.addFold()
	}
	if negated {
		set.invert()
	}
	return set, nil
}

// classItem adds one character, range, escape or nested class to set.
func (p *patternParser) classItem(set *runeSet, first bool) error {
	switch {
	case p.rest == "" || first && p.rest[0] == ']' || strings.HasPrefix(p.rest, "[:"):
		return fmt.Errorf("%w: class at %q", errBeyondPattern, p.rest)
	case p.take("["):
		inner, err := p.class()
		if err == nil {
			set.union(inner)
		}
		return err
	}
	lo, err := p.classRune(set)
	if err != nil || lo < 0 {
		return err
	}
	hi := lo
	if len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' {
		p.rest = p.rest[1:]
		if hi, err = p.classRune(&runeSet{}); err != nil {
			return err
		}
		if hi < lo {
			return fmt.Errorf("%w: range at %q", errBeyondPattern, p.rest)
		}
	}
	set.add(lo, hi, 1)
	return nil
}

// classRune parses one character. For an escape that stands for several characters, it
// adds them to set and returns -1.
func (p *patternParser) classRune(set *runeSet) (rune, error) {
	if p.rest[0] == '\\' {
		return p.escape(set)
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r, nil
}

// escape parses an escape sequence and adds its characters to set. It returns the
// character, or -1 if the escape stands for several characters.
func (p *patternParser) escape(set *runeSet) (rune, error) {
	if len(p.rest) < 2 {
		return 0, fmt.Errorf("%w: expression ends in a backslash", errBeyondPattern)
	}
	c := p.rest[1]
	p.rest = p.rest[2:]
	if i := strings.IndexByte("rntfv", c); i >= 0 {
		r := rune("\r\n\t\f\v"[i])
		set.add(r, r, 1)
		return r, nil
	}
	named := &runeSet{}
	switch c {
	case 's', 'S':
		named.addTable(unicode.White_Space)
	case 'd', 'D':
		if err := named.addProperty("Nd"); err != nil {
			return 0, err
		}
	case 'w', 'W':
		named.addWord()
	case 'p', 'P':
		if err := p.property(named); err != nil {
			return 0, err
		}
	default:
		if c >= utf8.RuneSelf || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return 0, fmt.Errorf("%w: escape \\%c", errBeyondPattern, c)
		}
		set.add(rune(c), rune(c), 1)
		return rune(c), nil
	}
	if c >= 'A' && c <= 'Z' {
		named.invert()
	}
	set.union(named)
	return -1, nil
}

// property parses {Name} or {^Name}.
func (p *patternParser) property(set *runeSet) error {
	name, rest, ok := strings.Cut(p.rest, "}")
	if !ok || !strings.HasPrefix(name, "{") {
		return fmt.Errorf("%w: property at %q", errBeyondPattern, p.rest)
	}
	p.rest = rest
	name, negated := strings.CutPrefix(name[1:], "^")
	if err := set.addProperty(name); err != nil {
		return fmt.Errorf("%w: %w", errBeyondPattern, err)
	}
	if negated {
		set.invert()
	}
	return nil
}
