package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// expression reads a ternary: a if b else c.
func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	value, err := p.or()
	if err != nil {
		return nil, err
	}
	for p.word("if") {
		c := &condition{then: value}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.word("else") {
			if c.otherwise, err = p.expression(); err != nil {
				return nil, err
			}
		}
		value = c
	}
	return value, nil
}

func (p *parser) or() (expr, error) {
	return p.leftAssociative(p.and, func() (string, bool) { return "or", p.word("or") })
}

func (p *parser) and() (expr, error) {
	return p.leftAssociative(p.not, func() (string, bool) { return "and", p.word("and") })
}

// leftAssociative reads operands with operators between them.
func (p *parser) leftAssociative(operand func() (expr, error), operator func() (string, bool)) (expr, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		op, ok := operator()
		if !ok {
			return left, nil
		}
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = &binary{op, left, right}
	}
}

func (p *parser) not() (expr, error) {
	if !p.word("not") {
		return p.comparison()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	value, err := p.not()
	return &unary{"not", value}, err
}

func (p *parser) comparison() (expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compare{first: first}
	for {
		op, ok := p.comparisonOp()
		if !ok {
			break
		}
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, right)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	return c, nil
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

func (p *parser) sum() (expr, error) {
	return p.leftAssociative(p.concat, p.oneOf("+", "-"))
}

func (p *parser) concat() (expr, error) { return p.leftAssociative(p.product, p.oneOf("~")) }

func (p *parser) product() (expr, error) {
	return p.leftAssociative(p.power, p.oneOf("*", "//", "/", "%"))
}

// power binds less tightly than a sign: -2 ** 2 is 4 here.
func (p *parser) power() (expr, error) {
	return p.leftAssociative(func() (expr, error) { return p.unary(true) }, p.oneOf("**"))
}

// unary reads signs, a value, and what follows it. Filters apply to the value
// with its sign.
func (p *parser) unary(withFilters bool) (expr, error) {
	value, err := p.signed()
	if err != nil {
		return nil, err
	}
	if value, err = p.postfix(value); err != nil || !withFilters {
		return value, err
	}
	return p.postfixFilters(value)
}

func (p *parser) signed() (expr, error) {
	op, ok := p.oneOf("-", "+")()
	if !ok {
		return p.primary()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	value, err := p.unary(false)
	return &unary{op, value}, err
}

func (p *parser) primary() (expr, error) {
	t := p.next()
	switch t.kind {
	case tokString:
		var text strings.Builder // neighbouring strings are one
		for text.WriteString(t.text); p.peek().kind == tokString; {
			text.WriteString(p.next().text)
		}
		return &literal{text.String()}, nil
	case tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, p.errorf("%s is too large", t.text)
		}
		return &literal{n}, nil
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.errorf("%s is too large", t.text)
		}
		return &literal{f}, nil
	case tokName:
		switch t.text {
		case "true", "True":
			return &literal{true}, nil
		case "false", "False":
			return &literal{false}, nil
		case "none", "None":
			return &literal{nil}, nil
		}
		return &nameExpr{t.text}, nil
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesized()
		case "[":
			items, err := p.items("]")
			return &listExpr{items: items}, err
		case "{":
			return p.dict()
		}
	}
	return nil, p.errorf("unexpected %q", t.text)
}

// parenthesized reads (a) or a tuple.
func (p *parser) parenthesized() (expr, error) {
	if p.op(")") {
		return &listExpr{tuple: true}, nil
	}
	first, err := p.expression()
	if err != nil {
		return nil, err
	}
	if !p.op(",") {
		return first, p.expectOp(")")
	}
	rest, err := p.items(")")
	return &listExpr{append([]expr{first}, rest...), true}, err
}

// items reads expressions up to the closing bracket.
func (p *parser) items(end string) ([]expr, error) {
	var items []expr
	for !p.op(end) {
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if !p.op(",") {
			return items, p.expectOp(end)
		}
	}
	return items, nil
}

