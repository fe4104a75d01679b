// Package jinja renders the Jinja templates that chat models are published
// with. It knows the part of the language they use, gives the same text as
// Python's implementation, and an error for everything else: a template that
// reads no files, runs no code and always ends.
package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []node }

// Parse reads a template.
func Parse(src string) (*Template, error) {
	// A single newline at the end of a template is not part of it.
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	src = strings.TrimSuffix(src, "\n")
	tokens, err := lex(src)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	body, err := parse(src, tokens)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	return &Template{body}, nil
}

// Render renders the template with variables: nil, bool, int, float64, string,
// []any and *Dict values. strftime_now tells the time now.
func (t *Template) Render(variables map[string]any, now time.Time) (string, error) {
	s := &state{
		scope: &scope{values: map[string]any{}},
		out:   &strings.Builder{},
		steps: new(int),
		now:   now,
	}
	for name, v := range variables {
		s.scope.values[name] = fromGo(v)
	}
	if err := s.render(t.body); err != nil {
		return "", fmt.Errorf("render template: %w", err)
	}
	return s.out.String(), nil
}

const (
	// maxSteps bounds the work of one rendering. A long conversation takes
	// some hundred steps a message.
	maxSteps = 5_000_000
	// maxOutput bounds what one rendering makes, in bytes.
	maxOutput = 1 << 26
)

var (
	errTooLong  = errors.New("the template runs too long")
	errTooLarge = errors.New("the template writes too much")
)

// A scope is the variables of a block. What it does not have it looks up
// outside.
type scope struct {
	values map[string]any
	outer  *scope
}

func (s *scope) get(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.values[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// state is a rendering under way.
type state struct {
	scope *scope
	out   *strings.Builder
	steps *int
	depth int
	now   time.Time
}

// inner is the state of a block with variables of its own.
func (s *state) inner() *state {
	inner := *s
	inner.scope = &scope{values: map[string]any{}, outer: s.scope}
	return &inner
}

// step counts work, so that every rendering ends.
func (s *state) step() error {
	if *s.steps++; *s.steps > maxSteps {
		return errTooLong
	}
	if s.out.Len() > maxOutput {
		return errTooLarge
	}
	return nil
}

func (s *state) render(nodes []node) error {
	for _, n := range nodes {
		if err := s.step(); err != nil {
			return err
		}
		if err := n.render(s); err != nil {
			return err
		}
	}
	return nil
}

// capture renders nodes into a string.
func (s *state) capture(nodes []node) (string, error) {
	inner := *s
	inner.out = &strings.Builder{}
	err := inner.render(nodes)
	return inner.out.String(), err
}
