package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxWidth limits the width of one formatted field.
const maxWidth = 1 << 16

var (
	errFormat  = errors.New("invalid format")
	errTooWide = fmt.Errorf("a formatted field is wider than %d", maxWidth)
)

// percent implements Python's format % values. values is a tuple, a mapping or a single
// value.
func (b *budget) percent(format string, values any) (any, error) {
	args := []any{values}
	if l, ok := values.(*list); ok && l.tuple {
		args = l.items
	}
	var w strings.Builder
	used := 0
	for {
		before, rest, found := strings.Cut(format, "%")
		w.WriteString(before)
		if !found {
			break
		}
		field, verb, rest, err := percentField(rest)
		if err != nil {
			return nil, err
		}
		format = rest
		if verb == '%' {
			w.WriteByte('%')
			continue
		}
		var v any
		if key, spec, ok := strings.Cut(strings.TrimPrefix(field, "("), ")"); ok {
			v, field, used = b.item(values, key), spec, len(args)
		} else if used == len(args) {
			return nil, errors.New("not enough values for the format")
		} else {
			v = args[used]
			used++
		}
		text, err := b.percentValue(field, verb, v)
		if err != nil {
			return nil, err
		}
		b.spend(len(text))
		w.WriteString(text)
	}
	if _, mapping := values.(*Dict); used < len(args) && !mapping {
		return nil, errors.New("too many values for the format")
	}
	return w.String(), nil
}

// percentField parses the field after a percent sign. It returns the flags with the
// width, the verb and the rest of s.
func percentField(s string) (field string, verb byte, rest string, err error) {
	i := 0
	if strings.HasPrefix(s, "(") {
		i = strings.IndexByte(s, ')') + 1
	}
	for i < len(s) && strings.IndexByte("#0- +.123456789", s[i]) >= 0 {
		i++
	}
	if i == len(s) {
		return "", 0, "", errFormat
	}
	return s[:i], s[i], s[i+1:], nil
}

// percentValue formats one value with a printf verb. Go's flags have the same meaning as
// Python's.
func (b *budget) percentValue(flags string, verb byte, v any) (string, error) {
	width, _, _ := strings.Cut(strings.TrimLeft(flags, "#0- +"), ".")
	if n, err := strconv.Atoi(width); width != "" && (err != nil || n > maxWidth) {
		return "", errTooWide
	}
	switch verb {
	case 's', 'r', 'a':
		shown := b.text(v)
		if verb != 's' {
			shown = b.repr(v)
		}
		return fmt.Sprintf("%"+strings.TrimLeft(flags, "#0 +")+"s", shown), nil
	case 'c':
		if n, ok := v.(int64); ok {
			v = string(rune(n))
		}
		return fmt.Sprintf("%"+flags+"s", b.text(v)), nil
	case 'd', 'i', 'u':
		if f, ok := v.(float64); ok {
			v = int64(f)
		}
		if n, ok := integer(v); ok {
			return fmt.Sprintf("%"+flags+"d", n), nil
		}
	case 'o', 'x', 'X':
		if n, ok := integer(v); ok {
			return fmt.Sprintf("%"+flags+string(verb), n), nil
		}
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if f, ok := number(v); ok {
			return fmt.Sprintf("%"+digits(flags)+string(verb), f), nil
		}
	default:
		return "", errFormat
	}
	return "", fmt.Errorf("%%%c cannot format %s", verb, kindOf(v))
}

// digits adds Python's default precision if flags has none.
func digits(flags string) string {
	if strings.Contains(flags, ".") {
		return flags
	}
	return flags + ".6"
}

// braces implements Python's format.format(...).
func (b *budget) braces(format string, a arguments) (any, error) {
	var w strings.Builder
	next := 0
	for format != "" {
		i := strings.IndexAny(format, "{}")
		if i < 0 {
			break
		}
		w.WriteString(format[:i])
		if strings.HasPrefix(format[i+1:], format[i:i+1]) { // {{ and }}
			w.WriteByte(format[i])
			format = format[i+2:]
			continue
		}
		end := strings.IndexByte(format[i:], '}')
		if format[i] == '}' || end < 0 {
			return nil, errFormat
		}
		field, spec, _ := strings.Cut(format[i+1:i+end], ":")
		format = format[i+end+1:]
		field, conversion, _ := strings.Cut(field, "!")
		if field == "" {
			field = strconv.Itoa(next)
			next++
		}
		v, err := b.bracesField(field, a)
		if err != nil {
			return nil, err
		}
		switch conversion {
		case "r", "a":
			v = b.repr(v)
		case "s":
			v = b.text(v)
		}
		shown, err := b.bracesValue(spec, v)
		if err != nil {
			return nil, err
		}
		b.spend(len(shown))
		w.WriteString(shown)
	}
	return w.String() + format, nil
}

