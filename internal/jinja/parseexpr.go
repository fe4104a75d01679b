package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// expression parses a ternary: a if b else c.
func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	value := p.or()
	for p.word("if") {
		c := &condition{then: value, test: p.or()}
		if p.word("else") {
			c.otherwise = p.expression()
		}
		value = c
	}
	return value
}

func (p *parser) or() expr {
	return p.leftAssociative(p.and, func() (string, bool) { return "or", p.word("or") })
}

func (p *parser) and() expr {
	return p.leftAssociative(p.not, func() (string, bool) { return "and", p.word("and") })
}

// leftAssociative parses operands separated by operators.
func (p *parser) leftAssociative(operand func() expr, operator func() (string, bool)) expr {
	left := operand()
	for {
		op, ok := operator()
		if !ok {
			return left
		}
		left = &binary{op, left, operand()}
	}
}

func (p *parser) not() expr {
	if !p.word("not") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	return &unary{"not", p.not()}
}

func (p *parser) comparison() expr {
	c := &compare{first: p.sum()}
	for {
		op, ok := p.comparisonOp()
		if !ok {
			break
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return c.first
	}
	return c
}

func (p *parser) comparisonOp() (string, bool) {
	t := p.peek()
	switch {
	case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", ">", "<=", ">="}, t.text):
		p.next()
		return t.text, true
	case p.word("in"):
		return "in", true
	case t.kind == tokName && t.text == "not" && p.tokens[p.pos+1].kind == tokName && p.tokens[p.pos+1].text == "in":
		p.pos += 2
		return "not in", true
	}
	return "", false
}

func (p *parser) oneOf(ops ...string) func() (string, bool) {
	return func() (string, bool) {
		for _, op := range ops {
			if p.op(op) {
				return op, true
			}
		}
		return "", false
	}
}

func (p *parser) sum() expr { return p.leftAssociative(p.concat, p.oneOf("+", "-")) }

func (p *parser) concat() expr { return p.leftAssociative(p.product, p.oneOf("~")) }

func (p *parser) product() expr { return p.leftAssociative(p.power, p.oneOf("*", "//", "/", "%")) }

// power binds less tightly than a sign: -2 ** 2 is 4 in Jinja.
func (p *parser) power() expr {
	return p.leftAssociative(func() expr { return p.postfixFilters(p.unary()) }, p.oneOf("**"))
}

// unary parses signs, a value and its postfixes. Filters apply to the signed value.
func (p *parser) unary() expr { return p.postfix(p.signed()) }

func (p *parser) signed() expr {
	op, ok := p.oneOf("-", "+")()
	if !ok {
		return p.primary()
	}
	p.enter()
	defer p.leave()
	return &unary{op, p.unary()}
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokString:
		var text strings.Builder // adjacent strings are concatenated
		for text.WriteString(t.text); p.peek().kind == tokString; {
			text.WriteString(p.next().text)
		}
		return &literal{text.String()}
	case tokInt:
		return p.integer(t.text)
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			p.fail("%s is too large", t.text)
		}
		return &literal{f}
	case tokName:
		switch t.text {
		case "true", "True":
			return &literal{true}
		case "false", "False":
			return &literal{false}
		case "none", "None":
			return &literal{nil}
		}
		return &nameExpr{t.text}
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesized()
		case "[":
			return &listExpr{items: p.items("]")}
		case "{":
			return p.dict()
		}
	}
	p.fail("unexpected %q", t.text)
	return nil
}

func (p *parser) integer(text string) expr {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.fail("%s is too large", text)
	}
	return &literal{n}
}

// parenthesized parses (a) or a tuple.
func (p *parser) parenthesized() expr {
	if p.op(")") {
		return &listExpr{tuple: true}
	}
	first := p.expression()
	if !p.op(",") {
		p.expectOp(")")
		return first
	}
	return &listExpr{append([]expr{first}, p.items(")")...), true}
}

// items parses expressions up to the closing bracket.
func (p *parser) items(end string) []expr {
	var items []expr
	for !p.op(end) {
		items = append(items, p.expression())
		if !p.op(",") {
			p.expectOp(end)
			break
		}
	}
	return items
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	for !p.op("}") {
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
		if !p.op(",") {
			p.expectOp("}")
			break
		}
	}
	return d
}

// postfix parses attributes, subscripts and calls.
func (p *parser) postfix(value expr) expr {
	for {
		switch {
		case p.op("."):
			t := p.next()
			switch t.kind {
			case tokName:
				value = &attribute{value, t.text}
			case tokInt:
				value = &subscript{value, p.integer(t.text)}
			default:
				p.fail("expected an attribute, found %q", t.text)
			}
		case p.op("["):
			value = p.subscript(value)
		case p.op("("):
			args, kwargs := p.args()
			value = &call{value, args, kwargs}
		default:
			return value
		}
	}
}

// subscript parses [i] or [a:b:c] after the opening bracket.
func (p *parser) subscript(of expr) expr {
	var bounds [3]expr
	colons := 0
	for !p.op("]") {
		if p.op(":") {
			if colons++; colons > 2 {
				p.fail("too many colons in a slice")
			}
			continue
		}
		if bounds[colons] != nil {
			p.fail("expected ], found %q", p.peek().text)
		}
		bounds[colons] = p.expression()
	}
	if colons > 0 {
		return &slice{of, bounds[0], bounds[1], bounds[2]}
	}
	if bounds[0] == nil {
		p.fail("empty subscript")
	}
	return &subscript{of, bounds[0]}
}

// args parses arguments after the opening parenthesis.
func (p *parser) args() (args []expr, kwargs []kwarg) {
	for !p.op(")") {
		if t := p.peek(); t.kind == tokName && p.tokens[p.pos+1].kind == tokOp && p.tokens[p.pos+1].text == "=" {
			p.pos += 2
			kwargs = append(kwargs, kwarg{t.text, p.expression()})
		} else {
			args = append(args, p.expression())
		}
		if !p.op(",") {
			p.expectOp(")")
			break
		}
	}
	return args, kwargs
}

// postfixFilters parses "| filter" and "is test", and the postfixes after them.
func (p *parser) postfixFilters(value expr) expr {
	for {
		switch {
		case p.op("|"):
			value = p.postfix(&filterExpr{value, p.filterCall()})
		case p.word("is"):
			value = p.test(value)
		default:
			return value
		}
	}
}

// filterCall parses the name of a filter and its arguments.
func (p *parser) filterCall() filterCall {
	f := filterCall{name: p.expect(tokName, "a filter")}
	if p.op("(") {
		f.args, f.kwargs = p.args()
	}
	return f
}

// filterCalls parses the filters of a block: | filter | filter.
func (p *parser) filterCalls() []filterCall {
	var all []filterCall
	for p.op("|") {
		all = append(all, p.filterCall())
	}
	return all
}

// test parses a test after "is".
func (p *parser) test(value expr) expr {
	t := &testExpr{value: value, negated: p.word("not")}
	t.name = p.expect(tokName, "a test")
	switch next := p.peek(); {
	case p.op("("):
		t.args, _ = p.args()
	case next.kind == tokOp && (next.text == "[" || next.text == "{") || next.kind == tokString || next.kind == tokInt || next.kind == tokFloat ||
		next.kind == tokName && !slices.Contains([]string{"and", "or", "else", "if", "is", "in", "not", "recursive"}, next.text):
		t.args = []expr{p.postfix(p.primary())}
	}
	return t
}
