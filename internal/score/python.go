package score

import (
	"errors"
	"strconv"
	"strings"
)

// callsInText parses calls in a text: a JSON list of objects, each {"name": {arguments}} or {"name": .., "arguments": ..},
// or Python calls such as [f(a=1), g(b="x")]. ok is false if the text is neither.
func callsInText(text string) (out []call, ok bool) {
	text, _ = withoutFence(text)
	if v, err := parseJSON(text); err == nil {
		return callsInJSON(pythonOf(v))
	}
	p := &pythonParser{rest: text}
	list := p.take("[")
	for {
		c, err := p.call()
		if err != nil {
			return nil, false
		}
		out = append(out, c)
		if !p.take(",") {
			break
		}
	}
	if list && !p.take("]") {
		return nil, false
	}
	return out, p.space() == ""
}

func callsInJSON(v any) (out []call, ok bool) {
	list, is := v.([]any)
	if !is {
		list = []any{v}
	}
	for _, item := range list {
		members, is := item.(map[string]any)
		if !is {
			return nil, false
		}
		if name, named := members["name"].(string); named {
			args := members["arguments"]
			if args == nil {
				args = members["parameters"]
			}
			inner, is := args.(map[string]any)
			if !is {
				return nil, false
			}
			out = append(out, call{name, inner})
			continue
		}
		for name, args := range members {
			inner, is := args.(map[string]any)
			if !is {
				return nil, false
			}
			out = append(out, call{name, inner})
		}
	}
	return out, true
}

// A pythonParser parses Python calls with literal arguments.
type pythonParser struct {
	rest  string
	depth int
}

var errNoLiteral = errors.New("not a call with literal arguments")

func (p *pythonParser) space() string {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	return p.rest
}

// take skips a token, if it is next.
func (p *pythonParser) take(token string) bool {
	after, ok := strings.CutPrefix(p.space(), token)
	if ok {
		p.rest = after
	}
	return ok
}

// name takes an identifier with dots.
func (p *pythonParser) name() string {
	text := p.space()
	i := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 0x80
	})
	if i < 0 {
		i = len(text)
	}
	p.rest = text[i:]
	return text[:i]
}

func (p *pythonParser) call() (call, error) {
	c := call{name: p.name(), args: map[string]any{}}
	if c.name == "" || !p.take("(") {
		return c, errNoLiteral
	}
	for !p.take(")") {
		name := p.name()
		if name == "" || !p.take("=") {
			return c, errNoLiteral
		}
		v, err := p.value()
		if err != nil {
			return c, err
		}
		c.args[name] = v
		if !p.take(",") && !strings.HasPrefix(p.space(), ")") {
			return c, errNoLiteral
		}
	}
	return c, nil
}

// value takes a literal.
func (p *pythonParser) value() (any, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errNoLiteral
	}
	defer func() { p.depth-- }()
	text := p.space()
	switch {
	case text == "":
		return nil, errNoLiteral
	case text[0] == '"' || text[0] == '\'':
		return p.text()
	case p.take("["):
		return p.list("]")
	case p.take("("):
		return p.list(")")
	case p.take("{"):
		return p.dict()
	}
	i := strings.IndexAny(text, ",)]}: \t\r\n")
	if i < 0 {
		i = len(text)
	}
	word := text[:i]
	p.rest = text[i:]
	switch word {
	case "True", "true":
		return true, nil
	case "False", "false":
		return false, nil
	case "None", "null":
		return nil, nil //nolint:nilnil // None is a value
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		return f, nil
	}
	if word == "" {
		return nil, errNoLiteral
	}
	return word, nil // a variable
}

func (p *pythonParser) list(end string) (any, error) {
	out := []any{}
	for !p.take(end) {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if !p.take(",") && !strings.HasPrefix(p.space(), end) {
			return nil, errNoLiteral
		}
	}
	return out, nil
}

func (p *pythonParser) dict() (any, error) {
	out := map[string]any{}
	for !p.take("}") {
		key, err := p.value()
		name, is := key.(string)
		if err != nil || !is || !p.take(":") {
			return nil, errNoLiteral
		}
		if out[name], err = p.value(); err != nil {
			return nil, err
		}
		if !p.take(",") && !strings.HasPrefix(p.space(), "}") {
			return nil, errNoLiteral
		}
	}
	return out, nil
}

// text takes a text in either kind of quotes.
func (p *pythonParser) text() (any, error) {
	quote := p.rest[0]
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == quote:
			p.rest = p.rest[i+1:]
			return b.String(), nil
		case c == '\\' && i+1 < len(p.rest):
			i++
			b.WriteString(unescaped(p.rest[i]))
		default:
			b.WriteByte(c)
		}
	}
	return nil, errNoLiteral
}

func unescaped(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case '\'', '"', '\\':
		return string(c)
	}
	return `\` + string(c)
}
