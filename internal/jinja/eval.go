package jinja

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

func (e *literal) eval(s *state) (any, error) {
	s.spend(evalCost)
	return e.value, nil
}

func (e *nameExpr) eval(s *state) (any, error) {
	if v, ok := s.scope.get(e.name, s.budget); ok {
		return v, nil
	}
	if f, ok := globals[e.name]; ok {
		return f, nil
	}
	return undefined{e.name}, nil
}

func (e *listExpr) eval(s *state) (any, error) {
	items, err := evalAll(s, e.items)
	return &list{items, e.tuple}, err
}

func evalAll(s *state, exprs []expr) ([]any, error) {
	s.spend(itemCost * len(exprs))
	values := make([]any, len(exprs))
	for i, e := range exprs {
		v, err := e.eval(s)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (e *dictExpr) eval(s *state) (any, error) {
	s.spend(entryCost * len(e.keys))
	d := NewDict()
	for i := range e.keys {
		k, err := e.keys[i].eval(s)
		if err != nil {
			return nil, err
		}
		if !hashable(k) {
			return nil, fmt.Errorf("%s cannot be a key", kindOf(k))
		}
		v, err := e.values[i].eval(s)
		if err != nil {
			return nil, err
		}
		d.set(k, v)
	}
	return d, nil
}

func (e *unary) eval(s *state) (any, error) {
	s.spend(evalCost)
	v, err := e.value.eval(s)
	if err != nil {
		return nil, err
	}
	if e.op == "not" {
		return !truthy(v), nil
	}
	sign := int64(1)
	if e.op == "-" {
		sign = -1
	}
	if n, ok := integer(v); ok {
		return sign * n, nil
	}
	if f, ok := v.(float64); ok {
		return float64(sign) * f, nil
	}
	return nil, fmt.Errorf("%s cannot be negated", kindOf(v))
}

func (e *binary) eval(s *state) (any, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	left, err := e.left.eval(s)
	if err != nil {
		return nil, err
	}
	if e.op == "and" && !truthy(left) || e.op == "or" && truthy(left) {
		return left, nil
	}
	right, err := e.right.eval(s)
	if err != nil {
		return nil, err
	}
	switch e.op {
	case "and", "or":
		return right, nil
	case "~":
		return s.concat(s.text(left), s.text(right)), nil
	case "+":
		return s.add(left, right)
	case "*":
		if v, ok := s.repeat(left, right); ok {
			return v, nil
		}
	case "%":
		if format, ok := left.(string); ok {
			return s.percent(format, right)
		}
	}
	return arithmetic(e.op, left, right)
}

func (b *budget) concat(x, y string) string {
	b.spend(len(x) + len(y))
	return x + y
}

func (b *budget) add(left, right any) (any, error) {
	if x, ok := left.(string); ok {
		if y, ok := right.(string); ok {
			return b.concat(x, y), nil
		}
	}
	if x, ok := left.(*list); ok {
		if y, ok := right.(*list); ok && x.tuple == y.tuple {
			b.spend(itemCost * (len(x.items) + len(y.items)))
			return &list{append(append([]any{}, x.items...), y.items...), x.tuple}, nil
		}
	}
	return arithmetic("+", left, right)
}

// repeat returns a string or list repeated n times. ok is false for other operands.
func (b *budget) repeat(left, right any) (v any, ok bool) {
	n, isInt := integer(right)
	if !isInt {
		left, right = right, left
		if n, isInt = integer(right); !isInt {
			return nil, false
		}
	}
	n = max(n, 0)
	switch left := left.(type) {
	case string:
		b.spendTimes(int(min(n, math.MaxInt32)), len(left))
		return strings.Repeat(left, int(n)), true
	case *list:
		b.spendTimes(int(min(n, math.MaxInt32)), itemCost*len(left.items))
		out := &list{tuple: left.tuple}
		for range n {
			if len(left.items) == 0 {
				break
			}
			out.items = append(out.items, left.items...)
		}
		return out, true
	}
	return nil, false
}

var errDivision = errors.New("division by zero")

func arithmetic(op string, left, right any) (any, error) {
	a, ok1 := integer(left)
	b, ok2 := integer(right)
	if ok1 && ok2 && op != "/" && (op != "**" || b >= 0) {
		return integerArithmetic(op, a, b)
	}
	x, ok1 := number(left)
	y, ok2 := number(right)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%s %s %s is not defined", kindOf(left), op, kindOf(right))
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "**":
		return math.Pow(x, y), nil
	}
	if y == 0 {
		return nil, errDivision
	}
	switch op {
	case "/":
		return x / y, nil
	case "//":
		return math.Floor(x / y), nil
	}
	return x - y*math.Floor(x/y), nil
}

// integerArithmetic rounds towards negative infinity, as Python does.
func integerArithmetic(op string, a, b int64) (any, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		return int64(math.Pow(float64(a), float64(b))), nil
	}
	if b == 0 {
		return nil, errDivision
	}
	quotient, rest := a/b, a%b
	if rest != 0 && (rest < 0) != (b < 0) {
		quotient--
		rest += b
	}
	if op == "//" {
		return quotient, nil
	}
	return rest, nil
}

