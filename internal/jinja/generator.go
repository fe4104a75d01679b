package jinja

import "errors"

var errNoLength = errors.New("a generator has no length and no last item; convert it with the list filter")

// generator is a lazy sequence that yields each item once. A generator is true even if it
// is empty.
type generator struct {
	depth int // generators that this one takes its items from
	next  func() (v any, ok bool, err error)
}

// rest returns all items not yet taken.
func (g *generator) rest() ([]any, error) {
	var items []any
	for {
		v, ok, err := g.next()
		if !ok || err != nil {
			return items, err
		}
		items = append(items, v)
	}
}

// lazily returns a generator that computes all items at the first call of next.
func lazily(items func() ([]any, error)) *generator {
	var left []any
	started := false
	return &generator{0, func() (any, bool, error) {
		if !started {
			started = true
			var err error
			if left, err = items(); err != nil {
				return nil, false, err
			}
		}
		if len(left) == 0 {
			return nil, false, nil
		}
		v := left[0]
		left = left[1:]
		return v, true, nil
	}}
}

// eachFunc maps one item to another. keep is false if the item is dropped.
type eachFunc func(v any) (out any, keep bool, err error)

// mapped returns a generator that applies a function to the items of v. If v is falsy
// (empty, none or zero), there are no items and function is never called.
func (b *budget) mapped(v any, function func() (eachFunc, error)) *generator {
	if !truthy(v) {
		return lazily(func() ([]any, error) { return nil, nil })
	}
	from, ok := v.(*generator)
	if !ok {
		from = lazily(func() ([]any, error) { return b.iterate(v) })
	}
	checkDepth(from.depth)
	var each eachFunc
	return &generator{from.depth + 1, func() (any, bool, error) {
		if each == nil {
			var err error
			if each, err = function(); err != nil {
				return nil, false, err
			}
		}
		for {
			v, ok, err := from.next()
			if !ok || err != nil {
				return nil, false, err
			}
			b.value(v)
			out, keep, err := each(v)
			b.spend(itemCost)
			b.value(out)
			if keep || err != nil {
				return out, err == nil, err
			}
		}
	}}
}
