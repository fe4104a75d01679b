package jinja

import (
	"errors"
	"fmt"
	"slices"
)

// maxDepth limits the nesting of blocks, expressions and macro calls, so that a broken
// template causes an error instead of a stack overflow.
const maxDepth = 200

type parser struct {
	src    string
	tokens []token
	pos    int
	depth  int
}

// syntaxError is the panic value of the parser. Panicking saves an error return in every
// grammar function. parse recovers it.
type syntaxError struct{ error }

// parse parses the tokens of a template.
func parse(src string, tokens []token) (nodes []node, err error) {
	defer func() {
		if r := recover(); r != nil {
			wrong, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			nodes, err = nil, wrong.error
		}
	}()
	p := &parser{src: src, tokens: tokens}
	nodes, _ = p.body()
	return nodes, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(syntaxError{fmt.Errorf("line %d: %s", lineAt(p.src, p.peek().pos), fmt.Sprintf(format, args...))})
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

// op consumes the operator text if it is next.
func (p *parser) op(text string) bool {
	if t := p.peek(); t.kind == tokOp && t.text == text {
		p.pos++
		return true
	}
	return false
}

// word consumes the name text if it is next.
func (p *parser) word(text string) bool {
	if t := p.peek(); t.kind == tokName && t.text == text {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expectOp(text string) {
	if !p.op(text) {
		p.fail("expected %q, found %q", text, p.peek().text)
	}
}

// expect consumes a token of the given kind and returns its text.
func (p *parser) expect(kind tokenKind, what string) string {
	if t := p.peek(); t.kind != kind {
		p.fail("expected %s, found %q", what, t.text)
	}
	return p.next().text
}

func (p *parser) stmtEnd() { p.expect(tokStmtEnd, "the end of the statement") }

// enter and leave track the nesting depth.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested deeper than %d", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// body parses nodes up to a statement that starts with one of the words in until. It
// consumes and returns that word.
func (p *parser) body(until ...string) ([]node, string) {
	p.enter()
	defer p.leave()
	var nodes []node
	for {
		if t := p.peek(); t.kind == tokEOF {
			if len(until) > 0 {
				p.fail("%q is missing", until[len(until)-1])
			}
			return nodes, ""
		}
		if word := p.tokens[p.pos+1]; p.peek().kind == tokStmt && word.kind == tokName && slices.Contains(until, word.text) {
			p.pos += 2
			return nodes, word.text
		}
		nodes = append(nodes, p.node())
	}
}

// block parses the end of a statement and the nodes up to the matching end statement.
func (p *parser) block(end string) []node {
	p.stmtEnd()
	nodes, _ := p.body(end)
	return nodes
}

// node parses text, a print or a statement.
func (p *parser) node() node {
	switch t := p.next(); t.kind {
	case tokText:
		return &textNode{t.text}
	case tokPrint:
		value := p.expression()
		p.expect(tokPrintEnd, "}}")
		return &printNode{value, lineAt(p.src, t.pos)}
	case tokStmt:
		n := p.statement(p.expect(tokName, "a statement"))
		p.stmtEnd()
		return n
	default:
		p.fail("unexpected %q", t.text)
		return nil
	}
}

// statement parses a statement after its name.
func (p *parser) statement(name string) node {
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
		return &loopNode{errBreak}
	case "continue":
		return &loopNode{errContinue}
	}
	p.fail("statement %q is not supported", name)
	return nil
}

func (p *parser) ifStatement() node {
	n := &ifNode{}
	for end := "elif"; end != "endif"; {
		if end == "elif" {
			n.tests = append(n.tests, p.expression())
		}
		p.stmtEnd()
		ends := []string{"elif", "else", "endif"}
		if end == "else" {
			ends = ends[2:]
		}
		var body []node
		body, end = p.body(ends...)
		n.bodies = append(n.bodies, body)
	}
	return n
}

func (p *parser) forStatement() node {
	n := &forNode{targets: p.targets(false)}
	if !p.word("in") {
		p.fail("expected in, found %q", p.peek().text)
	}
	// p.or does not parse a ternary, which would consume the loop's own "if".
	n.over = p.or()
	if p.word("if") {
		n.filter = p.expression()
	}
	if p.word("recursive") {
		p.fail("recursive loops are not supported")
	}
	p.stmtEnd()
	var end string
	if n.body, end = p.body("else", "endfor"); end == "else" {
		n.orElse = p.block("endfor")
	}
	return n
}

// targets parses a, b or (a, b). If attributes is set, targets may be attributes.
func (p *parser) targets(attributes bool) (all []target) {
	paren := p.op("(")
	for {
		to := target{name: p.expect(tokName, "a name")}
		if attributes && p.op(".") {
			to.attribute = p.expect(tokName, "an attribute")
		}
		all = append(all, to)
		if !p.op(",") {
			break
		}
	}
	if paren {
		p.expectOp(")")
	}
	return all
}

func (p *parser) setStatement() node {
	n := &setNode{targets: p.targets(true)}
	if p.op("=") {
		n.value = p.tuple()
		return n
	}
	n.filters = p.filterCalls()
	n.body = p.block("endset")
	return n
}

// tuple parses one expression, or several separated by commas.
func (p *parser) tuple() expr {
	first := p.expression()
	if !p.op(",") {
		return first
	}
	t := &listExpr{items: []expr{first}, tuple: true}
	for p.peek().kind != tokStmtEnd {
		t.items = append(t.items, p.expression())
		if !p.op(",") {
			break
		}
	}
	return t
}

func (p *parser) macroStatement() node {
	n := &macroNode{name: p.expect(tokName, "the name of the macro")}
	p.expectOp("(")
	p.params(n)
	n.body = p.block("endmacro")
	return n
}

// params parses the parameters of a macro after the opening parenthesis.
func (p *parser) params(n *macroNode) {
	for !p.op(")") {
		n.params = append(n.params, p.expect(tokName, "a parameter"))
		var value expr
		if p.op("=") {
			value = p.expression()
		}
		n.defaults = append(n.defaults, value)
		if !p.op(",") {
			p.expectOp(")")
			return
		}
	}
}

func (p *parser) callStatement() node {
	n := &callNode{macro: &macroNode{name: "caller"}}
	if p.op("(") {
		p.params(n.macro)
	}
	called, ok := p.expression().(*call)
	if !ok {
		p.fail("expected a call")
	}
	n.call = called
	n.macro.body = p.block("endcall")
	return n
}

func (p *parser) filterStatement() node {
	filters := append([]filterCall{p.filterCall()}, p.filterCalls()...)
	return &filterNode{filters, p.block("endfilter")}
}

func (p *parser) groupStatement(name string) node {
	if name == "block" {
		p.expect(tokName, "the name of the block")
	}
	n := &groupNode{p.block("end" + name)}
	if name == "block" && p.peek().kind == tokName {
		p.next()
	}
	return n
}

var (
	errBreak    = errors.New("break outside of a loop")
	errContinue = errors.New("continue outside of a loop")
)
