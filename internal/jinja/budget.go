package jinja

import (
	"fmt"
	"strings"
)

// Templates come from model hubs, so a rendering has a budget: every operation spends the bytes it reads or creates.
// Memory and time are bounded by the budget, because nothing is created without spending.
const (
	// baseBudget is enough for a template that processes no messages.
	baseBudget = 64 << 20
	// budgetPerByte allows a template to process each byte of the conversation many times. Templates that append each
	// message to a text do.
	budgetPerByte = 128
	// itemCost is the size of a list item in bytes, and entryCost the size of a mapping entry.
	itemCost  = 16
	entryCost = 64
	// evalCost is the cost of a constant, an operator or a branch of a condition, which takes 100 ns at most.
	evalCost = 8
	// scopeCost is the cost of the variables of one iteration or call, which take 300 bytes for a short time. An iteration
	// takes 1 µs, so empty loops end after half a second. Each byte of the conversation allows another iteration.
	scopeCost = 128
	// parsedCost is the memory per byte of JSON after parsing: a list takes two bytes.
	parsedCost = 32
)

var (
	errTooDeep = &LimitError{fmt.Sprintf("nests lists deeper than %d", maxDepth)}
	errTooLong = &LimitError{fmt.Sprintf("takes more than %d steps", maxSteps)}
)

// A budget is the work left to one rendering, in bytes. It panics with a *LimitError, which Render
// recovers, because functions such as text have no error result.
type budget struct{ all, left int64 }

// LimitError reports that a template needs more time or memory than a rendering may use.
type LimitError struct{ limit string }

func (e *LimitError) Error() string { return "the template " + e.limit }

func newBudget(variables map[string]any) *budget {
	input := 0
	for _, v := range variables {
		input += sizeOf(v, 0)
	}
	n := int64(baseBudget + budgetPerByte*input)
	return &budget{n, n}
}

// sizeOf returns the bytes of the caller's values.
func sizeOf(v any, depth int) int {
	n := itemCost
	if depth > maxDepth {
		return n
	}
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += sizeOf(item, depth+1)
		}
	case *list:
		for _, item := range v.items {
			n += sizeOf(item, depth+1)
		}
	case *Dict:
		for _, k := range v.keys {
			n += sizeOf(k, depth+1) + sizeOf(v.values[k], depth+1)
		}
	}
	return n
}

// spend takes n bytes from the budget.
func (b *budget) spend(n int) {
	if b.left -= int64(n); b.left < 0 {
		panic(&LimitError{fmt.Sprintf("processes more than %d MiB of text and lists", b.all>>20)})
	}
}

// spendTimes takes n*m bytes from the budget. The product may be larger than an int.
func (b *budget) spendTimes(n, m int) {
	if n > 0 && m > 0 && int64(n) > b.left/int64(m) {
		b.spend(int(min(b.left, 1<<30)))
		b.spend(1 << 30)
	}
	b.spend(n * m)
}

// checkDepth limits a recursion.
func checkDepth(depth int) {
	if depth > maxDepth {
		panic(errTooDeep)
	}
}

// newScope returns a scope for the variables of a block.
func (b *budget) newScope(outer *scope) *scope {
	b.spend(scopeCost)
	return &scope{values: map[string]any{}, outer: outer}
}

// value spends the size of a value without the values in it.
func (b *budget) value(v any) any {
	switch v := v.(type) {
	case string:
		b.spend(len(v))
	case *list:
		b.spend(itemCost * len(v.items))
	case *Dict:
		b.spend(entryCost * len(v.keys))
	}
	return v
}

// arguments spends the sizes of arguments.
func (b *budget) arguments(list []any, named map[string]any) {
	for _, v := range list {
		b.value(v)
	}
	for _, v := range named {
		b.value(v)
	}
}

// join is strings.Join.
func (b *budget) join(parts []string, separator string) string {
	for _, p := range parts {
		b.spend(len(p))
	}
	b.spendTimes(len(parts), len(separator))
	return strings.Join(parts, separator)
}

// recovered turns the panic of an exceeded budget into an error.
func recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case *LimitError:
		*err = p
	default:
		panic(p)
	}
}