func (e *compare) eval(s *state) (any, error) {
	left, err := e.first.eval(s)
	if err != nil {
		return nil, err
	}
	for i, op := range e.ops {
		s.spend(evalCost)
		right, err := e.rest[i].eval(s)
		if err != nil {
			return nil, err
		}
		ok, err := s.compareValues(op, left, right)
		if err != nil || !ok {
			return false, err
		}
		left = right
	}
	return true, nil
}

func (b *budget) compareValues(op string, left, right any) (bool, error) {
	switch op {
	case "==":
		return b.equal(left, right), nil
	case "!=":
		return !b.equal(left, right), nil
	case "in":
		return b.contains(right, left)
	case "not in":
		ok, err := b.contains(right, left)
		return !ok, err
	}
	c, err := b.order(left, right)
	if err != nil {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case ">":
		return c > 0, nil
	case "<=":
		return c <= 0, nil
	}
	return c >= 0, nil
}

func (e *condition) eval(s *state) (any, error) {
	s.spend(evalCost)
	test, err := e.test.eval(s)
	if err != nil {
		return nil, err
	}
	switch {
	case truthy(test):
		return e.then.eval(s)
	case e.otherwise == nil:
		return undefined{"the value of a condition without else"}, nil
	}
	return e.otherwise.eval(s)
}

func (e *attribute) eval(s *state) (any, error) {
	of, err := e.of.eval(s)
	if err != nil {
		return nil, err
	}
	switch of := of.(type) {
	case undefined:
		return nil, fmt.Errorf("%q is undefined and has no attribute %q", of.name, e.name)
	case *namespace:
		if v, ok := of.values[e.name]; ok {
			return v, nil
		}
		return undefined{e.name}, nil
	case *loop:
		return of.get(e.name), nil
	}
	// A method hides a key with the same name.
	if m := method(of, e.name); m != nil {
		return m, nil
	}
	if d, ok := of.(*Dict); ok {
		return s.item(d, e.name), nil
	}
	return undefined{e.name}, nil
}

func (e *subscript) eval(s *state) (any, error) {
	of, err := e.of.eval(s)
	if err != nil {
		return nil, err
	}
	index, err := e.index.eval(s)
	if err != nil {
		return nil, err
	}
	if u, ok := of.(undefined); ok {
		return nil, fmt.Errorf("%q is undefined and has no item %s", u.name, s.repr(index))
	}
	return s.item(of, index), nil
}

// item returns of[index], or undefined if there is no such item.
func (b *budget) item(of, index any) any {
	missing := undefined{b.text(index)}
	switch of := of.(type) {
	case *Dict:
		if !hashable(index) {
			return missing
		}
		if v, ok := of.values[index]; ok {
			return v
		}
	case *namespace:
		if v, ok := of.values[b.text(index)]; ok {
			return v
		}
	case *loop:
		return of.get(b.text(index))
	case string, *list:
		items, _ := b.iterate(of)
		n, ok := integer(index)
		if !ok {
			break
		}
		if n < 0 {
			n += int64(len(items))
		}
		if n >= 0 && n < int64(len(items)) {
			return items[n]
		}
	}
	if name, ok := index.(string); ok {
		if m := method(of, name); m != nil {
			return m
		}
	}
	return missing
}