// bracesField evaluates a field name: 0 or name, followed by .x or [x].
func (b *budget) bracesField(field string, a arguments) (any, error) {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, path := field[:end], field[end:]
	v, ok := a.named[name]
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(a.list) {
		v, ok = a.list[n], true
	}
	if !ok {
		return nil, fmt.Errorf("no value for the field %q", name)
	}
	for path != "" {
		var key string
		if path[0] == '[' {
			key, path, ok = strings.Cut(path[1:], "]")
			if !ok {
				return nil, errFormat
			}
		} else {
			key = path[1:]
			path = ""
			if i := strings.IndexAny(key, ".["); i >= 0 {
				key, path = key[:i], key[i:]
			}
		}
		var index any = key
		if n, err := strconv.ParseInt(key, 10, 64); err == nil {
			index = n
		}
		v = b.item(v, index)
	}
	return v, nil
}

// bracesValue formats a value by [[fill]align][sign][#][0][width][,][.precision][type].
func (b *budget) bracesValue(spec string, v any) (string, error) {
	if spec == "" {
		return b.text(v), nil
	}
	fill, align := " ", byte(0)
	if _, size := utf8.DecodeRuneInString(spec); len(spec) > size && strings.IndexByte("<>=^", spec[size]) >= 0 {
		fill, align, spec = spec[:size], spec[size], spec[size+1:]
	} else if strings.IndexByte("<>=^", spec[0]) >= 0 {
		align, spec = spec[0], spec[1:]
	}
	flags := spec[:len(spec)-len(strings.TrimLeft(spec, "+- #"))]
	spec = spec[len(flags):]
	if rest, zero := strings.CutPrefix(spec, "0"); zero {
		spec = rest
		if align == 0 {
			fill, align = "0", '='
		}
	}
	digits := spec[:len(spec)-len(strings.TrimLeft(spec, "0123456789"))]
	spec = spec[len(digits):]
	width, err := strconv.Atoi("0" + digits)
	if err != nil || width > maxWidth {
		return "", errTooWide
	}
	group := ""
	if spec != "" && (spec[0] == ',' || spec[0] == '_') {
		group, spec = spec[:1], spec[1:]
	}
	body, numeric, err := b.bracesBody(strings.ReplaceAll(flags, "-", ""), spec, v)
	if err != nil {
		return "", err
	}
	if align == 0 {
		align = '<'
		if numeric {
			align = '>'
		}
	}
	return pad(grouped(body, group), fill, align, width), nil
}

// bracesBody formats a value without padding.
func (b *budget) bracesBody(flags, spec string, v any) (body string, numeric bool, err error) {
	_, numeric = number(v)
	if shown, ok := v.(string); ok && (spec == "" || spec[0] == '.' || spec == "s") {
		body, err = b.percentValue(strings.TrimSuffix(spec, "s"), 's', shown)
		return body, false, err
	}
	verb := byte('d')
	_, isFloat := v.(float64)
	switch {
	case !numeric:
		return "", false, fmt.Errorf("%s cannot be formatted", kindOf(v))
	case spec != "" && strings.IndexByte("dxXoeEfFgG%", spec[len(spec)-1]) >= 0:
		verb, spec = spec[len(spec)-1], spec[:len(spec)-1]
	case isFloat && spec == "":
		if f, _ := number(v); strings.Contains(flags, "+") && f >= 0 {
			return "+" + b.text(v), true, nil
		}
		return b.text(v), true, nil
	case isFloat:
		verb = 'g'
	}
	if spec != "" && spec[0] != '.' || isFloat && strings.IndexByte("dxXo", verb) >= 0 {
		return "", true, errFormat
	}
	if verb == '%' {
		f, _ := number(v)
		body, err = b.percentValue(flags+spec, 'f', f*100)
		return body + "%", true, err
	}
	body, err = b.percentValue(flags+spec, verb, v)
	return body, true, err
}

// grouped inserts a separator between groups of three digits before the decimal point.
func grouped(body, separator string) string {
	if separator == "" {
		return body
	}
	start := len(body) - len(strings.TrimLeft(body, "+- "))
	end := start + strings.IndexFunc(body[start:]+".", func(r rune) bool { return r < '0' || r > '9' })
	for i := end - 3; i > start; i -= 3 {
		body = body[:i] + separator + body[i:]
	}
	return body
}

func pad(body, fill string, align byte, width int) string {
	n := max(width-utf8.RuneCountInString(body), 0)
	left := 0
	switch align {
	case '>':
		left = n
	case '^':
		left = n / 2
	case '=':
		sign := len(body) - len(strings.TrimLeft(body, "+- "))
		return body[:sign] + strings.Repeat(fill, n) + body[sign:]
	}
	return strings.Repeat(fill, left) + body + strings.Repeat(fill, n-left)
}
