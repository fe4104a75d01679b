// Package jinja renders the Jinja templates of chat models. It supports the part of the
// language those templates use and produces the same text as Python's implementation.
// Anything else is an error. Templates cannot read files or run code, and rendering
// always terminates with a bounded amount of memory.
package jinja

import (
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []node }

// maxSource limits the size of a template in bytes. Templates of models have less than 50 KB.
const maxSource = 1 << 20

// Parse parses a template.
func Parse(src string) (*Template, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("parse template: larger than %d MiB", maxSource>>20)
	}
	// Jinja ignores a single newline at the end of a template.
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

// Render renders the template with variables: nil, bool, int, float64, string, []any and
// *Dict values. now is the result of strftime_now.
func (t *Template) Render(variables map[string]any, now time.Time) (string, error) {
	s := &state{
		budget: newBudget(variables),
		out:    &strings.Builder{},
		steps:  new(int),
		now:    now,
	}
	s.scope = s.newScope(nil)
	for name, v := range variables {
		s.scope.values[name] = fromGo(v)
	}
	if err := s.run(t.body); err != nil {
		return "", fmt.Errorf("render template: %w", err)
	}
	return s.out.String(), nil
}

func (s *state) run(body []node) (err error) {
	defer recovered(&err)
	return s.render(body)
}

// maxSteps limits the work of one rendering. A long conversation takes a few hundred
// steps per message.
const maxSteps = 2_000_000

// scope holds the variables of a block. A name not found here is looked up in outer.
type scope struct {
	values map[string]any
	outer  *scope
}

func (s *scope) get(name string, b *budget) (any, bool) {
	for ; s != nil; s = s.outer {
		b.spend(1)
		if v, ok := s.values[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// state is the state of one rendering.
type state struct {
	*budget
	scope *scope
	out   *strings.Builder
	steps *int
	depth int
	now   time.Time
}

// inner returns the state of a nested block with its own variables.
func (s *state) inner() *state {
	inner := *s
	inner.scope = s.newScope(s.scope)
	return &inner
}

// step counts statements, calls and iterations, so that every rendering terminates.
func (s *state) step() error {
	if *s.steps++; *s.steps > maxSteps {
		return errTooLong
	}
	return nil
}

// write appends to the output.
func (s *state) write(text string) {
	s.spend(len(text))
	s.out.WriteString(text)
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