func (p *parser) dict() (expr, error) {
	d := &dictExpr{}
	for !p.op("}") {
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
		if !p.op(",") {
			return d, p.expectOp("}")
		}
	}
	return d, nil
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(value expr) (expr, error) {
	for {
		switch {
		case p.op("."):
			t := p.next()
			switch t.kind {
			case tokName:
				value = &attribute{value, t.text}
			case tokInt:
				n, err := strconv.ParseInt(t.text, 10, 64)
				if err != nil {
					return nil, p.errorf("%s is too large", t.text)
				}
				value = &subscript{value, &literal{n}}
			default:
				return nil, p.errorf("expected an attribute, found %q", t.text)
			}
		case p.op("["):
			var err error
			if value, err = p.subscript(value); err != nil {
				return nil, err
			}
		case p.op("("):
			args, kwargs, err := p.args()
			if err != nil {
				return nil, err
			}
			value = &call{value, args, kwargs}
		default:
			return value, nil
		}
	}
}

// subscript reads [i] or [a:b:c] after the bracket.
func (p *parser) subscript(of expr) (expr, error) {
	var bounds [3]expr
	colons := 0
	for !p.op("]") {
		if p.op(":") {
			if colons++; colons > 2 {
				return nil, p.errorf("too many colons in a slice")
			}
			continue
		}
		if bounds[colons] != nil {
			return nil, p.errorf("expected ], found %q", p.peek().text)
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		bounds[colons] = value
	}
	switch {
	case colons > 0:
		return &slice{of, bounds[0], bounds[1], bounds[2]}, nil
	case bounds[0] == nil:
		return nil, p.errorf("empty subscript")
	}
	return &subscript{of, bounds[0]}, nil
}

// args reads arguments after the opening parenthesis.
func (p *parser) args() (args []expr, kwargs []kwarg, err error) {
	for !p.op(")") {
		if t := p.peek(); t.kind == tokName && p.tokens[p.pos+1].kind == tokOp && p.tokens[p.pos+1].text == "=" {
			p.pos += 2
			value, err := p.expression()
			if err != nil {
				return nil, nil, err
			}
			kwargs = append(kwargs, kwarg{t.text, value})
		} else {
			value, err := p.expression()
			if err != nil {
				return nil, nil, err
			}
			args = append(args, value)
		}
		if !p.op(",") {
			return args, kwargs, p.expectOp(")")
		}
	}
	return args, kwargs, nil
}

// postfixFilters reads | filter, is test, and what may follow them.
func (p *parser) postfixFilters(value expr) (expr, error) {
	for {
		switch {
		case p.op("|"):
			name, err := p.expect(tokName, "a filter")
			if err != nil {
				return nil, err
			}
			f, err := p.filterArgs(name.text)
			if err != nil {
				return nil, err
			}
			value = &filterExpr{value, f}
			if value, err = p.postfix(value); err != nil {
				return nil, err
			}
		case p.word("is"):
			var err error
			if value, err = p.test(value); err != nil {
				return nil, err
			}
		default:
			return value, nil
		}
	}
}

func (p *parser) filterArgs(name string) (filterCall, error) {
	f := filterCall{name: name}
	var err error
	if p.op("(") {
		f.args, f.kwargs, err = p.args()
	}
	return f, err
}

// filterCalls reads | filter | filter, as a block has them.
func (p *parser) filterCalls() ([]filterCall, error) {
	var all []filterCall
	for p.op("|") {
		name, err := p.expect(tokName, "a filter")
		if err != nil {
			return nil, err
		}
		f, err := p.filterArgs(name.text)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// test reads what follows is.
func (p *parser) test(value expr) (expr, error) {
	t := &testExpr{value: value, negated: p.word("not")}
	name, err := p.expect(tokName, "a test")
	if err != nil {
		return nil, err
	}
	t.name = name.text
	switch next := p.peek(); {
	case p.op("("):
		t.args, _, err = p.args()
	case next.kind == tokOp && (next.text == "[" || next.text == "{") || next.kind == tokString || next.kind == tokInt || next.kind == tokFloat ||
		next.kind == tokName && !slices.Contains([]string{"and", "or", "else", "if", "is", "in", "not", "recursive"}, next.text):
		var arg expr
		if arg, err = p.primary(); err == nil {
			arg, err = p.postfix(arg)
		}
		t.args = []expr{arg}
	}
	return t, err
}