func (e *slice) eval(s *state) (any, error) {
	of, err := e.of.eval(s)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, b := range []expr{e.start, e.stop, e.step} {
		if b == nil {
			continue
		}
		v, err := b.eval(s)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		n, ok := integer(v)
		if !ok {
			return nil, fmt.Errorf("%s is not a valid slice bound", kindOf(v))
		}
		bounds[i] = &n
	}
	s.value(of)
	switch of := of.(type) {
	case *list:
		items, err := sliceItems(of.items, bounds)
		return &list{items, of.tuple}, err
	case string:
		items, err := s.iterate(of)
		if err != nil {
			return nil, err
		}
		if items, err = sliceItems(items, bounds); err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, r := range items {
			b.WriteString(s.text(r))
		}
		return b.String(), nil
	}
	return nil, fmt.Errorf("%s cannot be sliced", kindOf(of))
}

// sliceItems returns items[start:stop:step].
func sliceItems(items []any, bounds [3]*int64) ([]any, error) {
	n := int64(len(items))
	step := int64(1)
	if bounds[2] != nil {
		step = *bounds[2]
	}
	if step == 0 {
		return nil, errors.New("the step of a slice is zero")
	}
	lowest, highest := int64(0), n
	start, stop := int64(0), n
	if step < 0 {
		lowest, highest = -1, n-1
		start, stop = n-1, -1
	}
	clamp := func(v int64) int64 {
		if v < 0 {
			v += n
		}
		return min(max(v, lowest), highest)
	}
	if bounds[0] != nil {
		start = clamp(*bounds[0])
	}
	if bounds[1] != nil {
		stop = clamp(*bounds[1])
	}
	out := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out = append(out, items[i])
		if step > n || step < -n {
			break
		}
	}
	return out, nil
}

func (e *call) eval(s *state) (any, error) {
	fn, args, kwargs, err := e.parts(s)
	if err != nil {
		return nil, err
	}
	return s.call(fn, args, kwargs)
}

// parts evaluates the function and its arguments.
func (e *call) parts(s *state) (fn any, args []any, kwargs map[string]any, err error) {
	if fn, err = e.fn.eval(s); err != nil {
		return nil, nil, nil, err
	}
	if args, err = evalAll(s, e.args); err != nil {
		return nil, nil, nil, err
	}
	kwargs, err = evalKwargs(s, e.kwargs)
	return fn, args, kwargs, err
}

func evalKwargs(s *state, kwargs []kwarg) (map[string]any, error) {
	values := make(map[string]any, len(kwargs))
	for _, k := range kwargs {
		v, err := k.value.eval(s)
		if err != nil {
			return nil, err
		}
		values[k.name] = v
	}
	return values, nil
}

func (s *state) call(fn any, args []any, kwargs map[string]any) (any, error) {
	c, ok := fn.(*callable)
	if !ok {
		return nil, fmt.Errorf("%s cannot be called", kindOf(fn))
	}
	if err := s.step(); err != nil {
		return nil, err
	}
	inner := *s
	if inner.depth++; inner.depth > maxDepth {
		return nil, fmt.Errorf("calls are nested deeper than %d", maxDepth)
	}
	s.arguments(args, kwargs)
	v, err := c.call(&inner, args, kwargs)
	return s.value(v), err
}

func (e *filterExpr) eval(s *state) (any, error) {
	v, err := e.value.eval(s)
	if err != nil {
		return nil, err
	}
	return e.apply(s, v)
}

// apply applies the filter to v.
func (f *filterCall) apply(s *state, v any) (any, error) {
	args, err := evalAll(s, f.args)
	if err != nil {
		return nil, err
	}
	kwargs, err := evalKwargs(s, f.kwargs)
	if err != nil {
		return nil, err
	}
	if err := s.step(); err != nil {
		return nil, err
	}
	filter := filterNamed(f.name)
	if filter == nil {
		return nil, fmt.Errorf("filter %q is not supported", f.name)
	}
	s.value(v)
	s.arguments(args, kwargs)
	out, err := filter(s, v, arguments{s.budget, args, kwargs})
	if err != nil {
		return nil, fmt.Errorf("filter %s: %w", f.name, err)
	}
	return s.value(out), nil
}

func (e *testExpr) eval(s *state) (any, error) {
	v, err := e.value.eval(s)
	if err != nil {
		return nil, err
	}
	args, err := evalAll(s, e.args)
	if err != nil {
		return nil, err
	}
	test := tests[e.name]
	if test == nil {
		return nil, fmt.Errorf("test %q is not supported", e.name)
	}
	s.value(v)
	s.arguments(args, nil)
	ok, err := test(s.budget, v, args)
	if err != nil {
		return nil, fmt.Errorf("test %s: %w", e.name, err)
	}
	return ok != e.negated, nil
}
