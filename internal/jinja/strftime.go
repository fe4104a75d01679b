package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftimeLayouts maps strftime directives to layouts of package time.
var strftimeLayouts = map[byte]string{
	'd': "02", 'b': "Jan", 'B': "January", 'm': "01", 'Y': "2006", 'y': "06", 'H': "15", 'M': "04", 'S': "05",
	'A': "Monday", 'a': "Mon", 'p': "PM", 'I': "03", 'j': "002", 'Z': "MST", 'z': "-0700",
	'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'e': "_2", 'f': "000000",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime formats a time as Python does in the C locale.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		unpadded := format[i] == '-' && i+1 < len(format)
		if unpadded {
			i++
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		layout, ok := strftimeLayouts[format[i]]
		if !ok {
			return "", fmt.Errorf("strftime_now: %%%c is not supported", format[i])
		}
		text := t.Format(layout)
		if unpadded {
			if text = strings.TrimLeft(text, "0 "); text == "" {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
