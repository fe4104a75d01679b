package jinja

import "errors"

var errNoLength = errors.New("a generator has no length and no end: make it a list first")

// A generator is a sequence that is made when somebody asks for its items, and
// that has each item once. It is true even where it has none.
type generator struct {
	next func() (v any, ok bool, err error)
}

// rest is the items that nobody has taken yet.
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

// lazily is a generator of items that are made all at once, on the first ask.
func lazily(items func() ([]any, error)) *generator {
	var left []any
	started := false
	return &generator{func() (any, bool, error) {
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

// An eachFunc makes an item of another, or leaves it out.
type eachFunc func(v any) (out any, keep bool, err error)

// mapped is a generator of what a function makes of the items of v. For a value
// that is empty, none or zero there are no items, and no function is made.
func mapped(v any, function func() (eachFunc, error)) *generator {
	if !truthy(v) {
		return lazily(func() ([]any, error) { return nil, nil })
	}
	from, ok := v.(*generator)
	if !ok {
		from = lazily(func() ([]any, error) { return iterate(v) })
	}
	var each eachFunc
	return &generator{func() (any, bool, error) {
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
			out, keep, err := each(v)
			if keep || err != nil {
				return out, err == nil, err
			}
		}
	}}
}
