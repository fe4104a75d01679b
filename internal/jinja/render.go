package jinja

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

func (n *textNode) render(s *state) error {
	s.write(n.text)
	return nil
}

func (n *printNode) render(s *state) error {
	v, err := n.value.eval(s)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.line, err)
	}
	s.write(s.text(v))
	return nil
}

func (n *ifNode) render(s *state) error {
	for i, body := range n.bodies {
		s.spend(evalCost)
		if i < len(n.tests) {
			v, err := n.tests[i].eval(s)
			if err != nil {
				return err
			}
			if !truthy(v) {
				continue
			}
		}
		return s.render(body)
	}
	return nil
}

func (n *forNode) render(s *state) error {
	over, err := n.over.eval(s)
	if err != nil {
		return err
	}
	items, err := s.iterate(over)
	if err != nil {
		return err
	}
	if items, err = n.filtered(s, items); err != nil {
		return err
	}
	if len(items) == 0 {
		return s.render(n.orElse)
	}
	for i := range items {
		if err := s.step(); err != nil {
			return err
		}
		// Each iteration starts without the variables of the previous iteration.
		inner := s.inner()
		if err := inner.assign(n.targets, items[i]); err != nil {
			return err
		}
		inner.scope.values["loop"] = &loop{items, i}
		err := inner.render(n.body)
		if errors.Is(err, errBreak) {
			break
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// filtered returns the items that pass the loop's "if".
func (n *forNode) filtered(s *state, items []any) ([]any, error) {
	if n.filter == nil {
		return items, nil
	}
	var kept []any
	for _, v := range items {
		if err := s.step(); err != nil {
			return nil, err
		}
		inner := s.inner()
		if err := inner.assign(n.targets, v); err != nil {
			return nil, err
		}
		ok, err := n.filter.eval(inner)
		if err != nil {
			return nil, err
		}
		if truthy(ok) {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// assign sets one target to the value, or several targets to the items of the value.
func (s *state) assign(targets []target, value any) error {
	if len(targets) == 1 {
		return s.set(targets[0], value)
	}
	items, err := s.iterate(value)
	if err != nil {
		return err
	}
	if len(items) != len(targets) {
		return fmt.Errorf("%d values for %d names", len(items), len(targets))
	}
	for i, to := range targets {
		if err := s.set(to, items[i]); err != nil {
			return err
		}
	}
	return nil
}

// loop is the "loop" variable inside a for block.
type loop struct {
	items []any
	i     int
}

// get returns an attribute of the loop.
func (l *loop) get(name string) any {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1)
	case "index0":
		return int64(l.i)
	case "revindex":
		return int64(n - l.i)
	case "revindex0":
		return int64(n - l.i - 1)
	case "first":
		return l.i == 0
	case "last":
		return l.i == n-1
	case "length":
		return int64(n)
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1]
		}
	case "nextitem":
		if l.i+1 < n {
			return l.items[l.i+1]
		}
	case "cycle":
		return &callable{name, l.cycle}
	}
	return undefined{"loop." + name}
}

func (l *loop) cycle(_ *state, args []any, _ map[string]any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("cycle needs values")
	}
	return args[l.i%len(args)], nil
}

func (n *setNode) render(s *state) error {
	if n.value == nil {
		return n.renderBlock(s)
	}
	v, err := n.value.eval(s)
	if err != nil {
		return err
	}
	return s.assign(n.targets, v)
}

func (n *setNode) renderBlock(s *state) error {
	inner := s.inner()
	body, err := inner.capture(n.body)
	if err != nil {
		return err
	}
	v, err := applyFilters(s, n.filters, body)
	if err != nil {
		return err
	}
	return s.set(n.targets[0], v)
}

func applyFilters(s *state, calls []filterCall, v any) (any, error) {
	for i := range calls {
		var err error
		if v, err = calls[i].apply(s, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (s *state) set(to target, v any) error {
	if to.attribute == "" {
		s.scope.values[to.name] = v
		return nil
	}
	of, _ := s.scope.get(to.name, s.budget)
	ns, ok := of.(*namespace)
	if !ok {
		return fmt.Errorf("%s is not a namespace, so %s.%s cannot be set", to.name, to.name, to.attribute)
	}
	ns.values[to.attribute] = v
	return nil
}

func (n *macroNode) render(s *state) error {
	s.scope.values[n.name] = n.callable(s)
	return nil
}

// callable returns the macro as a function that sees the variables of its definition.
func (n *macroNode) callable(defined *state) *callable {
	enclosing := defined.scope
	return &callable{n.name, func(s *state, args []any, kwargs map[string]any) (any, error) {
		inner := *s
		inner.scope = s.newScope(enclosing)
		if len(args) > len(n.params) {
			return nil, fmt.Errorf("%s takes %d arguments, not %d", n.name, len(n.params), len(args))
		}
		for i, name := range n.params {
			v, given := kwargs[name]
			var err error
			switch {
			case i < len(args):
				v = args[i]
			case given:
			case n.defaults[i] != nil:
				v, err = n.defaults[i].eval(&inner)
			default:
				v = undefined{name}
			}
			if err != nil {
				return nil, err
			}
			inner.scope.values[name] = v
		}
		if caller, ok := kwargs["caller"]; ok {
			inner.scope.values["caller"] = caller
		}
		return inner.capture(n.body)
	}}
}

func (n *callNode) render(s *state) error {
	fn, args, kwargs, err := n.call.parts(s)
	if err != nil {
		return err
	}
	kwargs["caller"] = n.macro.callable(s)
	v, err := s.call(fn, args, kwargs)
	if err != nil {
		return err
	}
	s.write(s.text(v))
	return nil
}

func (n *filterNode) render(s *state) error {
	body, err := s.inner().capture(n.body)
	if err != nil {
		return err
	}
	v, err := applyFilters(s, n.filters, body)
	if err != nil {
		return err
	}
	s.write(s.text(v))
	return nil
}

func (n *groupNode) render(s *state) error { return s.inner().render(n.body) }

func (n *loopNode) render(*state) error { return n.exit }

// maxRange limits range(), as Python's sandbox does.
const maxRange = 100_000

// globals are the functions available to every template.
var globals = map[string]*callable{
	"range":           {"range", callRange},
	"namespace":       {"namespace", callNamespace},
	"dict":            {"dict", callDict},
	"raise_exception": {"raise_exception", callRaise},
	"strftime_now":    {"strftime_now", callStrftime},
}

func callRange(s *state, args []any, _ map[string]any) (any, error) {
	bounds := []int64{0, 0, 1}
	for i, a := range args {
		n, ok := integer(a)
		if !ok || i > 2 {
			return nil, errors.New("range takes one to three integers")
		}
		if len(args) == 1 {
			i = 1
		}
		bounds[i] = n
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 || len(args) == 0 {
		return nil, errors.New("range needs an end and a nonzero step")
	}
	n := math.Ceil((float64(stop) - float64(start)) / float64(step))
	if n > maxRange {
		return nil, fmt.Errorf("range is longer than %d", maxRange)
	}
	s.spend(itemCost * int(max(n, 0)))
	l := &list{items: []any{}}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		l.items = append(l.items, i)
		if step > 0 && i > math.MaxInt64-step || step < 0 && i < math.MinInt64-step {
			break
		}
	}
	return l, nil
}

func callNamespace(s *state, args []any, kwargs map[string]any) (any, error) {
	s.spend(entryCost * len(kwargs))
	ns := &namespace{map[string]any{}}
	for _, a := range args {
		if d, ok := a.(*Dict); ok {
			for _, k := range d.keys {
				ns.values[s.text(k)] = d.values[k]
			}
		}
	}
	maps.Copy(ns.values, kwargs)
	return ns, nil
}

func callDict(s *state, args []any, kwargs map[string]any) (any, error) {
	s.spend(entryCost * len(kwargs))
	d := NewDict()
	for _, a := range args {
		other, ok := a.(*Dict)
		if !ok {
			return nil, errors.New("dict takes a mapping and named values")
		}
		for _, k := range other.keys {
			d.set(k, other.values[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(kwargs)) {
		d.set(k, kwargs[k])
	}
	return d, nil
}

// callRaise implements raise_exception, with which a template rejects a conversation.
func callRaise(s *state, args []any, _ map[string]any) (any, error) {
	var parts []string
	for _, a := range args {
		parts = append(parts, s.text(a))
	}
	return nil, errors.New("the template rejects the conversation: " + strings.Join(parts, " "))
}

func callStrftime(s *state, args []any, _ map[string]any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("strftime_now takes one format")
	}
	return strftime(s.now, s.text(args[0]))
}
