package jinja

import (
	"errors"
	"fmt"
	"slices"
)

// maxDepth bounds how deep blocks, expressions and macro calls nest, so that a
// broken template is an error and not the end of the process.
const maxDepth = 200

type parser struct {
	src    string
	tokens []token
	pos    int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", lineAt(p.src, p.peek().pos), fmt.Sprintf(format, args...))
}

// op consumes an operator if it is next.
func (p *parser) op(text string) bool {
	if t := p.peek(); t.kind == tokOp && t.text == text {
		p.pos++
		return true
	}
	return false
}

// word consumes a name if it is next.
func (p *parser) word(text string) bool {
	if t := p.peek(); t.kind == tokName && t.text == text {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expectOp(text string) error {
	if !p.op(text) {
		return p.errorf("expected %q, found %q", text, p.peek().text)
	}
	return nil
}

func (p *parser) expect(kind tokenKind, what string) (token, error) {
	if t := p.peek(); t.kind != kind {
		return t, p.errorf("expected %s, found %q", what, t.text)
	}
	return p.next(), nil
}

func (p *parser) stmtEnd() error {
	_, err := p.expect(tokStmtEnd, "the end of the statement")
	return err
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.errorf("nested deeper than %d", maxDepth)
	}
	return nil
}

// body reads nodes up to a statement that starts with one of the words, which
// it consumes and returns.
func (p *parser) body(until ...string) ([]node, string, error) {
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	defer func() { p.depth-- }()
	var nodes []node
	for {
		if t := p.peek(); t.kind == tokEOF {
			if len(until) > 0 {
				return nil, "", p.errorf("%q is missing", until[len(until)-1])
			}
			return nodes, "", nil
		}
		if word := p.tokens[p.pos+1]; p.peek().kind == tokStmt && word.kind == tokName && slices.Contains(until, word.text) {
			p.pos += 2
			return nodes, word.text, nil
		}
		n, err := p.node()
		if err != nil {
			return nil, "", err
		}
		nodes = append(nodes, n)
	}
}

// node reads text, a print or a statement.
func (p *parser) node() (node, error) {
	switch t := p.next(); t.kind {
	case tokText:
		return &textNode{t.text}, nil
	case tokPrint:
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		_, err = p.expect(tokPrintEnd, "}}")
		return &printNode{value, lineAt(p.src, t.pos)}, err
	case tokStmt:
		name, err := p.expect(tokName, "a statement")
		if err != nil {
			return nil, err
		}
		return p.statement(name.text)
	default:
		return nil, p.errorf("unexpected %q", t.text)
	}
}

func (p *parser) statement(name string) (node, error) {
	switch name {
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement()
	case "set":
		return p.setStatement()
	case "macro":
		return p.macroStatement()
	case "call":
		return p.callStatement()
	case "filter":
		return p.filterStatement()
	case "generation", "block":
		return p.groupStatement(name)
	case "break":
		return &loopNode{errBreak}, p.stmtEnd()
	case "continue":
		return &loopNode{errContinue}, p.stmtEnd()
	}
	return nil, p.errorf("statement %q is not supported", name)
}

func (p *parser) ifStatement() (node, error) {
	n := &ifNode{}
	for {
		test, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.tests = append(n.tests, test)
		if err := p.stmtEnd(); err != nil {
			return nil, err
		}
		body, end, err := p.body("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		n.bodies = append(n.bodies, body)
		switch end {
		case "endif":
			return n, p.stmtEnd()
		case "else":
			if err := p.stmtEnd(); err != nil {
				return nil, err
			}
			if body, _, err = p.body("endif"); err != nil {
				return nil, err
			}
			n.bodies = append(n.bodies, body)
			return n, p.stmtEnd()
		}
	}
}

func (p *parser) forStatement() (node, error) {
	n := &forNode{}
	var err error
	if n.targets, err = p.names(); err != nil {
		return nil, err
	}
	if !p.word("in") {
		return nil, p.errorf("expected in, found %q", p.peek().text)
	}
	// Without the ternary, whose "if" would swallow that of the loop.
	if n.over, err = p.or(); err != nil {
		return nil, err
	}
	if p.word("if") {
		if n.filter, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.word("recursive") {
		return nil, p.errorf("recursive loops are not supported")
	}
	if err := p.stmtEnd(); err != nil {
		return nil, err
	}
	body, end, err := p.body("else", "endfor")
	if err != nil {
		return nil, err
	}
	n.body = body
	if end == "else" {
		if err := p.stmtEnd(); err != nil {
			return nil, err
		}
		if n.orElse, _, err = p.body("endfor"); err != nil {
			return nil, err
		}
	}
	return n, p.stmtEnd()
}

// names reads a, b or (a, b).
func (p *parser) names() ([]string, error) {
	paren := p.op("(")
	var names []string
	for {
		t, err := p.expect(tokName, "a name")
		if err != nil {
			return nil, err
		}
		names = append(names, t.text)
		if !p.op(",") {
			break
		}
	}
	if paren {
		return names, p.expectOp(")")
	}
	return names, nil
}

func (p *parser) setStatement() (node, error) {
	n := &setNode{}
	paren := p.op("(")
	for {
		t, err := p.expect(tokName, "a name")
		if err != nil {
			return nil, err
		}
		to := target{name: t.text}
		if p.op(".") {
			if t, err = p.expect(tokName, "an attribute"); err != nil {
				return nil, err
			}
			to.attribute = t.text
		}
		n.targets = append(n.targets, to)
		if !p.op(",") {
			break
		}
	}
	if paren {
		if err := p.expectOp(")"); err != nil {
			return nil, err
		}
	}
	if p.op("=") {
		var err error
		if n.value, err = p.tuple(); err != nil {
			return nil, err
		}
		return n, p.stmtEnd()
	}
	var err error
	if n.filters, err = p.filterCalls(); err != nil {
		return nil, err
	}
	if err := p.stmtEnd(); err != nil {
		return nil, err
	}
	if n.body, _, err = p.body("endset"); err != nil {
		return nil, err
	}
	return n, p.stmtEnd()
}

// tuple reads an expression, or several with commas between.
func (p *parser) tuple() (expr, error) {
	first, err := p.expression()
	if err != nil || !p.op(",") {
		return first, err
	}
	t := &listExpr{items: []expr{first}, tuple: true}
	for p.peek().kind != tokStmtEnd {
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, item)
		if !p.op(",") {
			break
		}
	}
	return t, nil
}

func (p *parser) macroStatement() (node, error) {
	name, err := p.expect(tokName, "the name of the macro")
	if err != nil {
		return nil, err
	}
	n := &macroNode{name: name.text}
	if err := p.expectOp("("); err != nil {
		return nil, err
	}
	if err := p.params(n); err != nil {
		return nil, err
	}
	if err := p.stmtEnd(); err != nil {
		return nil, err
	}
	if n.body, _, err = p.body("endmacro"); err != nil {
		return nil, err
	}
	return n, p.stmtEnd()
}

// params reads the parameters of a macro after the opening parenthesis.
func (p *parser) params(n *macroNode) error {
	for !p.op(")") {
		name, err := p.expect(tokName, "a parameter")
		if err != nil {
			return err
		}
		var value expr
		if p.op("=") {
			if value, err = p.expression(); err != nil {
				return err
			}
		}
		n.params = append(n.params, name.text)
		n.defaults = append(n.defaults, value)
		if !p.op(",") {
			return p.expectOp(")")
		}
	}
	return nil
}

func (p *parser) callStatement() (node, error) {
	n := &callNode{macro: &macroNode{name: "caller"}}
	if p.op("(") {
		if err := p.params(n.macro); err != nil {
			return nil, err
		}
	}
	var err error
	if n.call, err = p.expression(); err != nil {
		return nil, err
	}
	if _, ok := n.call.(*call); !ok {
		return nil, p.errorf("expected a call")
	}
	if err := p.stmtEnd(); err != nil {
		return nil, err
	}
	if n.macro.body, _, err = p.body("endcall"); err != nil {
		return nil, err
	}
	return n, p.stmtEnd()
}

func (p *parser) filterStatement() (node, error) {
	name, err := p.expect(tokName, "a filter")
	if err != nil {
		return nil, err
	}
	f, err := p.filterArgs(name.text)
	if err != nil {
		return nil, err
	}
	rest, err := p.filterCalls()
	if err != nil {
		return nil, err
	}
	if err := p.stmtEnd(); err != nil {
		return nil, err
	}
	body, _, err := p.body("endfilter")
	if err != nil {
		return nil, err
	}
	return &filterNode{append([]filterCall{f}, rest...), body}, p.stmtEnd()
}

func (p *parser) groupStatement(name string) (node, error) {
	if name == "block" {
		if _, err := p.expect(tokName, "the name of the block"); err != nil {
			return nil, err
		}
	}
	if err := p.stmtEnd(); err != nil {
		return nil, err
	}
	body, _, err := p.body("end" + name)
	if err != nil {
		return nil, err
	}
	if name == "block" && p.peek().kind == tokName {
		p.next()
	}
	return &groupNode{body}, p.stmtEnd()
}

var (
	errBreak    = errors.New("break outside of a loop")
	errContinue = errors.New("continue outside of a loop")
)
